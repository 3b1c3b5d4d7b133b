//! Collection of a file's requests in memory, to sort them by time.

use dormouse_cloud::Market;
use dormouse_input::{LeftOut, written};
use dormouse_model::VmRequest;
use dormouse_units::{Span, Time};

use super::error::RequestFileFlaw;
use super::kinds::NumberedTypes;
use super::rules::RequestsRead;

/// One request of a file in 24 bytes of memory.
#[derive(Clone, Copy, Debug)]
struct HeldRequest {
    /// Begin and end of the request's VM, in microseconds on the file's clock.
    at: i64,
    until: i64,
    kind: u32,
    market: Market,
}

/// Stands for the end of a VM whose end is not in the file.
pub(super) const UNSEEN: i64 = i64::MAX;

/// Collects all requests of a file that is read as a whole: 24 MB for a million, and as much again
/// while they are sorted.
#[derive(Debug, Default)]
pub(super) struct RequestCollector {
    all: Vec<HeldRequest>,
    /// The latest instant in the file so far, in microseconds on the file's clock; `None`: no instant was read yet.
    last: Option<i64>,
    /// Begin time in microseconds and line number of each request whose end is not in the file.
    unseen: Vec<(i64, u64)>,
    pub(super) left_out: LeftOut,
    pub(super) changed: LeftOut,
}

impl RequestCollector {
    /// Adds the request on this line; a request with a duration of zero or less is left out.
    pub(super) fn add(&mut self, (at, until): (i64, i64), kind: u32, market: Market, line: u64) {
        self.note_instant(at);
        if until == UNSEEN {
            self.unseen.push((at, line));
        } else {
            self.note_instant(until);
            if until <= at {
                self.left_out.add(if until < at { BEFORE } else { NOTHING }, line);
                return;
            }
        }
        self.all.push(HeldRequest { at, until, kind, market });
    }

    /// Records an instant of the file, to know its end.
    pub(super) fn note_instant(&mut self, at: i64) {
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

/// Properties of a file's times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileTimes {
    /// True if the times are dates, counted from 1970.
    pub(super) are_dates: bool,
    /// True if times are used as the file gives them, not counted from the file's first instant.
    pub(super) are_kept: bool,
    /// True if VMs that end at the very last instant ran longer than the file.
    pub(super) ends_cut: bool,
}

/// The requests of a file sorted by time.
#[derive(Debug)]
pub(super) struct SortedRequests {
    all: std::vec::IntoIter<HeldRequest>,
    kinds: NumberedTypes,
    /// Instant on the file's clock, in microseconds, at which the run begins.
    zero: i64,
}

impl RequestCollector {
    /// Sorts the requests and records in `read` how many were left out or changed.
    ///
    /// # Errors
    ///
    /// There are no requests.
    pub(super) fn sort_requests(
        mut self,
        kinds: NumberedTypes,
        times: FileTimes,
        read: &mut RequestsRead,
    ) -> Result<SortedRequests, RequestFileFlaw> {
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
            return Err(RequestFileFlaw::Empty);
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
        Ok(SortedRequests { all, kinds, zero })
    }
}

/// Writes microseconds as seconds, with a fraction only if there is one.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn seconds(us: i64) -> f64 {
    us as f64 / 1e6
}

impl Iterator for SortedRequests {
    type Item = (Time, VmRequest);

    fn next(&mut self) -> Option<Self::Item> {
        let HeldRequest { at, until, kind, market } = self.all.next()?;
        let at_us = u64::try_from(at.saturating_sub(self.zero)).unwrap_or_default();
        let duration = Span::from_micros(u64::try_from(until - at).unwrap_or_default());
        let kind = self.kinds.name(kind).clone();
        Some((Time::from_micros(at_us), VmRequest { kind, market, duration }))
    }
}
