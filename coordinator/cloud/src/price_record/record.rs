//! Prices of a type as recorded, in any order.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_units::{Price, Span, Time};

use super::dates::RecordDates;
use super::oddities::describe_oddities;
use crate::PriceTrace;
use dormouse_input::{Moment, written};

/// Recorded prices of a type, each with its time in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceRecord {
    pub(super) rows: Vec<(i64, Price)>,
    pub(super) zones: ZoneStatistics,
    /// Number of rows left out as repetitions of the same time and price.
    pub(super) repeated: usize,
}

/// Statistics of the time zones in a record's times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ZoneStatistics {
    /// Number of dates with a time zone.
    pub(super) with: usize,
    /// Number of dates without a time zone.
    pub(super) without: usize,
    /// Offsets of the record's time zones from UTC, in seconds east.
    pub(super) east: BTreeSet<i64>,
}

/// Rule that decides whether rows are taken to be in reverse order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewestFirst {
    /// Rows are in reverse order if the last row is not later than the first: the provider's call
    /// returns the newest first.
    Usually,
    /// Rows are in reverse order if more rows are earlier than their predecessor than are later.
    WhereMostAre,
    /// Rows are never in reverse order: of several rows at one time the last one counts.
    Never,
}

impl PriceRecord {
    /// Appends a price with its time.
    pub(super) fn push(&mut self, at: Moment, price: Price) {
        self.rows.push((at.second, price));
        self.zones.with += usize::from(at.has_zone == Some(true));
        self.zones.without += usize::from(at.has_zone == Some(false));
        self.zones.east.insert(at.east);
    }

    /// Finishes the record after all rows: sorts it by time and drops repetitions. Of equal times
    /// the last row counts.
    pub(super) fn finish_record(mut self, newest_first: NewestFirst) -> Self {
        let steps = self.rows.windows(2).map(|pair| pair[1].0.cmp(&pair[0].0));
        let is_turned = match newest_first {
            NewestFirst::Usually => {
                self.rows.first().zip(self.rows.last()).is_some_and(|(one, last)| one.0 >= last.0)
            }
            NewestFirst::Never => false,
            NewestFirst::WhereMostAre => steps.map(|step| step as i64).sum::<i64>() < 0,
        };
        if is_turned {
            self.rows.reverse();
        }
        let mut seen = BTreeMap::new();
        let is_sorted = self.rows.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !is_sorted {
            let mut is_last = vec![true; self.rows.len()];
            for (n, row) in self.rows.iter().enumerate() {
                if let Some(before) = seen.insert(*row, n) {
                    is_last[before] = false;
                    self.repeated += 1;
                }
            }
            let mut is_last = is_last.into_iter();
            self.rows.retain(|_| is_last.next().unwrap_or(true));
        }
        self.rows.shrink_to_fit();
        self
    }

    /// Number of recorded prices without repetitions.
    #[must_use]
    pub const fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// The earliest and the latest second of the prices; `None`: there are none.
    fn first_and_last(&self) -> Option<(i64, i64)> {
        let times = || self.rows.iter().map(|(at, _)| *at);
        Some((times().min()?, times().max()?))
    }

    /// True if times are dates and not bare numbers of seconds.
    pub(super) const fn is_dated(&self) -> bool {
        self.zones.with + self.zones.without > 0
    }

    /// Dates of the earliest and the latest price; `None`: there is no price, or times are bare
    /// numbers.
    #[must_use]
    pub fn dates(&self) -> Option<RecordDates> {
        self.first_and_last().filter(|_| self.is_dated()).map(RecordDates::new)
    }

    /// Time from the earliest to the latest price; `None`: there is no price.
    #[must_use]
    pub fn length(&self) -> Option<Span> {
        let (first, last) = self.first_and_last()?;
        Some(Span::from_secs(u64::try_from(last - first).unwrap_or(0)))
    }

    /// Describes misplaced and repeated rows, times of two time zones, and gaps; `None`: there are none.
    #[must_use]
    pub fn describe_oddities(&self) -> Option<String> {
        describe_oddities(self)
    }

    /// Prices of a run that begins `start` after the earliest price; `None`: the record has ended
    /// by then.
    #[must_use]
    pub fn from(&self, start: Span) -> Option<PriceTrace> {
        let (first, last) = self.first_and_last()?;
        let since = |at: i64| Time::from_secs(u64::try_from(at - first).unwrap_or(0));
        let rows = self.rows.iter().map(|(at, price)| (since(*at), *price)).collect();
        (Time::ZERO + start <= since(last)).then(|| PriceTrace::new(rows).begun_at(start))
    }

    /// The record as CSV in order of time, with dates (UTC) or numbers as in the record; reading
    /// this CSV gives the same prices and times.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut rows = self.rows.clone();
        // A stable sort: the last of those of one time, which holds, stays the last.
        rows.sort_by_key(|(at, _)| *at);
        let mut text = "time,price\n".to_owned();
        for (at, price) in rows {
            #[expect(clippy::cast_precision_loss, reason = "prices are below 2^53 nanodollars")]
            let usd = price.as_nanos_per_hour() as f64 / 1e9;
            let at = if self.is_dated() { written(at) } else { at.to_string() };
            text.push_str(&format!("{at},{usd}\n"));
        }
        text
    }
}
