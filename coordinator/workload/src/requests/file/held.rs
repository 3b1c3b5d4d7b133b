//! Requests that are held in memory until all are known, to be put in order.

use dormouse_cloud::Market;
use dormouse_input::{LeftOut, written};
use dormouse_model::Request;
use dormouse_units::{Span, Time};

use super::error::Flaw;
use super::kinds::Kinds;
use super::rules::RequestsRead;

/// A request of a file; 24 bytes of memory.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// The times at which it comes and ends, in microseconds as the file counts them.
    at: i64,
    until: i64,
    kind: u32,
    market: Market,
}

/// The end of a VM that is there for longer than the file goes.
pub(super) const UNSEEN: i64 = i64::MAX;

/// All requests of a file that is read in whole: 24 MB a million, and as much for a moment while they
/// are sorted.
#[derive(Debug, Default)]
pub(super) struct Hold {
    all: Vec<Held>,
    /// The latest instant that the file has.
    last: Option<i64>,
    /// Beginnings and lines of those whose end is not seen.
    unseen: Vec<(i64, u64)>,
    pub(super) left_out: LeftOut,
    pub(super) changed: LeftOut,
}

impl Hold {
    /// Adds a request, which stands on this line; without any duration it is left out.
    pub(super) fn add(&mut self, (at, until): (i64, i64), kind: u32, market: Market, line: u64) {
        self.see(at);
        if until == UNSEEN {
            self.unseen.push((at, line));
        } else {
            self.see(until);
            if until <= at {
                self.left_out.add(if until < at { BEFORE } else { NOTHING }, line);
                return;
            }
        }
        self.all.push(Held { at, until, kind, market });
    }

    /// Notes an instant at which the file goes on.
    pub(super) fn see(&mut self, at: i64) {
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
    }

    /// Number of requests that end at the last instant of the file.
    fn end_last(&self) -> u64 {
        self.all.iter().filter(|held| Some(held.until) == self.last).count() as u64
    }
}

pub(super) const STILL_THERE: &str = "still there at the end of the trace, and counted until then";
pub(super) const THERE_BEFORE: &str =
    "there before the trace began, and counted from its beginning";
const NOTHING: &str = "without any duration";
const BEFORE: &str = "that end before they begin";
pub(super) const NO_TYPE: &str = "of a size that no type for their market holds";

/// What is known of the times of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// They are dates, and counted from 1970.
    pub(super) are_dates: bool,
    /// They are left as they are.
    pub(super) are_kept: bool,
    /// VMs that end at the last instant of all were there for longer.
    pub(super) ends_cut: bool,
}

/// Requests of a file in order of time.
#[derive(Debug)]
pub(super) struct Sorted {
    all: std::vec::IntoIter<Held>,
    kinds: Kinds,
    /// Microseconds of the file that are the beginning of the run.
    zero: i64,
}

impl Hold {
    /// Sorts the requests, and says in `read` what became of them.
    ///
    /// # Errors
    ///
    /// There are none.
    pub(super) fn sorted(
        mut self,
        kinds: Kinds,
        times: Times,
        read: &mut RequestsRead,
    ) -> Result<Sorted, Flaw> {
        let last = self.last.unwrap_or_default();
        if times.ends_cut {
            let cut = self.end_last();
            if cut > 0 {
                read.notes.push(format!(
                    "{cut} end with the trace itself, and may have been there for longer"
                ));
            }
        }
        let (all, left_out) = (&mut self.all, &mut self.left_out);
        all.iter_mut().for_each(|held| held.until = held.until.min(last));
        all.retain(|held| held.until > held.at);
        for (at, line) in self.unseen {
            match at < last {
                true => self.changed.add(STILL_THERE, line),
                false => left_out.add(NOTHING, line),
            }
        }
        read.left_out = std::mem::take(left_out);
        read.changed = self.changed;
        if all.is_empty() {
            return Err(Flaw::Empty);
        }
        all.sort_by_key(|held| held.at);
        let first = all.first().map_or(0, |held| held.at);
        let zero = if times.are_kept { 0 } else { first };
        read.begins_unix_s = times.are_dates.then(|| zero.div_euclid(1_000_000));
        if zero != 0 {
            let first = match times.are_dates {
                true => {
                    format!("{}, UTC where they have no zone", written(zero.div_euclid(1_000_000)))
                }
                false => format!("{} s of the file", seconds(zero)),
            };
            read.notes.push(format!("times count from the first request: {first}"));
        }
        let all = self.all.into_iter();
        Ok(Sorted { all, kinds, zero })
    }
}

/// Seconds, with parts of one only where there are some.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn seconds(us: i64) -> f64 {
    us as f64 / 1e6
}

impl Iterator for Sorted {
    type Item = (Time, Request);

    fn next(&mut self) -> Option<Self::Item> {
        let Held { at, until, kind, market } = self.all.next()?;
        let at_us = u64::try_from(at.saturating_sub(self.zero)).unwrap_or_default();
        let duration = Span::from_micros(u64::try_from(until - at).unwrap_or_default());
        let kind = self.kinds.name(kind).clone();
        Some((Time::from_micros(at_us), Request { kind, market, duration }))
    }
}
