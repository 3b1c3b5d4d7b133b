//! `dormouse reproduce measy/two-tier`: what two VMs on one processor cost and gain each other
//! on this host, beside what section 2.1 of the MEASY paper measured on its cluster.
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
//! [`Measured::sharing`] hands the distributions on to the virtual model.

mod case;
mod error;
mod host;
mod job;
mod measure;
mod report;
mod results;

pub use case::{Case, Pair};
pub use error::TwoTierError;
pub use host::Host;
pub use measure::Measurement;
pub use report::write;
pub use results::{Measured, Row};

/// Foreground usages that are measured unless others are asked for, in per cent: those of the
/// paper's jobs (section 3.1).
pub const USAGES: [u32; 7] = [40, 50, 60, 70, 80, 90, 100];

/// Pairs of jobs that are drawn for each case unless another number is asked for: with these all
/// takes less than four minutes.
pub const PAIRS: u64 = 7;

/// Measures everything: `seeds` pairs of jobs in each case, at each foreground usage. `progress`
/// is told how many measurements of how many are done.
///
/// To be called with one thread only.
///
/// # Errors
///
/// This host can't do it, or a job broke.
pub fn measure(
    host: &Host,
    usages: &[u32],
    seeds: u64,
    mut progress: impl FnMut(usize, usize),
) -> Result<Measured, TwoTierError> {
    let cases: Vec<Case> =
        Case::ALL.into_iter().filter(|c| c.processes() <= host.cores()).collect();
    let all = cases.len() * usages.len() * usize::try_from(seeds).unwrap_or(usize::MAX);
    let mut measured = Measured::default();
    let mut busy = host::Busy::begin(host)?;
    let block = host.time_of_a_block()?;
    for seed in 1..=seeds {
        for &case in &cases {
            let alone = measure::background_alone(host, &Pair::draw(case, seed), block)?;
            for &usage in usages {
                let pair = Pair::draw(case, seed);
                measured.all.push(measure::both(host, &pair, usage, block, &alone)?);
                progress(measured.all.len(), all);
            }
        }
    }
    measured.elsewhere = busy.elsewhere(host)?;
    Ok(measured)
}
