//! Resamples a price record from its own weeks, so that an interval covers what another record of
//! the same market would have shown.
//!
//! The method is the circular block bootstrap (Politis and Romano, "A circular block-resampling
//! procedure for stationary data", in Exploring the Limits of Bootstrap, 1992; blocks after Künsch,
//! Annals of Statistics 17, 1989): blocks of consecutive weeks, with the first week following the
//! last one, are drawn with replacement until there are as many weeks as in the record. A week
//! stands for the jobs that begin in it. These begin at regular times, so that two resamples differ
//! only by the record.

use dormouse_units::{RandomStream, Span, Time};

/// Length of a week, in which every day and hour has the same weight.
const WEEK: Span = Span::from_secs(7 * 86_400);

/// Default length of a block in weeks: prices of one week resemble those of the next, and a job may
/// wait for several.
pub(super) const WEEKS: usize = 4;

/// Index of the week of a record in which a time lies.
pub(super) fn week_of(at: Time) -> usize {
    usize::try_from(at.as_micros() / WEEK.as_micros()).unwrap_or(usize::MAX)
}

/// Times at which jobs begin until the record ends: one in each period of length `every`, the first after half a period.
pub(super) fn regular(until: Time, every: Span) -> impl Iterator<Item = Time> {
    let first = Time::ZERO + Span::from_micros(every.as_micros() / 2);
    (0..).map(move |n| first + every.times(n)).take_while(move |at| *at < until)
}

/// Start times of jobs, drawn at random over the record of a series; all bids, variants and schemes get the same times.
pub(super) fn starts(seed: u64, series: &str, until: Time) -> impl Iterator<Item = Time> {
    let mut chance = RandomStream::named_stream(seed, "starts", series);
    let micros = usize::try_from(until.as_micros()).unwrap_or(usize::MAX).max(1);
    std::iter::repeat_with(move || Time::from_micros(chance.draw_below(micros) as u64))
}

/// Weeks of a resample of a record of `weeks` weeks, drawn with this seed in blocks of `block`
/// weeks. All records of the same length get the same weeks, so that types are resampled together.
pub(super) fn drawn(seed: u64, weeks: usize, block: usize) -> Vec<usize> {
    let mut chance = RandomStream::new(seed, "weeks of the record", 0);
    let firsts = std::iter::repeat_with(|| chance.draw_below(weeks));
    let all = firsts.flat_map(|first| (first..first + block).map(|week| week % weeks.max(1)));
    all.take(weeks).collect()
}

/// Indices of a resample of `all` entities, drawn with replacement under this seed.
pub(super) fn with_replacement(seed: u64, purpose: &str, all: usize) -> Vec<usize> {
    let mut chance = RandomStream::new(seed, purpose, 0);
    (0..all).map(|_| chance.draw_below(all)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_are_drawn_in_blocks_that_may_begin_anywhere() {
        let weeks = drawn(1, 51, 4);
        let is_same = |seed| drawn(seed, 51, 4) == weeks;
        assert_eq!((weeks.len(), is_same(1), is_same(2)), (51, true, false));
        for block in weeks.chunks(4) {
            assert!(block.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 51), "{block:?}");
        }
        // Each week is drawn about as often as every other: those at the ends are not left out.
        let mut counts = [0_u32; 8];
        (0..4_000).flat_map(|seed| drawn(seed, 8, WEEKS)).for_each(|week| counts[week] += 1);
        assert!(counts.iter().all(|count| (3_700..4_300).contains(count)), "{counts:?}");
        assert_eq!((drawn(1, 1, 4), drawn(1, 0, 4)), (vec![0], vec![]));
    }

    #[test]
    fn jobs_begin_at_regular_times() {
        let hours = |n: u64| Span::from_secs(3_600 * n);
        let times: Vec<Time> = regular(Time::ZERO + hours(9), hours(4)).collect();
        assert_eq!(times, [Time::ZERO + hours(2), Time::ZERO + hours(6)]);
        assert_eq!([167, 168].map(|h| week_of(Time::ZERO + hours(h))), [0, 1]);
        assert_eq!(with_replacement(3, "types", 5).len(), 5);
    }
}
