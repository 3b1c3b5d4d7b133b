//! Requests in CSV files and in experiments: written requests read back, and each mistake is reported with its line and
//! the remedy.

use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::Arc;

use dormouse_cloud::{Market, PlacementRule, ResourceVector, built_in};
use dormouse_model::VmRequest;
use dormouse_units::{Bytes, Ppm, Span, Time};
use proptest::prelude::*;

use crate::{
    DurationLaw, Offer, RequestArrivals, RequestFile, RequestModel, RequestSource, RequestSpec,
    RequestStream, RequestWriter, RequestsWanted, TypeShare,
};

/// An offer of the built-in types `ec2-2020` on hosts of at most 4 vCPUs.
fn offer() -> Arc<Offer> {
    let types = built_in("ec2-2020").expect("a catalogue");
    let hosts =
        [ResourceVector::new(2, Bytes::new(1 << 40)), ResourceVector::new(4, Bytes::new(1 << 30))];
    Arc::new(Offer::new(&types, &hosts, &PlacementRule::default()))
}

fn read(text: &[u8], offer: Option<Arc<Offer>>) -> Result<Vec<(Time, VmRequest)>, String> {
    let file = Ok(Cursor::new(text.to_vec()));
    let csv =
        RequestFile::from_file(Path::new("some.csv"), file, offer).map_err(|e| e.to_string())?;
    csv.collect::<Result<_, _>>().map_err(|e| e.to_string())
}

fn request(kind: &str, market: Market, duration: Span) -> VmRequest {
    VmRequest { kind: kind.into(), market, duration }
}

#[test]
fn rows_are_read_as_people_write_them() {
    let text = "\u{feff}at, type, market, duration\r\n\
                0,c3.large,normal,45m\r\n\n\
                1.5, \"c3.large\" ,preemptible,3600\n\
                1m30s,c3.large,on-demand,0.000001\n\
                1m30s,c3.large,spot,1h 30m";
    let all = read(text.as_bytes(), Some(offer())).expect("all are right");
    let of = |us, market, seconds| {
        let duration = Span::from_secs_f64(seconds).expect("a time");
        (Time::from_micros(us), request("c3.large", market, duration))
    };
    let expected = [
        of(0, Market::OnDemand, 2_700.0),
        of(1_500_000, Market::Spot, 3_600.0),
        of(90_000_000, Market::OnDemand, 1e-6),
        of(90_000_000, Market::Spot, 5_400.0),
    ];
    assert_eq!(all, expected);
}

#[test]
fn each_kind_of_bad_row_is_named() {
    let head = "at,type,market,duration\n10,c3.large,spot,5m\n";
    let long = format!("20,{},spot,5m", "c".repeat(100_000));
    for (row, says) in [
        ("junk", "'junk' has 1 fields, not 4; write at,type,market,duration, such as: 12.5,"),
        ("20,c3.large,spot", "has 3 fields"),
        ("20,c3.large,spot,5m,more", "has 5 fields"),
        ("20;c3.large;spot;5m", "has 1 fields"),
        ("soon,c3.large,spot,5m", "its at, 'soon', is not a time; write seconds, such as 90.5"),
        (",c3.large,spot,5m", "its at, '', is not a time"),
        ("1e3,c3.large,spot,5m", "its at, '1e3', is not a time"),
        ("1.2.3,c3.large,spot,5m", "its at, '1.2.3', is not a time"),
        ("-20,c3.large,spot,5m", "its at, -20, is negative"),
        (
            "9,c3.large,spot,5m",
            "its time, 9s, is before that of the row above it, 10s; sort the rows",
        ),
        ("99999999999999999999,c3.large,spot,5m", "its at, '99999999999999999999', is not a time"),
        ("2000000000000,c3.large,spot,5m", "its at, 2000000000000, is too large"),
        ("20,c3.lrage,spot,5m", "there is no instance type 'c3.lrage'; did you mean 'c3.large'?"),
        ("20,,spot,5m", "there is no instance type ''"),
        ("20,c3.large,stop,5m", "there is no market 'stop'; write on-demand (or normal) or spot"),
        ("20,c3.large,Spot,5m", "there is no market 'Spot'"),
        ("20,c3.large,spot,-5m", "its duration, -5m, is negative"),
        ("20,c3.large,spot,0", "its duration is 0; write a length above 0"),
        ("20,c3.large,spot,5 parsecs", "its duration, '5 parsecs', is not a time"),
        ("20,t3.large,spot,5m", "t3.large is not sold in the spot market; request it in the other"),
        ("20,c3.xlarge,spot,5m", "a VM of c3.xlarge takes 4 vCPUs"),
        (&long, "it is longer than 65536 bytes; give a CSV file of requests"),
        ("\u{0}\u{1}\u{7f}", "'???' has 1 fields"),
    ] {
        let error = read(format!("{head}{row}\n").as_bytes(), Some(offer())).expect_err(row);
        assert!(error.starts_with("some.csv, line 3: ") && error.contains(says), "{error}");
        assert!(error.contains("; ") && !error.contains('\n'), "no remedy, or two lines: {error}");
    }
    let error = read(&[head.as_bytes(), b"20,\xff\xfe,spot,5m\n"].concat(), None);
    assert!(error.is_err_and(|e| e.contains("line 3: its byte 4 is not text in UTF-8")));
    // Where the offer is unknown, any type will do.
    assert!(read(format!("{head}20,my.type,spot,5m").as_bytes(), None).is_ok());
    assert!(read(format!("{head}20,,spot,5m").as_bytes(), None).is_err());
}

#[test]
fn a_file_begins_with_its_header_and_has_a_request() {
    for (text, says) in [
        ("", "some.csv has no requests; write a row for each under at,type,market,duration"),
        ("\n \n", "has no requests"),
        ("at,type,market,duration\n", "has no requests"),
        ("0,c3.large,spot,5m\n", "line 1: '0,c3.large,spot,5m' is not the header"),
        ("at,type,market\n", "line 1: 'at,type,market' has no column duration or end, so that it"),
        (
            "at,duration\n",
            "has no column type or vcpus, so that it is not the header of requests; write",
        ),
        ("\n; MaxProcs: 8\n", "line 2: '; MaxProcs: 8' is not the header"),
    ] {
        let error = read(text.as_bytes(), None).expect_err(says);
        assert!(error.contains(says), "{error}");
    }
    let nowhere = Path::new("/nonexistent/x.csv");
    let missing: io::Result<Cursor<Vec<u8>>> = Err(io::ErrorKind::NotFound.into());
    let error = RequestFile::from_file(nowhere, missing, None).expect_err("no file").to_string();
    assert!(error.contains("/nonexistent/x.csv"), "{error}");
    let cut = [0x1f, 0x8b, 8, 0, 0];
    assert!(read(&cut, None).is_err_and(|error| error.contains("can't read some.csv")));
}

fn written(all: &[(Time, VmRequest)]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = RequestWriter::new(&mut bytes)?;
    for (at, request) in all {
        writer.write(*at, request)?;
    }
    writer.finish()?;
    Ok(bytes)
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).expect("to memory");
    gzip.finish().expect("to memory")
}

#[test]
fn names_that_no_file_can_hold_are_refused() {
    for name in ["a,b", "a\"b", "a\nb", " a", ""] {
        let all = [(Time::ZERO, request(name, Market::Spot, Span::from_secs(1)))];
        let error = written(&all).expect_err(name);
        assert!(error.to_string().contains("use letters and digits"), "{error}");
    }
}

proptest! {
    /// An exported stream of requests is read back to the identical stream, plain and gzipped.
    #[test]
    fn what_is_written_reads_back(
        rows in proptest::collection::vec(
            (0_u64..1 << 40, "[A-Za-z0-9._-][A-Za-z0-9 ._-]{0,8}[A-Za-z0-9]", any::<bool>(), 1_u64..1 << 50),
            1..30,
        ),
    ) {
        let mut at = Time::ZERO;
        let all: Vec<_> = rows
            .into_iter()
            .map(|(gap, name, is_spot, us)| {
                at += Span::from_micros(gap);
                let market = if is_spot { Market::Spot } else { Market::OnDemand };
                (at, request(&name, market, Span::from_micros(us)))
            })
            .collect();
        let bytes = written(&all).expect("plain names");
        prop_assert_eq!(read(&bytes, None), Ok(all.clone()));
        prop_assert_eq!(read(&gzipped(&bytes), None), Ok(all));
    }

    #[test]
    fn no_bytes_upset_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes, Some(offer()));
        let _ = read(&[b"at,type,market,duration\n", &bytes[..]].concat(), None);
    }

    #[test]
    fn no_text_upsets_the_reader(text in "[-0-9.,a-z3\"\n ]{0,300}") {
        let _ = read(format!("at,type,market,duration\n{text}").as_bytes(), Some(offer()));
    }
}

fn second(n: u64) -> Span {
    Span::from_secs(n)
}

fn model() -> RequestModel {
    let share = |kind: &str| TypeShare { kind: kind.into(), weight: Ppm::ONE, preemptible: None };
    RequestModel {
        requests: Some(100),
        lasts: None,
        arrivals: RequestArrivals::Poisson { every: second(30) },
        duration: DurationLaw::Exponential { mean: second(60), least: None, most: None },
        preemptible_duration: None,
        preemptible: Ppm::new(500_000),
        mix: vec![share("c3.large")],
    }
}

/// All mistakes in a source of requests, each as `KEY: MISTAKE`.
fn flaws(source: &RequestSource) -> Vec<String> {
    let offer = offer();
    source
        .flaws(Some(&offer))
        .iter()
        .map(|flaw| format!("{}: {}", flaw.key, flaw.refusal))
        .collect()
}

/// Mistakes in a model of requests that is valid except for one change.
fn flawed(change: impl FnOnce(&mut RequestModel)) -> Vec<String> {
    let mut model = model();
    change(&mut model);
    flaws(&RequestSource::Model { model })
}

#[test]
fn a_model_that_can_not_be_drawn_is_named_by_its_keys() {
    assert_eq!(flawed(|_| ()), Vec::<String>::new());
    let law = |law: DurationLaw| flawed(|model| model.duration = law);
    let arrivals = |arrivals: RequestArrivals| flawed(|model| model.arrivals = arrivals);
    let bursts = |calm, burst| RequestArrivals::Bursts {
        every: second(60),
        burst_every: second(1),
        calm,
        burst,
    };
    let diurnal = |period, peak, weekend| RequestArrivals::Diurnal {
        every: second(60),
        amplitude: Ppm::new(2_000_000),
        period,
        peak: Some(peak),
        weekend: Some(weekend),
    };
    let micro = Span::from_micros(1);
    let cut =
        |mean, least, most| DurationLaw::Exponential { mean, least: Some(least), most: Some(most) };
    for (found, says) in [
        (flawed(|m| m.requests = None), &["model: it has no end; say how many"][..]),
        (
            flawed(|m| (m.requests, m.lasts) = (None, Some(second(1 << 36)))),
            &["model.lasts: 2.3e9 requests are expected, more than 1e9"],
        ),
        (flawed(|m| m.mix.clear()), &["model.mix: no type is requested; add one"]),
        (
            flawed(|m| m.mix[0].weight = Ppm::ZERO),
            &["model.mix.0.weight: 0 is not a weight; write a number above 0"],
        ),
        (
            flawed(|m| m.mix.push(m.mix[0].clone())),
            &["model.mix.1.type: c3.large is there a second time; take one out"],
        ),
        (
            flawed(|m| m.mix[0].preemptible = Some(Ppm::new(1_500_000))),
            &["model.mix.0.preemptible: 1.5 is not a share; write a number from 0 to 1"],
        ),
        (
            flawed(|m| m.preemptible = Ppm::new(1_500_000)),
            &["model.preemptible: 1.5 is not a share"],
        ),
        (
            flawed(|m| m.mix[0].kind = "c3.lrage".into()),
            &["model.mix.0.type: there is no instance type 'c3.lrage'; did you mean 'c3.large'?"],
        ),
        (
            flawed(|m| m.mix[0].kind = "t3.large".into()),
            &["model.mix.0.type: t3.large is not sold in the spot market"],
        ),
        (
            flawed(|m| m.mix[0].kind = "c3.xlarge".into()),
            &["model.mix.0.type: a VM of c3.xlarge takes 4 vCPUs"],
        ),
        (
            law(DurationLaw::Uniform { least: second(9), most: second(8) }),
            &["model.duration: its longest duration, 8s, is shorter than its shortest, 9s"],
        ),
        (law(DurationLaw::Fixed { length: Span::ZERO }), &["model.duration: 0s is not a duration"]),
        (
            law(cut(second(60), second(600), second(700))),
            &["model.duration: fewer than one of a thousand of its draws lies between"],
        ),
        (
            flawed(|m| m.preemptible_duration = Some(cut(second(600), micro, micro))),
            &["model.preemptible-duration: fewer than one of a thousand"],
        ),
        (
            law(DurationLaw::Lognormal {
                mean: second(60),
                variation: Ppm::ZERO,
                least: Some(second(61)),
                most: None,
            }),
            &["model.duration: fewer than one of a thousand"],
        ),
        (
            arrivals(RequestArrivals::Poisson { every: Span::ZERO }),
            &["model.arrivals.every: 0s is out of range; write a length above 0"],
        ),
        (
            arrivals(diurnal(second(60), second(60), Ppm::new(1_000_001))),
            &[
                "model.arrivals.amplitude: 2 is out of range; write a number from 0 to 1",
                "model.arrivals.weekend: 1.000001 is out of range",
                "model.arrivals.peak: the peak is not within the period of 1m",
            ],
        ),
        (
            arrivals(bursts(micro, micro)),
            &["model.arrivals.burst: bursts come and go a thousand times"],
        ),
    ] {
        let is_each = found.iter().zip(says).all(|(found, says)| found.starts_with(says));
        assert!(is_each && found.len() == says.len(), "{found:#?} is not {says:#?}");
    }
}

#[test]
fn written_requests_are_in_order_and_there_to_be_had() {
    let spec = |at, kind: &str, market, duration| RequestSpec {
        at: second(at),
        kind: kind.into(),
        market,
        duration: second(duration),
        count: 1,
    };
    let request = vec![
        spec(5, "c3.large", Market::Spot, 60),
        spec(4, "c3.large", Market::Spot, 0),
        spec(6, "t3.large", Market::Spot, 60),
        spec(6, "c3.xlarge", Market::OnDemand, 60),
    ];
    let found = flaws(&RequestSource::Written { request });
    let says = [
        "request.1.at: 4s is before the request above it; write the requests in the order",
        "request.1.duration: 0s is too little; write a length above 0",
        "request.2.type: t3.large is not sold in the spot market",
        "request.3.type: a VM of c3.xlarge takes 4 vCPUs",
    ];
    let is_each = found.iter().zip(says).all(|(found, says)| found.starts_with(says));
    assert!(is_each && found.len() == says.len(), "{found:#?}");
}

/// The stream of any source equals the stream of the file that it was exported to; and a source is unchanged after
/// being written as JSON and read.
#[test]
fn sources_of_all_kinds_give_their_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stream.csv");
    let of = |source: &RequestSource| {
        let json = serde_json::to_string(source).expect("JSON");
        let kept: RequestSource = serde_json::from_str(&json).expect("the same");
        assert_eq!(&kept, source);
        #[expect(clippy::disallowed_methods, reason = "the crate opens no file, its tests do")]
        let open = |path: &Path| Ok(Box::new(std::fs::File::open(path)?) as _);
        let wanted = RequestsWanted { source: &kept, offer: Some(offer()), seed: 1, open };
        let stream = RequestStream::open(&wanted).map_err(|e| e.to_string())?;
        stream.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())
    };
    let all = of(&RequestSource::Model { model: model() }).expect("a good model");
    assert_eq!(all.len(), 100);
    #[expect(clippy::disallowed_methods, reason = "the crate opens no file, its tests do")]
    std::fs::write(&path, written(&all).expect("plain names")).expect("written");
    let csv = RequestSource::Csv { csv: path, rules: Box::default() };
    assert_eq!(of(&csv), Ok(all.clone()));
    let spec = |(at, request): &(Time, VmRequest)| RequestSpec {
        at: at.since(Time::ZERO),
        kind: request.kind.clone(),
        market: request.market,
        duration: request.duration,
        count: 1,
    };
    let written = RequestSource::Written { request: all.iter().map(spec).collect() };
    assert_eq!(of(&written), Ok(all));
    let mut bad = model();
    bad.mix[0].kind = "c3.lrage".into();
    let error = of(&RequestSource::Model { model: bad }).expect_err("there is no such type");
    assert!(error.starts_with("workload.model.mix.0.type: there is no instance type"), "{error}");
}
