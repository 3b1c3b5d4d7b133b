//! What is kept of one run.

use dormouse_cloud::{Action, Market};
use dormouse_engine::{Effect, Run, Step, Work};
use dormouse_units::{Money, Time, TypeName};
use serde::{Deserialize, Serialize};

/// The figures of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When the last task was finished; `None`: not all were.
    pub makespan: Option<Time>,
    /// Whether that was by the deadline.
    pub deadline_met: bool,
    /// What all VMs cost.
    pub cost: Money,
    /// What their boots would cost besides if they were charged.
    pub boot_cost: Money,
    /// What of the cost is the burstable VMs'.
    pub burstable_cost: Money,
    /// Acts of the provider that hibernated at least one VM.
    pub hibernation_events: u32,
    /// Acts that resumed at least one.
    pub resume_events: u32,
    /// VMs hibernated.
    pub hibernations: u32,
    /// VMs resumed.
    pub resumes: u32,
    /// Regular on-demand VMs launched after the beginning.
    pub on_demand_later: u32,
    /// Tasks that went on elsewhere.
    pub migrations: u32,
    /// Tasks that idle VMs took over.
    pub steals: u32,
    /// Steps of the event log.
    pub steps: u64,
    /// The digest of the decisions.
    pub decisions: String,
}

/// Counts what only the steps say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    steps: u64,
    hibernation_events: u32,
    resume_events: u32,
}

impl Tally {
    pub(crate) fn see(&mut self, step: &Step) {
        self.steps += 1;
        for effect in &step.effects {
            if let Effect::Interrupted { action, vms, .. } = effect
                && !vms.is_empty()
            {
                match action {
                    Action::Hibernate => self.hibernation_events += 1,
                    Action::Resume => self.resume_events += 1,
                    Action::Preempt => {}
                }
            }
        }
    }

    pub(crate) fn sample(self, run: &Run) -> Sample {
        let setup = run.setup();
        // Of the bag, where parallel jobs share the run.
        let mut tenants = run.tenants(run.over().unwrap_or(Time::ZERO));
        let makespan = tenants.find(|t| t.work != Work::Jobs).and_then(|bag| bag.makespan);
        let vms = || run.provider().vms().map(|(_, vm)| vm);
        let boot_cost = vms()
            .filter_map(|vm| {
                let first = vm.charges().first()?;
                Some(first.price.for_span(first.from.since(vm.launched)))
            })
            .sum();
        let burstable =
            |kind: &TypeName| setup.catalogue.get(kind).is_some_and(|t| t.burstable.is_some());
        let burstable_cost = vms()
            .filter(|vm| burstable(&vm.kind))
            .map(|vm| vm.owed(run.over().unwrap_or(Time::ZERO)))
            .sum();
        let later = vms().filter(|vm| {
            vm.market == Market::OnDemand && !burstable(&vm.kind) && vm.launched > Time::ZERO
        });
        let counts = run.counts();
        Sample {
            makespan,
            deadline_met: makespan.is_some_and(|end| end <= Time::ZERO + setup.bag.deadline),
            cost: run.owed(run.over().unwrap_or(Time::ZERO)),
            boot_cost,
            burstable_cost,
            hibernation_events: self.hibernation_events,
            resume_events: self.resume_events,
            hibernations: counts.hibernations,
            resumes: counts.resumes,
            on_demand_later: u32::try_from(later.count()).unwrap_or(u32::MAX),
            migrations: counts.migrations,
            steals: counts.steals,
            steps: self.steps,
            decisions: run.digest(),
        }
    }
}
