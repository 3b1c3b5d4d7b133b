//! Files that describe a cloud: prices, lifetimes, requests, interruptions, availability, types.

use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use dormouse_cloud::{
    BUILT_IN, PlacementRule, PriceQuery, PriceStatistics, SpotAvailability, built_in,
    looks_like_prices, read_acts, read_advisor, read_prices, read_types,
};
use dormouse_fit::{By, Curve, LifeQuery, looks_like_lifetimes, read_lifetimes};
use dormouse_input::{Chosen, Moment, Source, written};
use dormouse_units::{Span, Time};
use dormouse_workload::{Offer, RequestFile};

/// The most bytes that are unpacked.
const LONGEST: u64 = 1 << 20;
/// A day in 2024, in seconds since 1970.
const BEGINS: i64 = 1_706_700_000;

fn source(bytes: &[u8]) -> Option<Source> {
    Source::new(Cursor::new(bytes.to_vec())).ok()
}

/// Reads the bytes as prices, evaluates these from several start times, and reads them again from their written form.
pub(crate) fn prices(bytes: &[u8]) {
    let _ = looks_like_prices(bytes);
    let Some(source) = source(bytes) else { return };
    let Ok(read) = read_prices(source, &PriceQuery::default()) else { return };
    drop(read.left_out.to_string());
    for record in read.series.values() {
        let length = record.length().unwrap_or_default();
        let _ = (record.describe_oddities(), record.dates().map(|dates| dates.length()));
        for start in [Span::ZERO, Span::from_micros(length.as_micros() / 2), length] {
            let Some(trace) = record.from(start) else { continue };
            let _ = PriceStatistics::measure_trace(&trace, Time::ZERO + length);
        }
        let again = Source::new(Cursor::new(record.to_csv().into_bytes())).expect("it is text");
        let again = read_prices(again, &PriceQuery::default()).expect("it reads back");
        let same = again.series.values().next().expect("it has the prices");
        assert_eq!(same.from(Span::ZERO), record.from(Span::ZERO), "prices read back");
    }
}

/// Reads the bytes as lifetimes by both rules and makes curves from them, which rise from 0 to at most 1.
pub(crate) fn lifetimes(bytes: &[u8]) {
    let _ = looks_like_lifetimes(bytes);
    for skips_malformed in [false, true] {
        let query = LifeQuery { skips_malformed, may_lack_ends: true, ..LifeQuery::default() };
        let Some(source) = source(bytes) else { return };
        let Ok(record) = read_lifetimes(source, &query) else { continue };
        drop(record.to_string());
        if record.lives.is_empty() {
            continue;
        }
        for curve in [Curve::empirical(&record.lives), Curve::kaplan_meier(&record.lives)] {
            let (half, last) = (curve.cdf(curve.last() / 2.0), curve.cdf(curve.last()));
            assert!((0.0..=1.0).contains(&half) && half <= last && last <= 1.0, "{half} {last}");
            assert!(curve.mean() >= 0.0, "{}", curve.mean());
            let _ = curve.thin_to(8).corners(8);
        }
        let asked = dormouse_fit::GroupOptions { by: Some(By::Type), resamples: 0, seed: 1 };
        if record.lives.len() < 16 {
            let _ = dormouse_fit::groups(&record, &asked);
        }
    }
}

static OFFER: LazyLock<Arc<Offer>> = LazyLock::new(|| {
    let types = built_in(BUILT_IN[0]).expect("there is one");
    Arc::new(Offer::new(&types, &[], &PlacementRule::default()))
});

/// Reads the bytes as requests; these come in order of time, whatever the order in the file.
pub(crate) fn requests(bytes: &[u8]) {
    for offer in [None, Some(Arc::clone(&OFFER))] {
        let input = Ok(Cursor::new(bytes.to_vec()));
        let Ok(requests) = RequestFile::from_file(Path::new("fuzz"), input, offer) else {
            continue;
        };
        let mut last = Time::ZERO;
        for request in requests {
            let Ok((at, _)) = request else { break };
            assert!(last <= at, "{last} {at}");
            last = at;
        }
    }
}

/// Reads the bytes as recorded interruptions.
pub(crate) fn acts(bytes: &[u8]) {
    for begins in [None, Some(BEGINS), Some(0)] {
        let Some(source) = source(bytes) else { return };
        let _ = read_acts(source, &Chosen::default(), begins);
    }
    if let Some(moment) = std::str::from_utf8(bytes).ok().and_then(Moment::read) {
        drop(written(moment.second));
    }
}

/// Reads the bytes as a record of the number of VMs available over time.
pub(crate) fn availability(bytes: &[u8]) {
    let _ = SpotAvailability::is_trace(bytes);
    let Some(source) = source(bytes) else { return };
    let Ok((read, _)) = SpotAvailability::read(source, &Chosen::default()) else { return };
    for of in [read.begun_at(Span::from_secs(900)), read.delayed_by(Span::from_secs(900)), read] {
        let mut now = Time::ZERO;
        while let Some(next) = of.next_change(now) {
            assert!(next > now, "{next} {now}");
            assert!(of.count_at(next).is_some());
            now = next;
        }
    }
}

/// Reads the bytes as instance types and data of the spot advisor.
pub(crate) fn catalogue(bytes: &[u8]) {
    if let Some(source) = source(bytes) {
        let _ = read_types(source, &Chosen::default());
    }
    if let Some(source) = source(bytes) {
        let _ = read_advisor(source, "us-east-1");
    }
}

/// Reads the bytes as compressed files of all kinds.
pub(crate) fn packed(bytes: &[u8]) {
    let Some(mut source) = source(bytes) else { return };
    let _ = source.is_json();
    let mut content = Vec::new();
    let _ = source.into_input().take(LONGEST).read_to_end(&mut content);
}
