//! The figures of runs ([`crate::Sample`]) by name: how they are written for people.

/// A figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in `table.csv`.
    pub name: &'static str,
    /// Its name for people, with its unit.
    pub heading: &'static str,
    /// Digits behind the point.
    pub digits: usize,
    /// Whether it is in tables of many runs for people.
    pub in_table: bool,
}

const fn metric(
    name: &'static str,
    heading: &'static str,
    digits: usize,
    in_table: bool,
) -> Metric {
    Metric { name, heading, digits, in_table }
}

/// All that there are, in the order in which they are reported.
pub const METRICS: [Metric; 15] = [
    metric("mean_response_s", "mean response, s", 1, true),
    metric("mean_bounded_slowdown", "bounded slowdown", 3, true),
    metric("utilisation", "utilisation", 3, true),
    metric("makespan_s", "makespan, s", 0, true),
    metric("cost_usd", "cost, $", 4, true),
    metric("deadline_met", "deadline met", 2, true),
    metric("hibernations", "VMs hibernated", 2, false),
    metric("resumes", "VMs resumed", 2, false),
    metric("on_demand_vms", "later on-demand VMs", 2, false),
    metric("promotions", "promotions", 1, true),
    metric("swaps", "swaps", 1, false),
    metric("kills", "kills", 1, false),
    metric("migrations", "migrations", 1, false),
    metric("response_s", "response after the warm-up, s", 1, false),
    metric("bounded_slowdown", "bounded slowdown after the warm-up", 3, false),
];

impl Metric {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }
}
