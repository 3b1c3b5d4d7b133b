//! Estimates as users give them: the model of Tsafrir, Etsion and Feitelson, "Modeling user runtime estimates" (2005):
//! there are few distinct estimates, the twenty most popular ones make up nine tenths, and the longest allowed one is
//! the most popular; no estimate is below the run time. The parameters are the published ones.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_model::Submission;
use dormouse_units::{RandomStream, Span};

use crate::sampling::shuffle;

/// Error: no estimates can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EstimatesError {
    /// The longest estimate allowed is so short that the model makes no estimates below it.
    #[error("the longest estimate must be at least 1h, not {0}")]
    ShortLimit(Span),
    /// The job runs longer than the longest estimate.
    #[error("job {number} runs for {runtime}, longer than the longest estimate {longest}")]
    LongJob {
        /// Number, in the log, of the job that runs longer than the longest estimate.
        number: u64,
        /// Run time of the job.
        runtime: Span,
        /// The longest estimate that users may give.
        longest: Span,
    },
}

/// Gives every job an estimate of at most `longest`, and none below its run time. Returns the number of jobs for which
/// the model had no estimate left that covers the run time; the estimate of such a job is its run time rounded up to
/// five minutes.
///
/// # Errors
///
/// `longest` is below an hour, or a job runs longer than it.
pub fn tsafrir_estimates(
    jobs: &mut [Submission],
    longest: Span,
    seed: u64,
) -> Result<usize, EstimatesError> {
    if longest < Span::from_secs(3600) {
        return Err(EstimatesError::ShortLimit(longest));
    }
    if let Some(long) = jobs.iter().find(|job| job.runtime > longest) {
        let (number, runtime) = (long.number, long.runtime);
        return Err(EstimatesError::LongJob { number, runtime, longest });
    }
    if jobs.is_empty() {
        return Ok(0);
    }
    let longest_s = longest.as_micros() / 1_000_000;
    let mut stream = RandomStream::new(seed, "estimates", 0);
    let histogram = estimate_counts(jobs.len(), longest_s, &mut stream);
    let mut estimates: Vec<Span> = histogram
        .into_iter()
        .rev()
        .flat_map(|(seconds, count)| std::iter::repeat_n(Span::from_secs(seconds), count))
        .collect();
    Ok(assign_estimates(jobs, &mut estimates, longest, &mut stream))
}

/// Number of jobs with each estimate in seconds, for `jobs` jobs in all.
fn estimate_counts(jobs: usize, longest: u64, stream: &mut RandomStream) -> BTreeMap<u64, usize> {
    let head_times = head_times(longest);
    let ranks = popularity_ranks(stream);
    let mut share: BTreeMap<u64, f64> =
        head_times.iter().zip(ranks).map(|(&time, rank)| (time, head_percent(rank))).collect();
    let bins = number_of_bins(jobs).max(HEAD);
    let tail = tail_times(bins, longest, &head_times);
    let mut sizes: Vec<f64> = (HEAD + 1..)
        .take(tail.len())
        .map(|rank| TAIL_SIZE.0 * libm::pow(to_f64(rank), TAIL_SIZE.1))
        .collect();
    let sum: f64 = sizes.iter().sum();
    sizes.iter_mut().for_each(|s| *s *= (100.0 - HEAD_PERCENT) / sum);
    shuffle(&mut sizes, stream);
    share.extend(tail.into_iter().zip(sizes));
    to_counts(&share, jobs)
}

fn number_of_bins(jobs: usize) -> usize {
    let n = to_f64(jobs);
    let bins = BINS
        .windows(2)
        .find(|pair| n <= pair[1].0)
        .map_or_else(
            || BINS_BEYOND.0 * libm::pow(n, BINS_BEYOND.1),
            |pair| {
                let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
                y0 + (y1 - y0) * (n - x0) / (x1 - x0)
            },
        )
        .round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small, positive")]
    let bins = bins as usize;
    bins
}

/// The twenty estimates of the head (the most popular estimates) in seconds, longest first; fewer below a limit of 100
/// minutes.
fn head_times(longest: u64) -> Vec<u64> {
    let mut times: BTreeSet<u64> = JOINT_S.into_iter().filter(|&t| t < longest).collect();
    times.insert(longest);
    for step in LADDER_S {
        let mut time = longest / step * step;
        while time > 0 && times.len() < HEAD {
            times.insert(time);
            time -= step;
        }
    }
    times.into_iter().rev().take(HEAD).collect()
}

/// Draws the popularity rank of each estimate of the head, longest estimate first. The longest is the most popular. For
/// each later one, its ranks in the four logs are added to a pool; it gets the rank of the pool that no later estimate
/// has, else the more popular of two ranks drawn from the pool.
fn popularity_ranks(stream: &mut RandomStream) -> [usize; HEAD] {
    let mut ranks = [1; HEAD];
    let mut unused: BTreeSet<u8> = (2..=20).collect();
    let mut pool: Vec<u8> = POPULARITY[0].to_vec();
    for at in 1..HEAD {
        pool.extend(POPULARITY[at]);
        pool.retain(|rank| unused.contains(rank));
        let is_bound = |rank: &&u8| !POPULARITY[at + 1..].iter().flatten().any(|r| r == *rank);
        let bound = unused.iter().find(is_bound).copied();
        let chosen = bound.unwrap_or_else(|| {
            if pool.is_empty() {
                return unused.first().copied().unwrap_or(1);
            }
            pool[stream.draw_below(pool.len())].min(pool[stream.draw_below(pool.len())])
        });
        unused.remove(&chosen);
        ranks[at] = usize::from(chosen);
    }
    ranks
}

fn head_percent(rank: usize) -> f64 {
    let at = |rank: usize| {
        let (a, b, c) = HEAD_SIZE;
        a * libm::exp(b * to_f64(rank)) + c
    };
    if rank == 1 { HEAD_PERCENT - (2..=HEAD).map(at).sum::<f64>() } else { at(rank) }
}

/// The estimates of the tail (all that are not in the head) in seconds. Most are short; they are whole minutes, or, if
/// that minute is used already, up to 30 seconds off.
fn tail_times(bins: usize, longest: u64, head: &[u64]) -> Vec<u64> {
    let count = bins - HEAD;
    let a = 1.0 + TAIL_TIME.0 * libm::pow(to_f64(bins), TAIL_TIME.1);
    let mut taken: BTreeSet<u64> = head.iter().copied().collect();
    let mut times = Vec::with_capacity(count);
    for i in 1..=count {
        let x = to_f64(i) / to_f64(count);
        let y = (a - 1.0) * x / (a - x);
        let minutes = (y * to_f64(longest as usize) / 60.0).round();
        #[expect(clippy::cast_possible_truncation, reason = "at most the longest estimate")]
        let time = minutes as i64 * 60;
        let free = OFFSETS_S
            .iter()
            .filter_map(|offset| u64::try_from(time + offset).ok())
            .find(|candidate| (1..=longest).contains(candidate) && !taken.contains(candidate));
        if let Some(time) = free {
            taken.insert(time);
            times.push(time);
        }
    }
    times
}

/// Turns shares into numbers of jobs with the sum `jobs`: proportional, and then one more or less from the most popular
/// estimate on.
fn to_counts(share: &BTreeMap<u64, f64>, jobs: usize) -> BTreeMap<u64, usize> {
    let sum: f64 = share.values().sum();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most `jobs`")]
    let mut counts: BTreeMap<u64, usize> =
        share.iter().map(|(&time, &s)| (time, (s / sum * to_f64(jobs)).round() as usize)).collect();
    let mut by_share: Vec<u64> = share.keys().copied().collect();
    by_share.sort_by(|a, b| share[b].total_cmp(&share[a]));
    let mut total: usize = counts.values().sum();
    for time in by_share.iter().cycle() {
        let Some(count) = counts.get_mut(time) else { break };
        match total.cmp(&jobs) {
            std::cmp::Ordering::Equal => break,
            std::cmp::Ordering::Less => {
                *count += 1;
                total += 1;
            }
            std::cmp::Ordering::Greater if *count > 0 => {
                *count -= 1;
                total -= 1;
            }
            std::cmp::Ordering::Greater => {}
        }
    }
    counts
}

/// Assigns estimates to jobs, longest job first; each estimate is drawn uniformly from the remaining ones that cover
/// the job. Returns the number of jobs that no estimate covers.
fn assign_estimates(
    jobs: &mut [Submission],
    estimates: &mut [Span],
    longest: Span,
    stream: &mut RandomStream,
) -> usize {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&j| (std::cmp::Reverse(jobs[j].runtime), j));
    let (mut hi, mut raised) = (0, 0);
    for (at, j) in order.into_iter().enumerate() {
        let runtime = jobs[j].runtime;
        hi = hi.max(at);
        while hi + 1 < estimates.len() && runtime <= estimates[hi + 1] {
            hi += 1;
        }
        if estimates[at] < runtime {
            // No estimate that covers the job is left: it gets its run time, rounded up.
            raised += 1;
            let minutes5 = runtime.as_micros().div_ceil(300_000_000);
            jobs[j].estimate = Span::from_secs(minutes5 * 300).min(longest);
            continue;
        }
        estimates.swap(at, at + stream.draw_below(hi - at + 1));
        jobs[j].estimate = estimates[at];
    }
    raised
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn to_f64(n: usize) -> f64 {
    n as f64
}

/// Points of a line that gives the number of distinct estimates (second) by the number of jobs (first).
pub(super) const BINS: [(f64, f64); 7] = [
    (0.0, 0.0),
    (20.0, 10.0),
    (200.0, 20.0),
    (1_000.0, 35.0),
    (10_000.0, 90.0),
    (70_000.0, 340.0),
    (250_000.0, 565.0),
];

/// Factor and exponent of the power of the number of jobs that gives the number of distinct estimates beyond the last
/// point of [`BINS`].
pub(super) const BINS_BEYOND: (f64, f64) = (0.653_566, 0.547_761);

/// Popular estimates that all logs have, in seconds.
pub(super) const JOINT_S: [u64; 15] = [
    300, 900, 600, 1_200, 1_800, 3_600, 7_200, 10_800, 14_400, 18_000, 21_600, 28_800, 36_000,
    43_200, 64_800,
];

/// Round times in seconds, of whose multiples the rest of the twenty most popular estimates is chosen.
pub(super) const LADDER_S: [u64; 10] =
    [720_000, 360_000, 180_000, 36_000, 18_000, 7_200, 3_600, 1_200, 600, 300];

/// Number of most popular estimates, called the head.
pub(super) const HEAD: usize = 20;
/// Per cent of all jobs that have one of the twenty most popular estimates.
pub(super) const HEAD_PERCENT: f64 = 89.0;
/// Per cent of all jobs that have the estimate of a popularity rank in the head: a · e^(b · rank) + c.
pub(super) const HEAD_SIZE: (f64, f64, f64) = (14.0491, -0.177_531, 0.462_513);
/// Per cent of all jobs that have the estimate of a popularity rank beyond the head, in the tail: a · rank^b.
pub(super) const TAIL_SIZE: (f64, f64) = (795.6, -2.267);
/// Curvature of the tail's estimates as a function of the number of distinct estimates: 1 + a · bins^b.
pub(super) const TAIL_TIME: (f64, f64) = (12.1039, -0.6026);

/// For each rank by time (longest first), the rank by popularity in four logs.
pub(super) const POPULARITY: [[u8; 4]; HEAD] = [
    [3, 1, 1, 1],
    [1, 3, 4, 6],
    [4, 4, 10, 5],
    [17, 2, 14, 3],
    [13, 12, 20, 7],
    [7, 9, 2, 2],
    [8, 8, 3, 18],
    [18, 18, 7, 19],
    [2, 6, 12, 4],
    [6, 7, 6, 11],
    [16, 11, 19, 20],
    [10, 20, 5, 9],
    [5, 16, 18, 10],
    [15, 5, 16, 14],
    [14, 14, 9, 13],
    [19, 13, 17, 16],
    [11, 10, 15, 15],
    [12, 15, 13, 17],
    [9, 17, 8, 8],
    [20, 19, 11, 12],
];

/// Offsets in seconds that are tried in turn for an estimate of the tail until its time is not used yet.
pub(super) const OFFSETS_S: [i64; 7] = [0, 30, -30, 20, -20, 10, -10];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_has_twenty_estimates_with_the_longest_first() {
        for longest in [6_000, 43_200, 64_800, 216_000, 1_000_000] {
            let times = head_times(longest);
            assert_eq!((times.len(), times[0]), (HEAD, longest));
        }
        // An hour has only twelve multiples of five minutes.
        assert_eq!(head_times(3_600).len(), 12);
    }

    #[test]
    fn ranks_are_a_permutation() {
        for seed in 0..200 {
            let mut ranks = popularity_ranks(&mut RandomStream::new(seed, "test", 0));
            assert_eq!(ranks[0], 1);
            ranks.sort_unstable();
            assert_eq!(ranks.to_vec(), (1..=20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn counts_sum_to_the_jobs_and_the_head_to_its_share() {
        let mut stream = RandomStream::new(1, "test", 0);
        for jobs in [1, 19, 500, 20_000, 300_000] {
            let counts = estimate_counts(jobs, 64_800, &mut stream);
            assert_eq!(counts.values().sum::<usize>(), jobs);
            if jobs >= 20_000 {
                let head: usize = head_times(64_800).iter().map(|t| counts[t]).sum();
                let percent = 100.0 * to_f64(head) / to_f64(jobs);
                assert!((percent - HEAD_PERCENT).abs() < 0.5, "{percent}");
            }
        }
    }
}
