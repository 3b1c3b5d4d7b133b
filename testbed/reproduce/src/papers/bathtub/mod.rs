//! Temporally constrained preemptions: Kadupitiya, Jadhao, Sharma, "Modeling The Temporally Constrained
//! Preemptions of Transient Cloud VMs" (HPDC 2020), Figures 1, 2 and 4 to 9.
//!
//! Figures 1, 2 and 7 are of a record of lifetimes; Figures 4 to 6 and 8 of laws alone; Figure 9 of
//! experiments. A case is what is made, and for whom; the words of a figure say at which age or length.

mod checkpoints;
mod laws;
mod lifetimes;
mod reuse;
mod running_time;

use std::collections::BTreeMap;

use dormouse_fit::Record;

/// The data file.
pub(super) const DATA: &str = include_str!("paper.toml");

/// Figures by `WORD/NAME`.
type Figures = BTreeMap<String, f64>;

/// The figures of a case that no chance has a part in; `None`: there is no such case.
pub(super) fn exact(case: &str, record: Option<&Record>) -> Option<Figures> {
    let (what, of) = case.split_once('/')?;
    match what {
        "cdf" => lifetimes::taken(of, record?),
        "fit" => lifetimes::fits(of, record?),
        "order" => lifetimes::order(of, record?),
        "waste" => running_time::wasted_by_length(of),
        "start" => reuse::by_start(of),
        "length" => reuse::by_length(of),
        "wrong" => reuse::by_a_wrong_model(of, record?),
        "begin" => checkpoints::by_start(of),
        "takes" => checkpoints::by_length(of),
        "schedule" => checkpoints::schedule(of),
        "simulated" => checkpoints::is_mode(of).then(Figures::new),
        _ => None,
    }
}

/// Those that a seed decides.
pub(super) fn drawn(case: &str, record: Option<&Record>, seed: u64) -> Option<Figures> {
    let (what, of) = case.split_once('/')?;
    match what {
        "fit" => lifetimes::resampled_fits(of, record?, seed),
        "order" => lifetimes::resampled_order(of, record?, seed),
        "simulated" => checkpoints::simulated(of, seed),
        _ => Some(Figures::new()),
    }
}

/// A number as one.
#[expect(clippy::cast_precision_loss, reason = "hours, minutes and VMs are few")]
const fn number(n: usize) -> f64 {
    n as f64
}
