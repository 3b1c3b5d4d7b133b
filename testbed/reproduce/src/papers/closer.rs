//! A closer look at what trials with few runs suggest: the factor that comes nearest to a claim, under as
//! many seeds as a cause takes.

use super::cause::{FactorTrials, LEAST_PAIRS, nearest_factor};
use super::claim::PaperClaim;
use super::factor::ReadingFactor;
use super::paper::{PaperEvaluation, PaperPart};
use super::pattern::unique;
use super::readings::{PaperReading, ReadingMaker};
use crate::sweep::{Samples, SweepCell, SweepError};

/// Trials of one claim with enough pairs of runs: without any factor, and with the nearest one.
#[derive(Debug)]
pub(super) struct CloserTrial {
    /// The claim, in words.
    pub(super) says: String,
    /// The reading without any factor.
    pub(super) without: PaperReading,
    /// The reading with the factor that brought the claim's figure nearest to the paper's under few seeds.
    pub(super) with: PaperReading,
    /// Number of factors that were tried under few seeds.
    pub(super) tried: usize,
    /// Settings in which the runs of these trials differ from the runs of our figures, such as `workload.jobs=3000`.
    pub(super) set: String,
}

/// The factor that comes nearest to a claim under few seeds and is to be tried again under more.
struct FactorLead {
    claim: PaperClaim,
    factor: ReadingFactor,
    tried: usize,
}

/// Settings of cells in words, each once: `workload.jobs=3000`.
pub(super) fn settings_in_words(set: &[(String, String)]) -> String {
    unique(set.iter().map(|(_, set)| set.clone())).join(", ")
}

/// Tries the nearest factor of each claim that needs a cause once more, under [`LEAST_PAIRS`] seeds. Only
/// the cells of the claim are run, which have to be among `cases`.
///
/// # Errors
///
/// The errors of `run`.
pub(super) fn look_closer<S, R>(
    (paper, parts, cases): (&PaperEvaluation, &[&PaperPart], &[String]),
    (ours, trials, set): (&PaperReading, &[PaperReading], &[(String, String)]),
    settings: S,
    run: &mut R,
) -> Result<Vec<CloserTrial>, SweepError>
where
    S: Fn(&str, &[ReadingFactor]) -> Vec<String> + Copy,
    R: FnMut(&str, Vec<SweepCell>, u64) -> Result<Samples, SweepError>,
{
    let all = FactorTrials { readings: trials, are_ours: false, closer: &[] };
    let leads = ours.claims.iter().filter_map(|judged| {
        let (factor, tried) = nearest_factor(paper, judged, all)?;
        Some(FactorLead { claim: judged.claim.clone(), factor, tried })
    });
    let set = settings_in_words(set);
    let mut closer = Vec::new();
    for FactorLead { claim, factor, tried } in leads {
        let patterns = claim.patterns();
        let of_claim = unique(patterns.iter().flat_map(|pattern| paper.expand(pattern)));
        let cells: Vec<String> = of_claim.into_iter().filter(|case| cases.contains(case)).collect();
        let mut maker = ReadingMaker {
            paper,
            parts,
            cases: cells,
            beside: Vec::new(),
            settings,
            run: &mut *run,
        };
        let stage = format!("the cause of: {}", claim.says);
        let mut made = maker.make(&stage, vec![Vec::new(), vec![factor]], LEAST_PAIRS as u64)?;
        if let (Some(with), Some(without)) = (made.pop(), made.pop()) {
            let (says, set) = (claim.says, set.clone());
            closer.push(CloserTrial { says, without, with, tried, set });
        }
    }
    Ok(closer)
}
