//! Temporally constrained preemptions: Kadupitiya, Jadhao, Sharma, "Modeling The Temporally Constrained
//! Preemptions of Transient Cloud VMs" (HPDC 2020), Figures 1, 2 and 4 to 9.
//!
//! Figures 1, 2 and 7 are of a record of lifetimes; Figures 4 to 6 and 8 of laws alone; Figure 9 of
//! experiments. A case is what is made, and for whom; the words of a figure say at which age or length.

mod checkpoints;
mod draw;
mod evidence;
mod laws;
mod lifetimes;
mod order;
mod reuse;
mod running_time;

use std::collections::BTreeMap;

use dormouse_analysis::RESAMPLED;

use draw::Draw;
pub(super) use evidence::Evidence;

/// The data file.
pub(super) const DATA: &str = include_str!("paper.toml");

/// Figures by `WORD/NAME`.
type Figures = BTreeMap<String, f64>;

/// The figures of a case that no chance has a part in: of the whole record, or of the published laws. `None`: there is
/// no such case.
pub(super) fn exact(case: &str, evidence: &Evidence) -> Option<Figures> {
    figures(case, evidence, Draw::Whole)
}

/// What a seed decides: the figures of its resample of the record, or of its fit to lifetimes drawn from a published
/// law, each named as the exact one and marked; and what is simulated.
pub(super) fn drawn(case: &str, evidence: &Evidence, seed: u64) -> Option<Figures> {
    if let Some(mode) = case.strip_prefix("simulated/") {
        return checkpoints::simulated(mode, evidence, seed);
    }
    let resampled = figures(case, evidence, Draw::Resample(seed)).unwrap_or_default();
    Some(resampled.into_iter().map(|(name, x)| (name + RESAMPLED, x)).collect())
}

fn figures(case: &str, evidence: &Evidence, draw: Draw) -> Option<Figures> {
    let (what, of) = case.split_once('/')?;
    match what {
        "cdf" => lifetimes::taken(of, evidence, draw),
        "fit" => lifetimes::fits(of, evidence, draw),
        "order" => order::order(of, evidence, draw),
        "waste" => running_time::wasted_by_length(of, evidence, draw),
        "start" => reuse::by_start(of, evidence, draw),
        "length" => reuse::by_length(of, evidence, draw),
        "wrong" => reuse::by_a_wrong_model(of, evidence, draw),
        "begin" => checkpoints::by_start(of, evidence, draw),
        "takes" => checkpoints::by_length(of, evidence, draw),
        "schedule" => checkpoints::schedule(of, evidence, draw),
        "simulated" => Some(Figures::new()),
        _ => None,
    }
}

/// A number as one.
#[expect(clippy::cast_precision_loss, reason = "hours, minutes and VMs are few")]
const fn number(n: usize) -> f64 {
    n as f64
}
