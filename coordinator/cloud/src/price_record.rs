//! Records of spot prices, as providers and those who watch them write them down.

use std::collections::BTreeSet;

use dormouse_units::{Price, Span, Time};

use crate::rows::Record;
use crate::{PriceTrace, RowError};

/// The prices of a type as they were written down: seconds of 1970, or of anything else, and prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceRecord(Vec<(i64, Price)>);

impl PriceRecord {
    /// Reads rows such as `2009-12-01 01:43:17,0.425` or `6000,0.425`: seconds and dollars an hour.
    ///
    /// # Errors
    ///
    /// The first row that is of another form, or one too many.
    pub fn read(text: &str) -> Result<Self, RowError> {
        let record = Record {
            row: "time and price",
            right: "write it like: 2009-12-01 01:43:17,0.425, or with seconds: 6000,0.425",
            fewer: "leave out what the run doesn't reach",
        };
        let read = |row: &str| {
            let (at, price) = row.split_once(',')?;
            Some((second(at.trim())?, price.trim().parse::<Price>().ok()?))
        };
        record.rows(text, |row| row == "time,price", read).map(Self)
    }

    /// Its first and its last second.
    fn ends(&self) -> Option<(i64, i64)> {
        let times = || self.0.iter().map(|(at, _)| *at);
        Some((times().min()?, times().max()?))
    }

    /// From its first to its last price; `None`: it has none.
    #[must_use]
    pub fn length(&self) -> Option<Span> {
        let (first, last) = self.ends()?;
        Some(Span::from_secs(u64::try_from(last - first).unwrap_or(0)))
    }

    /// Rows that don't stand where they belong, in words.
    #[must_use]
    pub fn oddities(&self) -> Option<String> {
        let rows = &self.0;
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

    /// The prices of a run that begins so long after its first; `None`: it has ended by then.
    #[must_use]
    pub fn from(&self, start: Span) -> Option<PriceTrace> {
        let (first, last) = self.ends()?;
        let start = i64::try_from(start.as_micros() / 1_000_000).unwrap_or(i64::MAX);
        let begins = first.saturating_add(start);
        // The price at the beginning is the last one before it.
        let since = |at: i64| Time::from_secs(u64::try_from(at - begins).unwrap_or(0));
        let mut rows = self.0.clone();
        rows.sort_by_key(|(at, _)| *at);
        (begins <= last)
            .then(|| PriceTrace::new(rows.iter().map(|(at, price)| (since(*at), *price)).collect()))
    }
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
        let text = "time,price\n2009-12-01 00:10:00,0.3\n2009-12-01 00:00:00,0.1\n\
                    2009-12-01 00:05:00,0.2\n2009-12-01 00:05:00,0.2\n2009-12-01 00:07:00,0.2\n";
        let record = PriceRecord::read(text).unwrap();
        let price = |text: &str| text.parse::<Price>().unwrap();
        let s = Time::from_secs;
        let odd = record.oddities().unwrap();
        let astray = "1 of 5 rows are earlier than the one before and were sorted in; 1 have";
        assert!(odd.starts_with(astray), "{odd}");
        assert_eq!(
            record.from(Span::ZERO).unwrap().steps(),
            [(s(0), price("0.1")), (s(300), price("0.2")), (s(600), price("0.3"))]
        );
        assert_eq!(
            record.from(Span::from_secs(450)).unwrap().steps(),
            [(s(0), price("0.2")), (s(150), price("0.3"))]
        );
        assert_eq!(record.from(Span::from_secs(3_600)), None);
        assert_eq!(record.length(), Some(Span::from_secs(600)));
        let empty = PriceRecord::read("\n").unwrap();
        assert_eq!((empty.length(), empty.oddities()), (None, None));
        let error = PriceRecord::read("6000,0.4\n6001;0.5\n").unwrap_err();
        assert_eq!((error.line, error.row.as_str()), (2, "6001;0.5"));
        assert!(error.what.contains("is no time and price"), "{error}");
    }
}
