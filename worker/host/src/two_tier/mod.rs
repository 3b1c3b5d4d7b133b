//! The cost and gain of two VMs on one processor of this host, beside what section 2.1 of
//! the MEASY paper measured on its cluster.
//!
//! A foreground job runs alone and then again with a background job on the same processors, as
//! `dormouse-task parallel` under the control groups of a worker's VMs; a processor is a core to
//! which both are pinned. The figures are those that sections 2.1 and 3.2 of the paper define:
//!
//! - *loss* of the foreground: 1 − T(alone) / T(with a neighbour), for the same work. The
//!   paper's model lets such a job progress at 1 − loss.
//! - *utilisation* of the background: the x of its model, in which a background process
//!   progresses at x · (1 − u_fg) / u_bg; so x = rate · u_bg / (1 − u_fg), where the rate is the
//!   background's progress as a part of its progress alone, and the usages u are those of both
//!   alone. It is the part of the idle cycles that became progress.
//! - *share*: the part of the idle cycles that the kernel charged to the background, progress
//!   or not.
//!
//! [`TwoTierResults::sharing`] hands the distributions on to the virtual model.

mod case;
mod error;
mod host;
mod job;
mod json;
mod measure;
mod results;

pub use case::{JobPair, ProcessCase};
pub use error::TwoTierError;
pub use host::TwoTierHost;
pub use measure::Measurement;
pub use results::{
    LOSS, LOST, Metric, PaperComparison, SHARE, TwoTierResults, UTILISATION, utilisation,
};

/// Default foreground usages to measure, in per cent: those of the paper's jobs (section 3.1).
pub const USAGES: [u32; 7] = [40, 50, 60, 70, 80, 90, 100];

/// Default number of pairs of a foreground and a background job per case: all then takes less than four minutes.
pub const PAIRS: u64 = 7;

/// A measurement is repeated if other programs used more than this fraction of the processors' time, which is about the
/// size of the losses to be measured.
const DISTURBED: f64 = 0.02;

/// Greatest number of attempts at one measurement. On a busy host the attempt with the least load counts, and the
/// results say how much load there was.
const TRIES: usize = 3;

/// Measures `seeds` pairs of jobs in each case and at each foreground usage. `progress` gets the
/// number of finished measurements and the total.
///
/// Must be called while there is only one thread.
///
/// # Errors
///
/// The host can't measure, or a job failed.
pub fn measure(
    host: &TwoTierHost,
    usages: &[u32],
    seeds: u64,
    mut progress: impl FnMut(usize, usize),
) -> Result<TwoTierResults, TwoTierError> {
    let cases: Vec<ProcessCase> =
        ProcessCase::ALL.into_iter().filter(|c| c.processes() <= host.cores()).collect();
    let all = cases.len() * usages.len() * usize::try_from(seeds).unwrap_or(usize::MAX);
    let mut measured = TwoTierResults::default();
    let block = host.time_of_a_block()?;
    for seed in 1..=seeds {
        for &case in &cases {
            let alone = measure::background_alone(host, &JobPair::draw(case, seed), block)?;
            for &usage in usages {
                let pair = JobPair::draw(case, seed);
                let both = || measure::measure_both(host, &pair, usage, block, &alone);
                let (measurement, tries) = measure_quietest(both)?;
                measured.all.push(measurement);
                measured.again += tries - 1;
                progress(measured.all.len(), all);
            }
        }
    }
    Ok(measured)
}

/// Repeats a measurement until it is undisturbed or the tries are used up; returns the quietest one
/// and the number of tries.
fn measure_quietest<E>(
    mut measure: impl FnMut() -> Result<Measurement, E>,
) -> Result<(Measurement, usize), E> {
    let mut best = measure()?;
    let mut tries = 1;
    while best.elsewhere > DISTURBED && tries < TRIES {
        let again = measure()?;
        tries += 1;
        if again.elsewhere < best.elsewhere {
            best = again;
        }
    }
    Ok((best, tries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbed_measurement_is_made_again_but_not_for_ever() {
        let tried = |elsewhere: &[f64]| {
            let mut left = elsewhere.iter();
            let of = |elsewhere| Measurement { elsewhere, ..measure::tests::MEASUREMENT };
            let measured = measure_quietest(|| left.next().copied().map(of).ok_or("one too many"));
            measured.map(|(of, tries)| (of.elsewhere, tries))
        };
        assert_eq!(tried(&[0.01]), Ok((0.01, 1)));
        assert_eq!(tried(&[0.5, 0.01]), Ok((0.01, 2)));
        assert_eq!(tried(&[0.5, 0.3, 0.4]), Ok((0.3, 3)));
    }
}
