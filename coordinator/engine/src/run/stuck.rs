//! Detects runs that can't continue by themselves.

use dormouse_cloud::Market;

use dormouse_policies::GivenUp;

use super::Run;
use crate::tenants::RunTenant;
use crate::timers::RunTimer;

impl Run {
    /// Returns whether nothing will happen any more though tasks are left: no task runs, no VM boots or changes
    /// state, no timer is set, and no VM can be resumed. A tenant that only asks again and again for a machine
    /// without room doesn't count: if nothing else happens, it never gets one.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.all_submitted && self.is_stuck_unless_submitted_to()
    }

    /// Returns [`Run::is_stuck`] for a run to which more jobs may be submitted: without a further job nothing will
    /// happen.
    #[must_use]
    pub fn is_stuck_unless_submitted_to(&self) -> bool {
        use dormouse_cloud::ProviderVmState::{Booting, Hibernated, Hibernating, Resuming};
        let changing = |vm: &dormouse_cloud::ProviderVm| match vm.state {
            Booting | Hibernating | Resuming => true,
            Hibernated { .. } => {
                self.interruptions.next_at().is_some()
                    || vm.is_displaced() && self.provider.next_availability().is_some()
            }
            _ => false,
        };
        self.begun
            && self.over.is_none()
            && self.tasks.on_vms() == 0
            && self.only_asks_again()
            && self.pending_instant().is_none()
            && self.requests.is_all()
            && !self.waits_for_price()
            && !self.waits_for_capacity()
            && !self.provider.alive_vms().any(|(_, vm)| changing(vm))
    }

    /// Returns whether the only timers are those of tenants that ask again for a refused machine, and the provider
    /// can't make room for it.
    fn only_asks_again(&self) -> bool {
        let waits = |token: u64| {
            let tenant = self.tenants.get(self.sharing.wake_owner(token).get() as usize);
            tenant.is_some_and(|tenant| tenant.waits_for_machine())
        };
        let mut timers = self.timers.all_timers();
        let asks = |timer| matches!(timer, RunTimer::Wake(token) if waits(token));
        let comes = || {
            let spot = self.provider.alive_vms().any(|(_, vm)| vm.market == Market::Spot);
            spot && (self.interruptions.next_at().is_some()
                || self.provider.next_price_change().is_some()
                || self.provider.next_availability().is_some())
        };
        self.timers.next_at().is_none() || timers.all(asks) && !comes()
    }

    /// Returns whether a scheduler waits for a price that will come.
    fn waits_for_price(&self) -> bool {
        self.wants_another_price() && self.provider.next_price_change().is_some()
    }

    /// Returns whether a launch was refused and the provider's capacity will change.
    fn waits_for_capacity(&self) -> bool {
        !self.refused.is_empty() && self.provider.next_availability().is_some()
    }

    fn wants_another_price(&self) -> bool {
        self.tenants.iter().any(RunTenant::waits_for_price)
    }

    /// Explains why nothing will happen any more, in words that follow that statement.
    #[must_use]
    pub fn why_stuck(&self) -> &'static str {
        if self.tenants.iter().any(|tenant| tenant.waits_for_machine()) {
            ": the machine for parallel jobs finds no room on any host beside the VMs that are there; \
             give it more or larger hosts"
        } else if self.has_programs() {
            ": the scheduler has no task on any VM and asked for no wake-up; it may wait for something that does \
             not come, or have forgotten a task"
        } else if self.wants_another_price() {
            ": no price changes any more, and at the last ones VMs cost more than is bid for them; bid more, or \
             give prices that go on"
        } else if !self.refused.is_empty() && self.provider.exhausted_types().next().is_some() {
            ": a launch was refused, and of its type no spot VM can be had any more (cloud.availability); give a \
             record that goes on, or other types"
        } else {
            match self.tenants.iter().find_map(RunTenant::given_up) {
                Some(GivenUp::Work) => {
                    ": what is left was given up, as its VMs were taken or it failed too often; give it VMs that live \
                     longer, checkpoints, or shorter tasks"
                }
                Some(GivenUp::Launches) => {
                    ": launches were refused as often as scheduler.max-retries allows; raise that, or the limits \
                     and what is bid"
                }
                None => "",
            }
        }
    }
}
