//! The prices of a type, in whatever order they were written down.

use dormouse_units::{Price, Span, Time};

use super::dates::Dates;
use super::oddities::oddities;
use crate::rows::Record;
use crate::{PriceTrace, RowError};
use dormouse_input::Moment;

/// The prices of a type as they were written down: moments and prices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceRecord(Vec<(Moment, Price)>);

/// Part of an entry that can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPrice {
    /// The time is not a moment that can be read.
    Time,
    /// The price is not a number that can be read.
    Price,
}

impl PriceRecord {
    /// Reads rows such as `2009-12-01 01:43:17,0.425` or `6000,0.425`: a time, in UTC where it names no
    /// zone (`Z`, `+01:00`), or seconds; and dollars an hour.
    ///
    /// # Errors
    ///
    /// The first row that is of another form, one row too many, or both dates and bare numbers.
    pub fn read(text: &str) -> Result<Self, RowError> {
        let record = Record {
            row: "time and price",
            right: "write it like: 2009-12-01 01:43:17,0.425, or with seconds: 6000,0.425",
            fewer: "leave out what the run doesn't reach",
        };
        let read = |row: &str| {
            let (at, price) = row.split_once(',')?;
            Some((Moment::read(at.trim())?, price.trim().parse::<Price>().ok()?))
        };
        let is_heading = |row: &str| row.eq_ignore_ascii_case("time,price");
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let all = Self(record.rows(text, is_heading, read)?);
        // Nobody can know what a bare number is counted from beside dates.
        let is_number = |(at, _): &(Moment, Price)| at.has_zone.is_none();
        match all.0.iter().position(|row| is_number(row) != is_number(&all.0[0])) {
            None => Ok(all),
            Some(_) => {
                let what = "it has both dates and bare numbers of seconds".to_owned();
                let remedy = "write all times in one way";
                Err(RowError { line: 1, row: String::new(), what, remedy })
            }
        }
    }

    /// Adds a price, dollars an hour, with its time, both as [`Self::read`] reads them.
    ///
    /// # Errors
    ///
    /// The part of the entry that can't be used.
    pub fn add(&mut self, at: &str, price: &str) -> Result<(), BadPrice> {
        let at = Moment::read(at.trim()).ok_or(BadPrice::Time)?;
        self.0.push((at, price.trim().parse().map_err(|_| BadPrice::Price)?));
        Ok(())
    }

    /// This record in the order of time, if it was written with the newest price first.
    #[must_use]
    pub fn oldest_first(mut self) -> Self {
        if let (Some(first), Some(last)) = (self.0.first(), self.0.last())
            && first.0.second >= last.0.second
        {
            self.0.reverse();
        }
        self
    }

    /// Number of prices that were written down.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.0.len()
    }

    /// The earliest and the latest second of the record's prices; `None`: it has no prices.
    fn ends(&self) -> Option<(i64, i64)> {
        let times = || self.0.iter().map(|(at, _)| at.second);
        Some((times().min()?, times().max()?))
    }

    /// Dates of the earliest and the latest price; `None`: there is no price, or times are bare
    /// numbers.
    #[must_use]
    pub fn dates(&self) -> Option<Dates> {
        let is_dated = self.0.first().is_some_and(|(at, _)| at.has_zone.is_some());
        self.ends().filter(|_| is_dated).map(Dates::new)
    }

    /// Time from the earliest to the latest price; `None`: there is no price.
    #[must_use]
    pub fn length(&self) -> Option<Span> {
        let (first, last) = self.ends()?;
        Some(Span::from_secs(u64::try_from(last - first).unwrap_or(0)))
    }

    /// Rows that don't stand where they belong, times of two zones, and gaps, in words.
    #[must_use]
    pub fn oddities(&self) -> Option<String> {
        oddities(&self.0)
    }

    /// Prices of a run that begins `start` after the earliest price; `None`: the record has ended
    /// by then.
    #[must_use]
    pub fn from(&self, start: Span) -> Option<PriceTrace> {
        let (first, last) = self.ends()?;
        let since = |at: i64| Time::from_secs(u64::try_from(at - first).unwrap_or(0));
        let rows = self.0.iter().map(|(at, price)| (since(at.second), *price)).collect();
        (Time::ZERO + start <= since(last)).then(|| PriceTrace::new(rows).begun_at(start))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn a_record_may_be_unsorted_and_repeat_itself_and_the_run_begins_where_it_is_told() {
        let text = "time,price\n2009-12-01 00:10:00,0.3\n2009-12-01 00:00:00,0.1\n\
                    2009-12-01 00:05:00,0.2\n2009-12-01 00:05:00,0.2\n2009-12-01 00:07:00,0.2\n";
        let record = PriceRecord::read(text).unwrap();
        let price = |text: &str| text.parse::<Price>().unwrap();
        let s = Time::from_secs;
        let odd = record.oddities().unwrap();
        let astray = "1 of 5 rows are earlier than the one before and were sorted in; 1 have the time of \
                      another, 0 of them another price";
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
        let zones = "2009-12-01 00:00:00Z,1\n2009-12-01 02:00:00+01:00,2\n2009-12-01 00:30:00,3\n";
        let zones = PriceRecord::read(zones).unwrap();
        let odd = zones.oddities().unwrap();
        assert!(odd.contains("2 rows name their time zone and 1 do not"), "{odd}");
        assert!(odd.contains("times are of 2 zones"), "{odd}");
        let other = PriceRecord::read("\u{feff}Time,Price\n6000,1\n6000,2\n6000,2\n").unwrap();
        let odd = other.oddities().unwrap();
        assert!(odd.contains("2 have the time of another, 1 of them another price"), "{odd}");
        let mixed = PriceRecord::read("6000,1\n2009-12-01 00:00:00,1\n").unwrap_err();
        assert!(mixed.what.contains("both dates and bare numbers"), "{mixed}");
        let half_hours = [0, 1_800, 3_600].map(s);
        let steps = zones.from(Span::ZERO).unwrap();
        assert_eq!(steps.steps().iter().map(|step| step.0).collect::<Vec<_>>(), half_hours);
        let gap = "2009-12-01 00:00:00,1\n2009-12-01 01:00:00,2\n2009-12-01 02:00:00,1\n\
                   2009-12-04 02:00:00,2\n2009-12-04 03:00:00,1\n";
        let odd = PriceRecord::read(gap).unwrap().oddities().unwrap();
        let longest = "3.0 days, from 2009-12-01 02:00:00 to 2009-12-04 02:00:00";
        assert!(odd.contains("for more than a day 1 times") && odd.contains(longest), "{odd}");
        let even = (0..40).map(|day| format!("{},0.{day}\n", day * 200_000)).collect::<String>();
        assert_eq!(PriceRecord::read(&even).unwrap().oddities(), None, "that is how it is written");
        let empty = PriceRecord::read("\n").unwrap();
        assert_eq!((empty.length(), empty.oddities()), (None, None));
        let error = PriceRecord::read("6000,0.4\n6001;0.5\n").unwrap_err();
        assert_eq!((error.line, error.row.as_str()), (2, "6001;0.5"));
        assert!(error.what.contains("is no time and price"), "{error}");
    }
}
