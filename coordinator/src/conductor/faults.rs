//! The experiment's faults: each is injected when it is due, at the hosts that are connected then.

use dormouse_model::{Event, HostFault};
use dormouse_units::{FaultId, HostId, Time, TypeName};

use super::ConductorState;
use crate::conductor::roster::HostStanding;

impl ConductorState {
    /// Returns the time of the next fault.
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
                tracing::warn!("{number}, {}, names hosts that have not joined", kind.name());
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
