//! OPIE: Lopez Garcia, Fernandez del Castillo, Campos Plasencia, "An efficient cloud scheduler
//! design supporting preemptible instances": its host tables, its Figure 2, and the benefit of the
//! scheduler.

pub mod latency;
mod tables;

use std::collections::BTreeMap;

use self::latency::{SCENARIOS, SCHEDULERS, measure};
use super::host_load::{LoadOfOthers, OTHERS};

pub(super) use tables::{blocks, selections};

/// Data file of this paper: its experiments, printed values and claims.
pub(super) const DATA: &str = include_str!("paper.toml");

/// Latencies of all schedulers in a case such as `hosts-4/empty-normal`: `opie/mean_us`, and more; each with the load of other
/// programs on this host during the measurement.
pub(super) fn latencies(case: &str, seed: u64) -> Option<BTreeMap<String, f64>> {
    let (hosts, scenario) = case.split_once('/')?;
    let hosts = hosts.strip_prefix("hosts-")?.parse().ok()?;
    let scenario = SCENARIOS.into_iter().find(|known| known.name == scenario)?;
    let named = |(scheduler, figures): (&str, BTreeMap<&str, f64>)| {
        let named = figures.into_iter().map(move |(name, x)| (format!("{scheduler}/{name}"), x));
        named.collect::<Vec<_>>()
    };
    let load = LoadOfOthers::begin();
    let measured = SCHEDULERS.into_iter().zip(measure(hosts, scenario, seed));
    let mut figures: BTreeMap<String, f64> = measured.flat_map(named).collect();
    if let Some(others) = load.others() {
        let of = |scheduler: &str| (format!("{scheduler}/{OTHERS}"), others);
        figures.extend(SCHEDULERS.map(of));
    }
    Some(figures)
}
