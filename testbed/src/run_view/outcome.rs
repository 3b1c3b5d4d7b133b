//! What a view is made of.

use dormouse_engine::{Work, is_of};
use dormouse_policies::Plan;
use dormouse_tell::fidelity::Fidelity;
use dormouse_tell::{Record, VmHistory};
use dormouse_units::{Money, Span, Time};
use dormouse_view::{Block, Page};

use super::{RunView, bag, jobs};
use crate::jobs::JobsOutcome;
use crate::output::Header;

/// Everything that the view of a run is made of.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The first line of the log.
    pub header: &'a Header,
    /// The history of its bag's tasks, VMs and hosts; `None`: it has parallel jobs alone.
    pub record: Option<&'a Record>,
    /// What the scheduler of the bag had planned, if it plans.
    pub plan: Option<&'a Plan>,
    /// How faithful the emulation was; `None` in virtual time.
    pub fidelity: Option<&'a Fidelity>,
    /// What came of its parallel jobs, if it has any.
    pub jobs: Option<&'a JobsOutcome<'a>>,
    /// Real seconds it took: the one thing that differs between equal runs.
    pub wall_s: f64,
}

/// A run with a bag.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfBag<'a> {
    pub(super) of: Outcome<'a>,
    pub(super) record: &'a Record,
}

impl Outcome<'_> {
    /// The view of the run.
    #[must_use]
    pub fn view(&self) -> RunView {
        match (self.record, self.jobs) {
            (Some(record), _) => bag::view(&OfBag { of: *self, record }),
            (None, Some(of_jobs)) => jobs::view(self, of_jobs),
            (None, None) => bag::view(&OfBag { of: *self, record: &self.header.record() }),
        }
    }

    /// A page without content: what the run is, and how it was run.
    pub(super) fn page(&self, scheduler: &str) -> Page {
        let experiment = &self.header.experiment;
        let how = match self.header.live_speedup() {
            None => "in virtual time".to_owned(),
            Some(x) => format!("live, {x} emulated seconds a second"),
        };
        let title = format!("{} · {scheduler}", experiment.name);
        let seed = experiment.setup.seed;
        Page::new(title, format!("{}. Run {how}, seed {seed}.", experiment.description))
    }

    /// How the run is made again: its command, what made it and how, and the digest of its
    /// decisions.
    pub(super) fn reproduce(&self, how: &str, digest: &str) -> [Block; 3] {
        let header = self.header;
        [
            Block::Command(header.command.clone()),
            Block::text(format!(
                "Made by dormouse {}{how}. Digest of the decisions, equal for equal runs:",
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

    /// Whether all tasks were finished by the deadline.
    pub(super) fn deadline_met(&self) -> bool {
        self.record.makespan().is_some_and(|end| end <= Time::ZERO + self.deadline())
    }

    /// Time computed for nothing, over all attempts.
    pub(super) fn work_lost(&self) -> Span {
        let attempts = self.record.tasks.iter().flat_map(|task| &task.attempts);
        attempts.filter_map(|a| self.record.vms.get(&a.vm).map(|vm| a.lost(vm))).sum()
    }

    /// What the VMs of the bag cost, of those of all tenants.
    pub(super) fn cost_of_bag(&self) -> Money {
        let of = self.of.header.experiment.tenants();
        let own = self.record.vms.values().filter(|vm| is_of(vm.id, &of, Work::Bag));
        own.map(VmHistory::cost).sum()
    }
}
