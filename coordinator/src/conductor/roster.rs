//! The workers of a run: the incarnation and the standing of each.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_units::HostId;
use ractor::ActorRef;
use tokio::time::Instant;

use crate::admission::WorkerOffer;
use crate::limits::unasked::StaleReports;
use crate::messages::message::SessionMsg;

/// Stage of a host in the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostStanding {
    /// The worker is connected, and measures the programs.
    Measuring,
    /// The worker has finished measuring, and waits for the run to begin.
    Ready {
        /// CPU time of one repetition of each program, in microseconds.
        repetition_us: Vec<u64>,
    },
    /// The host is part of the run.
    Joined,
    /// The host is unfit for the run by its measurements, and so is its worker in any other session.
    Unfit {
        /// Why the host is unfit, in words for the user.
        why: String,
    },
    /// The host is lost for good; its worker may return as a new host.
    Lost {
        /// How the host was lost, in words for the user.
        why: String,
    },
}

/// One session of one worker; each session is one host of the run.
#[derive(Debug)]
pub(crate) struct RosterLife {
    pub(crate) worker: String,
    pub(crate) incarnation: u64,
    pub(crate) room: WorkerOffer,
    pub(crate) standing: HostStanding,
    /// The actor of the session; `None` for a host that was lost before this coordinator started.
    pub(crate) session: Option<ActorRef<SessionMsg>>,
    pub(crate) numbers: ReportNumbers,
    /// Count of the host's reports that changed nothing.
    pub(crate) stale: StaleReports,
    /// Time at which the worker was welcomed; `None`: an earlier coordinator welcomed it.
    pub(crate) welcomed: Option<Instant>,
    /// CPU time of one repetition of each program, in real microseconds; empty: unknown.
    pub(crate) repetition_us: Vec<u64>,
    /// Part of the jail that the worker's tasks lack, as the worker reports; `None`: no part is lacking.
    pub(crate) jail_lacks: Option<&'static str>,
}

/// Numbers of a worker's reports: those received, and those that wait before they become steps of the run.
#[derive(Debug, Default)]
pub(crate) struct ReportNumbers {
    /// Number of the last received report.
    through: u64,
    waiting: BTreeSet<u64>,
    acknowledged: u64,
}

impl ReportNumbers {
    /// Records that all reports up to this number were received.
    pub(crate) fn received_through(&mut self, through: u64) {
        self.through = self.through.max(through);
    }

    /// Records that a report waits.
    pub(crate) fn mark_waiting(&mut self, number: u64) {
        self.waiting.insert(number);
    }

    /// Records that a report no longer waits.
    pub(crate) fn mark_heard(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    /// Returns the number up to which all reports became steps, if that has changed since the last call.
    pub(crate) fn take_acknowledged(&mut self) -> Option<u64> {
        let heard = self.waiting.first().map_or(self.through, |first| self.through.min(first - 1));
        (heard > std::mem::replace(&mut self.acknowledged, heard)).then_some(heard)
    }
}

impl RosterLife {
    pub(crate) const fn is_lost(&self) -> bool {
        matches!(self.standing, HostStanding::Lost { .. } | HostStanding::Unfit { .. })
    }
}

/// All sessions of all workers of a run.
#[derive(Debug, Default)]
pub(crate) struct WorkerRoster {
    entries: BTreeMap<HostId, RosterLife>,
}

impl WorkerRoster {
    /// Returns the id of the next host, which was never used in this run.
    pub(crate) fn next_id(&self) -> HostId {
        self.entries.last_key_value().map_or(HostId::new(0), |(id, _)| id.next())
    }

    pub(crate) fn insert(&mut self, host: HostId, entry: RosterLife) {
        self.entries.insert(host, entry);
    }

    pub(crate) fn get(&self, host: HostId) -> Option<&RosterLife> {
        self.entries.get(&host)
    }

    pub(crate) fn get_mut(&mut self, host: HostId) -> Option<&mut RosterLife> {
        self.entries.get_mut(&host)
    }

    /// Returns the host of this session of a worker, with its record.
    pub(crate) fn find_life(
        &self,
        worker: &str,
        incarnation: u64,
    ) -> Option<(HostId, &RosterLife)> {
        self.iter().find(|(_, e)| e.worker == worker && e.incarnation == incarnation)
    }

    /// Returns why workers of this name are unfit for the run; `None`: they aren't.
    pub(crate) fn unfit_reason(&self, worker: &str) -> Option<&str> {
        self.entries.values().filter(|e| e.worker == worker).find_map(|e| match &e.standing {
            HostStanding::Unfit { why } => Some(why.as_str()),
            _ => None,
        })
    }

    /// Returns the other sessions of this worker that aren't known to be over.
    pub(crate) fn former_lives(&self, worker: &str, incarnation: u64) -> Vec<HostId> {
        let former =
            |e: &RosterLife| e.worker == worker && e.incarnation != incarnation && !e.is_lost();
        self.iter().filter(|(_, e)| former(e)).map(|(host, _)| host).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (HostId, &RosterLife)> + '_ {
        self.entries.iter().map(|(&host, entry)| (host, entry))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (HostId, &mut RosterLife)> + '_ {
        self.entries.iter_mut().map(|(&host, entry)| (host, entry))
    }

    /// Returns the hosts that have measured and wait for the run, with their measurements.
    pub(crate) fn ready_hosts(&self) -> impl Iterator<Item = (HostId, &RosterLife, &[u64])> + '_ {
        self.iter().filter_map(|(host, entry)| match &entry.standing {
            HostStanding::Ready { repetition_us } => Some((host, entry, &repetition_us[..])),
            _ => None,
        })
    }

    /// Returns the number of workers that are connected or expected back.
    pub(crate) fn alive_count(&self) -> usize {
        self.entries.values().filter(|e| !e.is_lost()).count()
    }
}

/// Returns the name of a worker's session in the log.
pub(crate) fn host_name(worker: &str, incarnation: u64) -> String {
    format!("{worker}@{incarnation:016x}")
}

/// Parses the name of a worker's session in the log; `None`: it isn't such a name.
pub(crate) fn parse_host_name(name: &str) -> Option<(&str, u64)> {
    let (worker, incarnation) = name.rsplit_once('@')?;
    Some((worker, u64::from_str_radix(incarnation, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_not_acknowledged() {
        let mut numbers = ReportNumbers::default();
        numbers.mark_waiting(2);
        numbers.mark_waiting(3);
        numbers.received_through(4);
        assert_eq!((numbers.take_acknowledged(), numbers.take_acknowledged()), (Some(1), None));
        numbers.mark_heard(3);
        assert_eq!(numbers.take_acknowledged(), None);
        numbers.mark_heard(2);
        assert_eq!((numbers.take_acknowledged(), numbers.take_acknowledged()), (Some(4), None));
    }

    #[test]
    fn names_in_the_log_are_read_back() {
        for (worker, incarnation) in [("w1", 0), ("a@b", u64::MAX), ("", 7)] {
            let name = host_name(worker, incarnation);
            assert_eq!(parse_host_name(&name), Some((worker, incarnation)));
        }
        assert_eq!(parse_host_name("w1"), None);
    }
}
