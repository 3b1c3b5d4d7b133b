//! The results that a view is made from.

use std::collections::BTreeMap;

use dormouse_analysis::{OutcomeTally, RunRecord, TaskHistory, VmHistory};
use dormouse_experiment::PlannedFigures;
use dormouse_log::Head;
use dormouse_model::TenantWork;
use dormouse_model::{PlannedTask, PlannedVm, Task};
use dormouse_policies::Plan;
use dormouse_units::{Money, Ppm, Span, TaskId, Time, VmId};
use dormouse_view::plot::GanttChart;
use dormouse_view::{HtmlPage, PageBlock};

use super::{RequestsOutcome, dates, machine};
use crate::jobs::JobsOutcome;
use crate::output::LogHeader;
use dormouse_analysis::fidelity::FidelityVerdict;

/// Results of a run of any kind.
#[derive(Debug)]
pub struct RunResults<'a> {
    /// The first line of the log.
    pub header: &'a LogHeader,
    /// Histories of the run's tasks, VMs and hosts; `None` if the run has parallel jobs alone.
    pub record: Option<RunRecord>,
    /// Histories of the hosts of a live run that has parallel jobs alone; `None` in any other run.
    pub of_hosts: Option<RunRecord>,
    /// Plan of the bag's scheduler, if the scheduler makes a plan.
    pub plan: Option<Plan>,
    /// Share of a host core that a vCPU of the reference speed had; `None` in virtual time.
    pub share: Option<Ppm>,
    /// Verdict on the emulation; `None` in virtual time.
    pub fidelity: Option<FidelityVerdict>,
    /// Results of the run's parallel jobs, if it has any.
    pub jobs: Option<JobsOutcome<'a>>,
    /// Results of the requests for VMs, if there were any.
    pub requests: Option<RequestsOutcome>,
    /// Head of the hash chain over the lines of the run's log; `None` if it is unknown.
    pub log: Option<Head>,
    /// BLAKE3 hash of each table that was written during the run, by file name, if known.
    pub hashes: BTreeMap<&'static str, String>,
    /// Real duration of the run in seconds: the only value that differs between equal runs.
    pub wall_s: f64,
}

/// Results of a run with a bag.
#[derive(Clone, Copy, Debug)]
pub(super) struct BagResults<'a> {
    pub(super) of: &'a RunResults<'a>,
    pub(super) record: &'a RunRecord,
}

/// A task of the bag.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskOutcome<'a> {
    /// Index of the task.
    pub(super) n: usize,
    /// The task's history.
    pub(super) is: &'a TaskHistory,
    /// The task's specification in the bag.
    pub(super) spec: &'a Task,
    /// Number of the planned VM, with the planned times; `None`: the task is not in a plan.
    pub(super) planned: Option<(usize, PlannedTask)>,
}

impl<'a> RunResults<'a> {
    /// Empty results of a virtual run.
    #[must_use]
    pub const fn new(header: &'a LogHeader) -> Self {
        let (record, plan, fidelity, jobs, requests) = (None, None, None, None, None);
        let (of_hosts, log, share, wall_s) = (None, None, None, 0.0);
        let hashes = BTreeMap::new();
        Self {
            header,
            record,
            of_hosts,
            plan,
            share,
            fidelity,
            jobs,
            requests,
            log,
            hashes,
            wall_s,
        }
    }

    /// Experiment and mode in words; for a live run with its speed-up and share of a core.
    pub(super) fn in_words(&self) -> String {
        let words = self.header.in_words();
        match (self.header.live_speedup(), self.share) {
            (Some(x), Some(share)) => words.replacen(
                &format!("{x}x"),
                &format!("{x}x at {} of a core", share.as_f64()),
                1,
            ),
            _ => words,
        }
    }

    /// Reason for which the run ended with work left, if it did.
    #[must_use]
    pub fn broke(&self) -> Option<&str> {
        let of_bag = self.record.as_ref().and_then(|record| record.cancelled.as_deref());
        let of_jobs = self.jobs.as_ref().and_then(|jobs| jobs.cancelled.as_deref());
        let of_requests = || self.requests.as_ref()?.figures.cancelled.as_deref();
        of_bag.or(of_jobs).or_else(of_requests)
    }

    /// Number of the run's tasks and parallel jobs by outcome.
    #[must_use]
    pub fn outcomes(&self) -> OutcomeTally {
        let of_jobs = || self.jobs.as_ref().map(JobsOutcome::outcomes);
        let of_bag = self.record.as_ref().map(RunRecord::outcomes).filter(|bag| bag.total > 0);
        of_bag.or_else(of_jobs).unwrap_or_default()
    }

    /// The beginning of a page: title and description.
    pub(super) fn lead(&self, scheduler: &str) -> HtmlPage {
        let experiment = &self.header.experiment;
        let how = match self.header.live_speedup() {
            None => "in virtual time".to_owned(),
            Some(x) => {
                let share =
                    self.share.map(|share| format!(", each vCPU {} of a core", share.as_f64()));
                let share = share.unwrap_or_default();
                format!("live, {x} emulated seconds in each real second{share}")
            }
        };
        let title = format!("{} · {scheduler}", experiment.name);
        let seed = experiment.setup.seed;
        let begins = dates::begins(self.header.calendar);
        let begins = begins.map(|begins| format!(" It begins {begins}.")).unwrap_or_default();
        let lead = format!("{}. Run {how}, seed {seed}.{begins}", experiment.description);
        HtmlPage { time_unit: self.time_unit(), ..HtmlPage::new(title, lead) }
    }

    /// The beginning of a page, followed by the chart.
    pub(super) fn page(&self, scheduler: &str, gantt: &GanttChart) -> HtmlPage {
        let mut page = self.lead(scheduler);
        let left_out = self.jobs.as_ref().and_then(machine::left_out).map(|what| {
            PageBlock::text(format!(
                "The figure does not show all; {what}. jobs.csv and allocations.csv have all; \
                 dormouse export DIR --as svg --from TIME --until TIME draws another window."
            ))
        });
        let figure = [PageBlock::Figure(gantt.to_markup())];
        page.section("Where everything ran", figure.into_iter().chain(left_out));
        page
    }

    /// Blocks on how to make the run again: the command, the versions, and the digest of its
    /// decisions.
    pub(super) fn reproduce(&self, how: &str, digest: &str) -> [PageBlock; 3] {
        let header = self.header;
        [
            PageBlock::Command(header.command.clone()),
            PageBlock::text(format!(
                "Made by dormouse {}{how}. The digest of the decisions below is the same for every run that decides the same:",
                header.dormouse
            )),
            PageBlock::Command(digest.to_owned()),
        ]
    }
}

impl BagResults<'_> {
    pub(super) fn deadline(&self) -> Span {
        self.of.header.experiment.setup.bag.deadline
    }

    /// Whether the run is for tasks; a run for callers of EC2's API has only VMs, and no deadline.
    pub(super) const fn has_tasks(&self) -> bool {
        self.of.header.experiment.ec2.is_none()
    }

    /// Whether all tasks were done by the deadline; a task whose program failed is not done.
    pub(super) fn deadline_met(&self) -> bool {
        let end = self.record.makespan().filter(|_| self.record.outcomes().is_complete());
        end.is_some_and(|end| end <= Time::ZERO + self.deadline())
    }

    /// Planned cost and makespan, if the scheduler plans.
    pub(super) fn planned_figures(&self) -> Option<PlannedFigures> {
        self.of.header.experiment.planned_figures(self.of.plan.as_ref()?)
    }

    /// The tasks in their order.
    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskOutcome<'_>> {
        let planned = self.planned_tasks();
        let specs = self.of.header.experiment.setup.bag.tasks.iter();
        let of =
            move |(n, (is, spec))| TaskOutcome { n, is, spec, planned: planned.get(&n).copied() };
        self.record.tasks.iter().zip(specs).enumerate().map(of)
    }

    /// Planned VM, by its number in the run, and planned times of each task, by the task's number.
    /// The VMs of a plan are launched in order, so the n-th VM of the plan is the n-th VM of the
    /// bag.
    fn planned_tasks(&self) -> BTreeMap<usize, (usize, PlannedTask)> {
        let tenants = self.of.header.experiment.tenants();
        let numbers = tenants.tenant_numbers(tenants.with_bag().unwrap_or_default());
        let of_vm = |(own, vm): (u32, &PlannedVm)| {
            let tasks: Vec<_> = vm.vcpus.iter().flatten().copied().collect();
            let number = numbers.run_vm(VmId::new(own)).get() as usize;
            tasks.into_iter().map(move |task| (task.task.get() as usize, (number, task)))
        };
        let vms = self.of.plan.iter().flat_map(|plan| &plan.vms);
        (0..).zip(vms).flat_map(of_vm).collect()
    }

    /// The VMs of the bag, out of those of all tenants.
    pub(super) fn vms_of_bag(&self) -> impl Iterator<Item = &VmHistory> {
        let of = self.of.header.experiment.tenants();
        self.record.vms.values().filter(move |vm| of.owns_vm(TenantWork::Bag, vm.id))
    }

    /// Cost of the bag's VMs.
    pub(super) fn cost_of_bag(&self) -> Money {
        self.vms_of_bag().map(VmHistory::cost).sum()
    }
}

impl TaskOutcome<'_> {
    pub(super) fn id(&self) -> TaskId {
        TaskId::new(u32::try_from(self.n).unwrap_or(u32::MAX))
    }

    /// Name for people: `task7 (ed-7)`.
    pub(super) fn name(&self) -> String {
        format!("task{} ({})", self.n, self.spec.name)
    }

    /// Time at which the task first ran; `None` if it never did.
    pub(super) fn started(&self) -> Option<Time> {
        self.is.attempts.iter().find_map(|attempt| attempt.started)
    }
}
