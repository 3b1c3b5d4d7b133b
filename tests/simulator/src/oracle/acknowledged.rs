//! Checks that every report acknowledged to a worker is in the durable log.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_identity::WorkerLife;
use dormouse_model::{Event, Report, Step};
use dormouse_proto::v1;
use dormouse_units::HostId;

use super::Broken;
use crate::invariant::Invariant;
use crate::witness::Deed;

type Life = (String, u64);

/// The reports of each worker session, in order, and which of them the durable log has.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    /// For each report of a session, whether it must become a line of the log.
    said: BTreeMap<Life, Vec<bool>>,
    hosts: BTreeMap<Life, HostId>,
    /// Hosts that are lost or not trusted: their reports no longer have to be in the log.
    silenced: BTreeSet<HostId>,
    in_log: BTreeMap<HostId, BTreeSet<u64>>,
    /// Workers that lie about the numbers of their reports, so that it is unknown which report was acknowledged.
    miscounting: BTreeSet<String>,
    /// The number of reports of each session that were checked.
    looked_at: BTreeMap<Life, u64>,
}

impl Acknowledged {
    pub(super) fn new(miscounting: BTreeSet<String>) -> Self {
        Self { miscounting, ..Self::default() }
    }

    pub(super) fn log_begins_anew(&mut self) {
        self.hosts.clear();
        self.in_log.clear();
        self.silenced.clear();
    }

    pub(super) fn did(&mut self, deed: &Deed) {
        if let Deed::Said { worker, incarnation, report } = deed {
            let said = self.said.entry((worker.clone(), *incarnation)).or_default();
            said.push(counts(report));
        }
    }

    /// Takes in a durable step.
    pub(super) fn see(&mut self, step: &Step) -> Result<(), Broken> {
        match &step.event {
            Event::HostJoined { host, name, .. } => {
                if let Some((worker, life)) = name.rsplit_once('@')
                    && let Ok(life) = u64::from_str_radix(life, 16)
                {
                    self.hosts.insert((worker.to_owned(), life), *host);
                }
            }
            Event::HostLost { host, .. } | Event::Disbelieved { host, .. } => {
                self.silenced.insert(*host);
            }
            // An account is a line before its report, and comes again with that where a crash parted them.
            Event::Machine {
                report: Report::Ledger { .. } | Report::JobAccount { .. }, ..
            } => {}
            Event::Machine { host, number, .. }
                if !self.in_log.entry(*host).or_default().insert(*number) =>
            {
                let why = format!("report {number} of {host} is there again at step {}", step.seq);
                return Err((Invariant::Acknowledged, why));
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks a message to a worker that acknowledges `ack` reports.
    pub(super) fn leaves(&mut self, to: &WorkerLife, ack: u64) -> Result<(), Broken> {
        let life = (to.worker.clone(), to.incarnation);
        let Some(host) = self.hosts.get(&life) else { return Ok(()) };
        let looked_at = self.looked_at.entry(life.clone()).or_default();
        let is_counted = !self.miscounting.contains(&to.worker);
        if ack <= *looked_at || self.silenced.contains(host) || !is_counted {
            return Ok(());
        }
        let said = self.said.get(&life).map_or(&[][..], Vec::as_slice);
        let in_log = self.in_log.get(host);
        for number in *looked_at + 1..=ack {
            let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
            let is_there = in_log.is_some_and(|numbers| numbers.contains(&number));
            if said.get(place) == Some(&true) && !is_there {
                let why = format!(
                    "report {number} of {}@{:x} was acknowledged, and is not in the durable log",
                    to.worker, to.incarnation
                );
                return Err((Invariant::Acknowledged, why));
            }
        }
        *looked_at = ack;
        Ok(())
    }
}

/// Whether a report of this kind becomes a line of the log if its host is trusted.
const fn counts(report: &v1::Report) -> bool {
    use v1::report::Report as Wire;
    matches!(
        report.report,
        Some(
            Wire::VmCreated(_)
                | Wire::VmFrozen(_)
                | Wire::VmThawed(_)
                | Wire::VmDestroyed(_)
                | Wire::VmFailed(_)
                | Wire::TaskStarted(_)
                | Wire::TaskFinished(_)
                | Wire::TaskFailed(_)
                | Wire::TaskStopped(_)
                | Wire::CheckpointTaken(_)
                | Wire::CheckpointFailed(_)
        )
    )
}
