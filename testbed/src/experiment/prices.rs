//! Spot prices that change, of `cloud.prices`: files of prices.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dormouse_cloud::PriceTrace;
use dormouse_units::{Price, Span, Time, TypeName};

use super::cloud::{Types, is_spot_type};
use super::document::{self, Node, path_of};
use super::error::Mistakes;
use super::sections::{PricesPart, PricesSection};
use super::{InputError, Place};

/// Most rows of a file: they become a part of the run's log.
const MOST_ROWS: usize = 100_000;

/// The prices of some spot types. What is odd about a file and was set right is told in `notes`.
pub(crate) fn check(
    prices: &BTreeMap<TypeName, PricesSection>,
    cloud: &Node,
    types: &Types,
    notes: &mut Vec<String>,
    found: &mut Mistakes,
) -> BTreeMap<TypeName, PriceTrace> {
    let node_of = |name: &TypeName| cloud.get("prices")?.get(name.as_str());
    let mut all = BTreeMap::new();
    for (name, section) in prices {
        let Some(node) = node_of(name) else { continue };
        if is_spot_type(name.as_str(), &node.place, Some(types), found)
            && let Some(trace) = found.take(of_type(section, node, notes))
        {
            all.insert(name.clone(), trace);
        }
    }
    all
}

fn of_type(
    section: &PricesSection,
    node: &Node,
    notes: &mut Vec<String>,
) -> Result<PriceTrace, InputError> {
    let (file, start) = match section {
        PricesSection::Whole(file) => (file, Span::ZERO),
        PricesSection::Part(PricesPart { file, start }) => {
            (file, start.parse().unwrap_or_default())
        }
    };
    let path = path_of(file, &node.place);
    let rows = rows(&path, &document::read(&path)?)?;
    notes.extend(oddities(&rows).map(|what| format!("{}: {what}", path.display())));
    let times = || rows.iter().map(|(at, _)| *at);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        let place = Place::of(&path.display().to_string());
        let remedy = "write rows like: 2009-12-01 01:43:17,0.425";
        return Err(InputError::new(&place, "it has no prices", remedy));
    };
    let begins = i64::try_from(start.as_micros() / 1_000_000).unwrap_or(i64::MAX);
    let begins = first.saturating_add(begins);
    if begins > last {
        let what = format!("the record ends {} after its first row", length(last - first));
        return Err(InputError::new(&node.place, what, "give an earlier start"));
    }
    // The price at the beginning is the last one before it.
    let since = |at: i64| Time::from_secs(u64::try_from(at - begins).unwrap_or(0));
    let prices = PriceTrace::new(in_order(rows).map(|(at, price)| (since(at), price)).collect());
    Ok(prices)
}

/// Rows that don't stand where they belong, in words.
fn oddities(rows: &[(i64, Price)]) -> Option<String> {
    let (mut times, mut again) = (BTreeSet::new(), 0);
    for (at, _) in rows {
        again += usize::from(!times.insert(at));
    }
    let astray = rows.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
    (astray + again > 0).then(|| {
        format!(
            "{astray} of {} rows are earlier than the one before and were sorted in; {again} have \
             the time of another, and the last of those holds",
            rows.len()
        )
    })
}

/// The rows by time; those of one time as they stand in the file.
fn in_order(mut rows: Vec<(i64, Price)>) -> impl Iterator<Item = (i64, Price)> {
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter()
}

fn length(seconds: i64) -> Span {
    Span::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// The rows of a file, in its order: second and price.
fn rows(path: &Path, text: &str) -> Result<Vec<(i64, Price)>, InputError> {
    let mut rows = Vec::new();
    for (line, whole) in (1..).zip(text.lines()) {
        let row = whole.trim();
        if row.is_empty() || (line == 1 && row == "time,price") {
            continue;
        }
        let read = row.split_once(',').and_then(|(at, price)| {
            Some((second(at.trim())?, price.trim().parse::<Price>().ok()?))
        });
        let Some(read) = read else {
            let what =
                format!("'{}' is no time and price", row.chars().take(60).collect::<String>());
            let remedy = "write it like: 2009-12-01 01:43:17,0.425, or with seconds: 6000,0.425";
            return Err(InputError::new(&Place::line(path, line, whole), what, remedy));
        };
        if rows.len() == MOST_ROWS {
            let what = format!("it has more than {MOST_ROWS} rows");
            return Err(InputError::new(
                &Place::line(path, line, whole),
                what,
                "leave out what the run doesn't reach",
            ));
        }
        rows.push(read);
    }
    Ok(rows)
}

/// A number of seconds, or a date and time, as seconds of 1970.
fn second(text: &str) -> Option<i64> {
    let Some((date, time)) = text.split_once([' ', 'T']) else {
        return text.parse().ok().filter(|s| (0..=1 << 40).contains(s));
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let fine = (1970..10_000).contains(&year)
        && (1..=days).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    fine.then(|| days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Three numbers.
fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok());
    let all: Option<Vec<i64>> = text.split(between).map(|part| digits(part).flatten()).collect();
    all?.try_into().ok()
}

/// The days of the Gregorian calendar before this one, counted from 1970: years begin in March, so
/// that the leap day is the last of its year.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_years = 365 * year + year / 4 - year / 100 + year / 400;
    of_years + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds_of_1970() {
        for (text, seconds) in [
            ("1970-01-01 00:00:00", 0),
            ("2000-02-29 23:59:59", 951_868_799),
            ("2009-12-01 01:43:17", 1_259_631_797),
            ("2100-03-01T00:00:00", 4_107_542_400),
            ("6000", 6_000),
        ] {
            assert_eq!(second(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "x",
            "-1",
            "2009-02-29 00:00:00",
            "2009-13-01 00:00:00",
            "2009-01-01 24:00:00",
            "2009-01-01",
            "2009-01-01 00:00",
            "+2009-01-01 00:00:00",
            "1e3",
            "1969-12-31 00:00:00",
        ] {
            assert_eq!(second(text), None, "{text}");
        }
    }

    #[test]
    fn a_record_may_be_unsorted_and_repeat_itself_and_the_run_begins_where_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let text = "time,price\n2009-12-01 00:10:00,0.3\n2009-12-01 00:00:00,0.1\n\
                    2009-12-01 00:05:00,0.2\n2009-12-01 00:05:00,0.2\n2009-12-01 00:07:00,0.2\n";
        std::fs::write(folder.path().join("p.csv"), text).unwrap();
        let source = folder.path().join("x.toml").display().to_string();
        let of = |value: &str| {
            let root = document::from_toml(&source, &format!("p = {value}")).unwrap();
            let (node, mut notes) = (root.get("p").unwrap(), Vec::new());
            let json = node.json();
            let section: PricesSection = dormouse_units::written::read(&json).unwrap();
            of_type(&section, node, &mut notes).map(|trace| (trace, notes))
        };
        let price = |text: &str| text.parse::<Price>().unwrap();
        let s = Time::from_secs;
        let (trace, notes) = of("\"p.csv\"").unwrap();
        let astray =
            "p.csv: 1 of 5 rows are earlier than the one before and were sorted in; 1 have";
        assert!(notes.len() == 1 && notes[0].contains(astray), "{notes:?}");
        assert_eq!(
            trace.steps(),
            [(s(0), price("0.1")), (s(300), price("0.2")), (s(600), price("0.3"))]
        );
        assert_eq!(
            of("{ file = \"p.csv\", start = \"7m30s\" }").unwrap().0.steps(),
            [(s(0), price("0.2")), (s(150), price("0.3"))]
        );
        let late = of("{ file = \"p.csv\", start = \"1h\" }").unwrap_err().to_string();
        assert!(late.contains("ends 10m after its first row"), "{late}");
    }
}
