//! What hits a run from outside of its models: interruptions that an observer requests, which are put into the order of
//! the run's events and answered once they are in the log; and the experiment's faults, each injected when it is due,
//! at the hosts that are connected then.

use dormouse_cloud::Interruption;
use dormouse_model::{Effect, Event, HostFault};
use dormouse_proto::v1;
use dormouse_units::{FaultId, HostId, Time, TypeName};
use ractor::RpcReplyPort;

use super::ConductorState;
use crate::conductor::roster::HostStanding;
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

    pub(super) fn try_interrupt(
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
            return Err("the run is over: there are no VMs left to interrupt".to_owned());
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

impl ConductorState {
    /// Returns the time of the next fault; `None`: no more faults are to be injected.
    pub(super) fn next_fault(&self) -> Option<Time> {
        let goes_on = self.begun && self.run.over_at().is_none() && self.broken.is_none();
        self.plan.faults.get(self.faults_asked).filter(|_| goes_on).map(|fault| fault.at)
    }

    /// Injects the faults that are due.
    pub(super) fn ask_for_faults(&mut self) {
        let now = self.clock.show_now();
        while let Some(at) = self.next_fault().filter(|at| *at <= now) {
            let Some(fault) = self.plan.faults.get(self.faults_asked) else { return };
            let hosts = self.choose_victims(fault);
            let HostFault { lasts, kind, .. } = *fault;
            let number = FaultId::new(u32::try_from(self.faults_asked).unwrap_or(u32::MAX));
            self.faults_asked += 1;
            if hosts.is_empty() {
                tracing::warn!(
                    "{number}, {}, does nothing: none of the hosts that it names is in the run now",
                    kind.name()
                );
            }
            self.feed_event(self.last.max(at), Event::Fault { fault: number, hosts, lasts, kind });
        }
    }

    /// Returns the hosts of the run that a fault is for.
    fn choose_victims(&self, fault: &HostFault) -> Vec<HostId> {
        let there = self.roster.iter().filter(|(_, entry)| entry.standing == HostStanding::Joined);
        let is_meant = |host: HostId, worker: &str| {
            let alive = self.run.provider().alive_vms().filter(move |(_, vm)| vm.host == host);
            let kinds = alive.map(|(_, vm)| &vm.kind).collect::<Vec<&TypeName>>();
            fault.on.includes_host(&host.to_string(), worker, kinds.into_iter())
        };
        there.filter(|(host, entry)| is_meant(*host, &entry.worker)).map(|(host, _)| host).collect()
    }
}
