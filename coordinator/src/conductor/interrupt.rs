//! Interruptions that an observer requests: put into the order of the run's events, and answered once they are in the
//! log.

use dormouse_cloud::Interruption;
use dormouse_model::{Effect, Event};
use dormouse_proto::v1;
use ractor::RpcReplyPort;

use super::ConductorState;
use crate::messages::interruption::InjectedInterruption;
use crate::messages::outside::DurableAnswer;

type Reply = RpcReplyPort<Result<v1::InterruptReply, String>>;

impl ConductorState {
    /// Injects an action of the provider now. An action that affects no VM is refused and not logged.
    pub(super) fn inject_interruption(&mut self, wanted: InjectedInterruption, to: Reply) {
        match self.try_interrupt(wanted) {
            Ok(say) => self.batch.then.push(Box::new(DurableAnswer { to, say })),
            Err(why) => drop(to.send(Err(why))),
        }
    }

    fn try_interrupt(
        &mut self,
        wanted: InjectedInterruption,
    ) -> Result<v1::InterruptReply, String> {
        self.must_go_on()?;
        if !self.begun {
            return Err("the run has not begun and has no VMs; try again later".to_owned());
        }
        let now = self.clock.show_now();
        self.hear_until(now, None);
        self.must_go_on()?;
        if self.run.over_at().is_some() {
            return Err("the run is over".to_owned());
        }
        let InjectedInterruption { target, action, why } = wanted;
        let at = self.last.max(now);
        let act = Interruption { at, target: target.clone(), action };
        if self.run.provider().hit_by(at, &act).is_empty() {
            return Err(format!(
                "no VM matches: {}",
                crate::messages::interruption::fitting_vms(action)
            ));
        }
        self.feed_event(at, Event::Interrupt { target, action, why });
        self.must_go_on()?;
        let effects = self.batch.steps.last().map_or(&[][..], |step| &step.effects);
        let hit = effects.iter().find_map(|effect| match effect {
            Effect::Interrupted { vms, .. } => Some(vms),
            _ => None,
        });
        let vms = hit.into_iter().flatten().map(|vm| vm.get()).collect();
        Ok(v1::InterruptReply { emulated_at_us: at.as_micros(), vms })
    }
}
