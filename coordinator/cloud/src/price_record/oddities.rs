//! Oddities of a record of prices, in words.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_units::Price;

use dormouse_input::{Moment, written};

/// A time without a price is a gap if it is this many times the usual one, and longer than a day.
const TIMES_USUAL: i64 = 10;
const DAY: i64 = 86_400;

/// Rows that don't stand where they belong, times of two zones, and gaps, in words; `None`: there
/// are none.
pub(super) fn oddities(rows: &[(Moment, Price)]) -> Option<String> {
    let all = [misplaced(rows), zones(rows), gaps(rows)];
    let all: Vec<_> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn misplaced(rows: &[(Moment, Price)]) -> Option<String> {
    let (mut prices, mut again, mut others) = (BTreeMap::new(), 0, 0);
    for (at, price) in rows {
        if let Some(before) = prices.insert(at.second, price) {
            again += 1;
            others += usize::from(before != price);
        }
    }
    let astray = rows.windows(2).filter(|pair| pair[1].0.second < pair[0].0.second).count();
    (astray + again > 0).then(|| {
        format!(
            "{astray} of {} rows are earlier than the one before and were sorted in; {again} have \
             the time of another, {others} of them another price, and the last of those holds",
            rows.len()
        )
    })
}

fn zones(rows: &[(Moment, Price)]) -> Option<String> {
    let of = |has_zone| rows.iter().filter(|(at, _)| at.has_zone == Some(has_zone)).count();
    let (with, without) = (of(true), of(false));
    let some = (with > 0 && without > 0).then(|| {
        format!("{with} rows name their time zone and {without} do not: these are taken as UTC")
    });
    let all: BTreeSet<i64> = rows.iter().map(|(at, _)| at.east).collect();
    let several = (all.len() > 1)
        .then(|| format!("times are of {} zones: all were made those of UTC", all.len()));
    let both: Vec<_> = [some, several].into_iter().flatten().collect();
    (!both.is_empty()).then(|| both.join("; "))
}

fn gaps(rows: &[(Moment, Price)]) -> Option<String> {
    let times: BTreeSet<i64> = rows.iter().map(|(at, _)| at.second).collect();
    let times: Vec<i64> = times.into_iter().collect();
    let mut between: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    between.sort_unstable();
    let usual = *between.get(between.len() / 2)?;
    let is_gap = |between: i64| between > DAY.max(usual.saturating_mul(TIMES_USUAL));
    let gaps = times.windows(2).filter(|pair| is_gap(pair[1] - pair[0]));
    let longest = gaps.clone().max_by_key(|pair| pair[1] - pair[0])?;
    let said = |second: i64| match rows.iter().any(|(at, _)| at.has_zone.is_some()) {
        true => written(second),
        false => format!("second {second}"),
    };
    #[expect(clippy::cast_precision_loss, reason = "days are few")]
    let days = (longest[1] - longest[0]) as f64 / DAY as f64;
    Some(format!(
        "no price was written down for more than a day {} times; the longest is {days:.1} days, from {} \
         to {}, and the price before it holds meanwhile",
        gaps.count(),
        said(longest[0]),
        said(longest[1])
    ))
}
