//! How many vCPUs an experiment may have at once: found by playing it in virtual time.

use std::collections::BTreeMap;

use dormouse_engine::{Effect, Step};
use dormouse_policies::Scheduler;
use dormouse_units::VmId;

use crate::experiment::Experiment;
use crate::virtual_run::virtual_run;

/// Room beyond the rehearsal's peak, in percent: live, tasks end a little earlier or later,
/// and a scheduler may then want another VM or two.
const MARGIN_PERCENT: u32 = 15;

/// The most vCPUs of VMs alive and not hibernated at one time in a virtual run of the same
/// experiment and seed, and some room. (The bound that the account's limits give would be
/// several times that, and would make every vCPU that much slower.)
#[must_use]
pub fn demand(experiment: &Experiment, scheduler: Box<dyn Scheduler>) -> u32 {
    let (mut alive, mut peak) = (Alive::default(), 0);
    // A rehearsal that gets stuck has still shown what it needed until then.
    let _ = virtual_run(experiment, scheduler, |step| {
        alive.see(step);
        peak = peak.max(alive.vcpus());
    });
    (peak * (100 + MARGIN_PERCENT)).div_ceil(100).max(1)
}

#[derive(Default)]
struct Alive(BTreeMap<VmId, (u32, bool)>);

impl Alive {
    fn see(&mut self, step: &Step) {
        for effect in &step.effects {
            match effect {
                Effect::VmLaunched { vm, vcpus, .. } => {
                    self.0.insert(*vm, (*vcpus, true));
                }
                Effect::VmHibernated { vm, .. } | Effect::VmResumed { vm, .. } => {
                    let awake = matches!(effect, Effect::VmResumed { .. });
                    if let Some(entry) = self.0.get_mut(vm) {
                        entry.1 = awake;
                    }
                }
                Effect::VmEnded { vm, .. } => {
                    self.0.remove(vm);
                }
                _ => {}
            }
        }
    }

    fn vcpus(&self) -> u32 {
        self.0.values().filter(|(_, awake)| *awake).map(|(vcpus, _)| vcpus).sum()
    }
}
