//! The figures of runs ([`crate::RunSample`]) by name, and how they are printed.

/// Description of a figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunFigure {
    /// Name of the figure in `table.csv`.
    pub name: &'static str,
    /// Heading of the figure in tables for people, with its unit.
    pub heading: &'static str,
    /// Number of decimals with which the figure is printed.
    pub digits: usize,
    /// Whether tables of many runs show the figure.
    pub in_table: bool,
    /// Value of the figure in a run without the events that it counts, such as 0 for preemptions: people see the figure
    /// only if some run has a different value. `None` if there is no such value, as for makespans.
    pub uneventful: Option<f64>,
    /// Whether the figure is 1 or 0 in each run, so that its mean over runs is a share of runs.
    pub is_share: bool,
    /// Direction in which a run is better; `None` for a figure that only describes a run.
    pub better: Option<BetterSide>,
}

/// Which of two values of a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BetterSide {
    /// The lower value is better, as for a cost.
    Lower,
    /// The higher value is better, as for a revenue.
    Higher,
}

const fn metric(
    name: &'static str,
    heading: &'static str,
    digits: usize,
    in_table: bool,
) -> RunFigure {
    RunFigure { name, heading, digits, in_table, uneventful: None, is_share: false, better: None }
}

impl RunFigure {
    /// Marks the figure as a count of events: it is 0 in a run without such events.
    const fn of_events(self) -> Self {
        Self { uneventful: Some(0.0), ..self }
    }

    /// Marks the figure as 1 for a success and 0 for a failure.
    const fn of_success(self) -> Self {
        let better = Some(BetterSide::Higher);
        Self { uneventful: Some(1.0), is_share: true, better, ..self }
    }

    /// Marks lower values as better.
    const fn less_is_better(self) -> Self {
        Self { better: Some(BetterSide::Lower), ..self }
    }

    /// Marks higher values as better.
    const fn more_is_better(self) -> Self {
        Self { better: Some(BetterSide::Higher), ..self }
    }
}

/// All figures, in the order in which they are reported.
pub const METRICS: [RunFigure; 50] = [
    metric("mean_response_s", "mean response, s", 1, true).less_is_better(),
    metric("mean_bounded_slowdown", "bounded slowdown", 3, true).less_is_better(),
    metric("utilisation", "utilisation", 3, true),
    metric("makespan_s", "makespan, s", 0, true).less_is_better(),
    metric("cost_usd", "cost, $", 4, true).less_is_better(),
    metric("deadline_met", "deadline met", 2, true).of_success(),
    metric("hibernations", "VMs hibernated", 2, false).of_events(),
    metric("resumes", "VMs resumed", 2, false).of_events(),
    metric("work_lost_s", "work lost, s", 0, false).of_events().less_is_better(),
    metric("on_demand_vms", "later on-demand VMs", 2, false),
    metric("checkpoints", "checkpoints", 1, false).of_events(),
    metric("jobs_finished", "jobs finished", 1, true).more_is_better(),
    metric("job_restarts", "jobs restarted", 2, true).of_events(),
    metric("preemptions", "VMs preempted", 2, true).of_events(),
    metric("job_preemptions", "preemptions that hit a job", 2, false),
    metric("job_failure_share", "runs of jobs that failed, share", 4, true)
        .of_events()
        .less_is_better(),
    metric("job_response_s", "submission to end of a job, s", 0, true).less_is_better(),
    metric("vms_reused", "VMs reused", 1, false),
    metric("spare_h", "VMs idle, h", 2, true),
    metric("cost_per_job_usd", "cost of a job, $", 4, true).less_is_better(),
    metric("promotions", "promotions", 1, true).of_events(),
    metric("swaps", "swaps", 1, false).of_events(),
    metric("kills", "kills", 1, false).of_events(),
    metric("migrations", "migrations", 1, false).of_events(),
    metric("burst_starts", "migrated tasks that burst", 2, false).of_events(),
    metric("response_s", "response after the warm-up, s", 1, false),
    metric("bounded_slowdown", "bounded slowdown after the warm-up", 3, false),
    metric("host_utilisation", "hosts' utilisation", 3, true),
    metric("host_utilisation_normal", "hosts' utilisation by normal VMs", 3, false),
    metric("host_utilisation_preemptible", "hosts' utilisation by preemptible VMs", 3, false),
    metric("host_memory_utilisation", "hosts' memory in use", 3, false),
    metric("requests_normal", "normal requests", 0, false),
    metric("requests_preemptible", "preemptible requests", 0, false),
    metric("failed_normal", "normal requests failed", 1, true).of_events(),
    metric("failed_share", "normal requests failed, share", 4, true).of_events().less_is_better(),
    metric("failed_preemptible", "preemptible requests failed", 1, false).of_events(),
    metric("failed_preemptible_share", "preemptible requests failed, share", 4, false),
    metric("terminations", "preemptible VMs terminated", 1, true).of_events(),
    metric("request_hibernations", "requested VMs hibernated", 1, false).of_events(),
    metric("work_lost_vcpu_h", "work lost, vCPU h", 2, true).of_events().less_is_better(),
    metric("revenue_usd", "revenue, $", 2, true).more_is_better(),
    metric("revenue_normal_usd", "revenue from normal VMs, $", 2, false),
    metric("revenue_preemptible_usd", "revenue from preemptible VMs, $", 2, false),
    metric("revenue_lost_uncharged_usd", "run and not charged, $", 2, false),
    metric("revenue_lost_failed_usd", "revenue lost by failed normal requests, $", 2, false),
    metric("revenue_lost_cut_short_usd", "revenue lost by VMs cut short, $", 2, false),
    metric("victim_wait_mean_s", "wait for victims, s", 1, false),
    metric("victim_wait_p99_s", "wait for victims, 99 %, s", 1, false),
    metric("victim_wait_max_s", "longest wait for victims, s", 1, false),
    metric("ready_mean_s", "normal request to ready VM, s", 1, false),
];

impl RunFigure {
    /// The figure that has this name in `table.csv`; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }
}
