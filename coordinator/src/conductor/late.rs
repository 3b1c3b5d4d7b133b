//! Workers that connect when the run is already under way.

use dormouse_units::HostId;

use super::ConductorState;
use crate::admission::LateWorker;
use crate::conductor::roster::HostStanding;

impl ConductorState {
    /// Admits a late worker, which has measured the tasks' programs, to a run under way, if its host fits the run; else
    /// refuses it.
    pub(super) fn join_late(&mut self, host: HostId) {
        let Some(entry) = self.roster.get(host) else { return };
        let HostStanding::Ready { repetition_us } = &entry.standing else { return };
        let there = self.facts.hosts.values().filter(|host| host.lost.is_none());
        let admitted = LateWorker {
            place: self.plan.demand.first_vacant(there.map(|host| &host.offer)),
            room: &entry.room,
            reserve: self.plan.reserve,
            share: self.facts.share,
            cpu_us: &self.facts.cpu_us,
            demand: &self.plan.demand,
            setup: self.run.setup(),
            repetition_us: &self.plan.per_task(repetition_us),
            noop: self.plan.noop,
        }
        .admit_worker();
        match admitted {
            Ok(offer) => self.join_host(host, offer),
            Err(why) => {
                self.lose_host(host, why.clone());
                if let Some(entry) = self.roster.get_mut(host) {
                    entry.standing = HostStanding::Unfit { why };
                }
            }
        }
    }
}
