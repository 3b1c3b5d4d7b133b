//! What a view is made of.

use std::collections::BTreeMap;

use dormouse_analysis::{OutcomeTally, RunRecord, TaskHistory, VmHistory};
use dormouse_experiment::PlannedFigures;
use dormouse_log::Head;
use dormouse_model::Work;
use dormouse_model::{PlannedTask, PlannedVm, Task};
use dormouse_policies::Plan;
use dormouse_units::{Money, Ppm, Span, TaskId, Time, VmId};
use dormouse_view::plot::Gantt;
use dormouse_view::{Block, Card, Page};

use super::{RequestsOutcome, dates, machine};
use crate::jobs::JobsOutcome;
use crate::output::Header;
use dormouse_analysis::fidelity::FidelityVerdict;

/// What came of a run, whatever work it has.
#[derive(Debug)]
pub struct Results<'a> {
    /// The first line of the log.
    pub header: &'a Header,
    /// The history of its bag's tasks, VMs and hosts; `None`: it has parallel jobs alone.
    pub record: Option<RunRecord>,
    /// The history of the hosts of a live run of parallel jobs alone.
    pub of_hosts: Option<RunRecord>,
    /// What the scheduler of the bag had planned, if it plans.
    pub plan: Option<Plan>,
    /// What of a core a vCPU of the reference speed was; `None` in virtual time.
    pub share: Option<Ppm>,
    /// How faithful the emulation was; `None` in virtual time.
    pub fidelity: Option<FidelityVerdict>,
    /// What came of its parallel jobs, if it has any.
    pub jobs: Option<JobsOutcome<'a>>,
    /// What came of the VMs that were requested, if any were.
    pub requests: Option<RequestsOutcome>,
    /// The head of the chain over its log's lines; `None`: that is not known.
    pub log: Option<Head>,
    /// The BLAKE3 of each table that was written while it went, by the name of its file, as far as it is known.
    pub hashes: BTreeMap<&'static str, String>,
    /// Real seconds it took: the one thing that differs between equal runs.
    pub wall_s: f64,
}

/// A run with a bag.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfBag<'a> {
    pub(super) of: &'a Results<'a>,
    pub(super) record: &'a RunRecord,
}

/// A task of the bag.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskOf<'a> {
    /// Number of the task.
    pub(super) n: usize,
    /// What became of it.
    pub(super) is: &'a TaskHistory,
    /// What its bag says of it.
    pub(super) spec: &'a Task,
    /// On which VM and when it was to run, where that was planned.
    pub(super) planned: Option<(usize, PlannedTask)>,
}

impl<'a> Results<'a> {
    /// The results of a run in virtual time, with nothing in them yet.
    #[must_use]
    pub const fn new(header: &'a Header) -> Self {
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

    /// What was run and how: of a live run its speed-up, and what of a core a vCPU was.
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

    /// Why the run was ended with work left, if it was.
    #[must_use]
    pub fn broke(&self) -> Option<&str> {
        let of_bag = self.record.as_ref().and_then(|record| record.cancelled.as_deref());
        let of_jobs = self.jobs.as_ref().and_then(|jobs| jobs.cancelled.as_deref());
        let of_requests = || self.requests.as_ref()?.figures.cancelled.as_deref();
        of_bag.or(of_jobs).or_else(of_requests)
    }

    /// How many of its tasks, and of its parallel jobs, ended in which way.
    #[must_use]
    pub fn outcomes(&self) -> OutcomeTally {
        let of_jobs = || self.jobs.as_ref().map(JobsOutcome::outcomes);
        let of_bag = self.record.as_ref().map(RunRecord::outcomes).filter(|bag| bag.total > 0);
        of_bag.or_else(of_jobs).unwrap_or_default()
    }

    /// The beginning of a page: what the run is and how it was run, and its figures.
    pub(super) fn lead(&self, scheduler: &str, cards: Vec<Card>) -> Page {
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
        Page { cards, time_unit: self.time_unit(), ..Page::new(title, lead) }
    }

    /// The same with its chart.
    pub(super) fn page(&self, scheduler: &str, cards: Vec<Card>, gantt: &Gantt) -> Page {
        let mut page = self.lead(scheduler, cards);
        let left_out = self.jobs.as_ref().and_then(machine::left_out).map(|what| {
            Block::text(format!(
                "The figure does not show all; {what}. jobs.csv and allocations.csv have all; \
                 dormouse export DIR --as svg --from TIME --until TIME draws another window."
            ))
        });
        let figure = [Block::Figure(gantt.to_markup())];
        page.section("Where everything ran", figure.into_iter().chain(left_out));
        page
    }

    /// The way to make the run again: its command, what made it and how, and the digest of its decisions.
    pub(super) fn reproduce(&self, how: &str, digest: &str) -> [Block; 3] {
        let header = self.header;
        [
            Block::Command(header.command.clone()),
            Block::text(format!(
                "Made by dormouse {}{how}. The digest of the decisions below is the same for every run that decides the same:",
                header.dormouse
            )),
            Block::Command(digest.to_owned()),
        ]
    }
}

impl OfBag<'_> {
    pub(super) fn deadline(&self) -> Span {
        self.of.header.experiment.setup.bag.deadline
    }

    /// Whether all tasks were done by the deadline; one whose program failed is not.
    pub(super) fn deadline_met(&self) -> bool {
        let end = self.record.makespan().filter(|_| self.record.outcomes().is_complete());
        end.is_some_and(|end| end <= Time::ZERO + self.deadline())
    }

    /// What its scheduler had planned came to, if it plans.
    pub(super) fn planned_figures(&self) -> Option<PlannedFigures> {
        self.of.header.experiment.planned_figures(self.of.plan.as_ref()?)
    }

    /// The tasks in their order.
    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskOf<'_>> {
        let planned = self.planned();
        let specs = self.of.header.experiment.setup.bag.tasks.iter();
        let of = move |(n, (is, spec))| TaskOf { n, is, spec, planned: planned.get(&n).copied() };
        self.record.tasks.iter().zip(specs).enumerate().map(of)
    }

    /// Where and when each task was to run, by its number: the plan's VMs are launched in its order,
    /// so that their numbers are those that their tenant gave the VMs that ran.
    fn planned(&self) -> BTreeMap<usize, (usize, PlannedTask)> {
        let tenants = self.of.header.experiment.tenants();
        let numbers = tenants.numbers(tenants.with_bag().unwrap_or_default());
        let of_vm = |(own, vm): (u32, &PlannedVm)| {
            let tasks: Vec<_> = vm.vcpus.iter().flatten().copied().collect();
            let number = numbers.vm(VmId::new(own)).get() as usize;
            tasks.into_iter().map(move |task| (task.task.get() as usize, (number, task)))
        };
        let vms = self.of.plan.iter().flat_map(|plan| &plan.vms);
        (0..).zip(vms).flat_map(of_vm).collect()
    }

    /// The VMs of the bag, of those of all tenants.
    pub(super) fn vms_of_bag(&self) -> impl Iterator<Item = &VmHistory> {
        let of = self.of.header.experiment.tenants();
        self.record.vms.values().filter(move |vm| of.owns(Work::Bag, vm.id))
    }

    /// What these cost.
    pub(super) fn cost_of_bag(&self) -> Money {
        self.vms_of_bag().map(VmHistory::cost).sum()
    }
}

impl TaskOf<'_> {
    pub(super) fn id(&self) -> TaskId {
        TaskId::new(u32::try_from(self.n).unwrap_or(u32::MAX))
    }

    /// For people: `task7 (ed-7)`.
    pub(super) fn name(&self) -> String {
        format!("task{} ({})", self.n, self.spec.name)
    }

    /// When it first ran.
    pub(super) fn started(&self) -> Option<Time> {
        self.is.attempts.iter().find_map(|attempt| attempt.started)
    }
}
