//! Description of a price record's oddities.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_units::Price;

use super::record::{PriceRecord, ZoneStatistics};
use dormouse_input::written;

/// A time between two prices is a gap if it exceeds the usual one by this factor, and lasts longer
/// than `DAYS` days. Providers repeat an unchanged price about a day later, and may skip one
/// repetition.
const TIMES_USUAL: i64 = 10;
const DAYS: i64 = 2;
const DAY: i64 = 86_400;

/// Describes misplaced and repeated rows, times of two zones, and gaps; `None`: there are none.
pub(super) fn describe_oddities(record: &PriceRecord) -> Option<String> {
    let PriceRecord { rows, zones, repeated } = record;
    let said = match repeated {
        0 => None,
        1 => Some("1 row repeats the time and the price of another, and was left out".to_owned()),
        _ => Some(format!(
            "{repeated} rows repeat the time and the price of another, and were left out"
        )),
    };
    let all = [
        describe_misplaced(rows),
        said,
        several_zones(zones),
        describe_gaps(rows, record.is_dated()),
    ];
    let all: Vec<_> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn describe_misplaced(rows: &[(i64, Price)]) -> Option<String> {
    let astray = rows.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
    let (mut prices, mut again, mut others) = (BTreeMap::new(), 0, 0);
    for (at, price) in rows {
        if let Some(before) = prices.insert(at, price) {
            again += 1;
            others += usize::from(before != price);
        }
    }
    let all = rows.len();
    let mut said = Vec::new();
    if astray > 0 {
        let what = "rows are earlier than the one before and were sorted in";
        said.push(format!("{astray} of {all} {what}"));
    }
    if again > 0 {
        let of_all = if astray > 0 { String::new() } else { format!(" of {all} rows") };
        said.push(format!(
            "{again}{of_all} have the time of another, {others} of them another price, and the last of \
             those holds"
        ));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

fn several_zones(ZoneStatistics { with, without, east }: &ZoneStatistics) -> Option<String> {
    let some = (*with > 0 && *without > 0).then(|| {
        format!("{with} rows name their time zone and {without} do not: these are taken as UTC")
    });
    let several = (east.len() > 1)
        .then(|| format!("times are of {} zones: all were made those of UTC", east.len()));
    let both: Vec<_> = [some, several].into_iter().flatten().collect();
    (!both.is_empty()).then(|| both.join("; "))
}

fn describe_gaps(rows: &[(i64, Price)], is_dated: bool) -> Option<String> {
    let times: BTreeSet<i64> = rows.iter().map(|(at, _)| *at).collect();
    let times: Vec<i64> = times.into_iter().collect();
    let mut between: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    between.sort_unstable();
    let usual = *between.get(between.len() / 2)?;
    let is_gap = |between: i64| between > (DAYS * DAY).max(usual.saturating_mul(TIMES_USUAL));
    let gaps = times.windows(2).filter(|pair| is_gap(pair[1] - pair[0]));
    let longest = gaps.clone().max_by_key(|pair| pair[1] - pair[0])?;
    let said = |second: i64| match is_dated {
        true => written(second),
        false => format!("second {second}"),
    };
    #[expect(clippy::cast_precision_loss, reason = "days are few")]
    let days = (longest[1] - longest[0]) as f64 / DAY as f64;
    Some(format!(
        "no price was written down for more than {DAYS} days {} times; the longest is {days:.1} days, from {} \
         to {}, and the price before it holds meanwhile",
        gaps.count(),
        said(longest[0]),
        said(longest[1])
    ))
}
