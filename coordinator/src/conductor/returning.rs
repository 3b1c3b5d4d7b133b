//! A resumed run waits for its workers: nothing happens in the run until each worker is back or lost, and at least one
//! is back. VMs continued wherever their workers kept them. Of all other VMs it is only known that they existed when
//! the coordinator was last there: they end at that time, and no later time is charged.

use std::collections::BTreeSet;

use dormouse_model::Event;
use dormouse_units::{HostId, Time};
use tokio::time::Instant;

use super::jobs::waits_for_machine;
use super::{ConductorMsg, ConductorState};
use crate::CoordinatorError;
use crate::conductor::roster::{HostStanding, host_name};
use crate::protocol::wire::DecodedReport;
use crate::status::progress::AwaitedWorkers;
use crate::time::outage::{self, ResumedClock};

/// Answer to requests about a run that waits for its workers.
const WAITS: &str = "the run goes on once its workers are back: ask again then";

/// The workers that a resumed run waits for. Other messages are set aside until it continues.
#[derive(Debug)]
pub(super) struct ReturningWorkers {
    awaited: BTreeSet<HostId>,
    back: BTreeSet<HostId>,
    /// Workers that don't come back, with reasons.
    lost: Vec<(HostId, String)>,
    /// Messages set aside until the run continues.
    aside: Vec<ConductorMsg>,
    /// State of the run's clock at the resume.
    went_on: ResumedClock,
    /// Instant at which the wait began.
    since: Instant,
}

impl ReturningWorkers {
    /// Begins to wait for the hosts in `awaited`.
    pub(super) fn new(awaited: BTreeSet<HostId>, went_on: ResumedClock) -> Self {
        let (back, lost, aside) = (BTreeSet::new(), Vec::new(), Vec::new());
        Self { awaited, back, lost, aside, went_on, since: Instant::now() }
    }

    fn is_back(&mut self, host: HostId) {
        if self.awaited.remove(&host) {
            self.back.insert(host);
        }
    }

    /// Records that a worker won't come back or has left again.
    pub(super) fn is_lost(&mut self, host: HostId, why: String) {
        self.awaited.remove(&host);
        self.back.remove(&host);
        self.lost.push((host, why));
    }

    /// Returns the hosts whose workers are back.
    pub(super) const fn workers_back(&self) -> &BTreeSet<HostId> {
        &self.back
    }

    /// Takes the set-aside messages of new workers that have measured the programs.
    fn take_new(&mut self) -> Vec<ConductorMsg> {
        self.aside.extract_if(.., |message| is_new(message)).collect()
    }

    /// Drops the set-aside messages of a lost host.
    pub(super) fn forget_host(&mut self, lost: HostId) {
        self.aside.retain(
            |message| !matches!(message, ConductorMsg::Heard { host, .. } if *host == lost),
        );
    }

    /// Returns whether the run can continue: no worker is awaited any more and some worker is connected, or the run is
    /// to end.
    fn can_go_on(&self) -> bool {
        let is_somebody_new = || self.aside.iter().any(is_new);
        self.awaited.is_empty() && (!self.back.is_empty() || is_somebody_new() || self.is_to_end())
    }

    fn is_to_end(&self) -> bool {
        self.aside.iter().any(|message| matches!(message, ConductorMsg::Cancel { .. }))
    }

    pub(super) fn awaited_workers(&self) -> AwaitedWorkers {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let of = self.awaited.len() + self.back.len() + self.lost.len();
        AwaitedWorkers { back: count(self.back.len()), of: count(of) }
    }
}

/// Returns whether a message holds the report of a worker that has measured its host and is ready for VMs.
fn is_new(message: &ConductorMsg) -> bool {
    let is_ready = |(_, heard): &(u64, DecodedReport)| matches!(heard, DecodedReport::Ready { .. });
    matches!(message, ConductorMsg::Heard { heard, .. } if heard.iter().any(is_ready))
}

impl ConductorState {
    /// Returns a message that must be handled now; `None`: it was set aside or refused.
    pub(super) fn unless_set_aside(&mut self, message: ConductorMsg) -> Option<ConductorMsg> {
        use ConductorMsg as Msg;
        let Some(returning) = &mut self.returning else { return Some(message) };
        // Whoever asked may have left.
        match message {
            Msg::Submit { reply, .. } => drop(reply.send(Err(WAITS.to_owned()))),
            Msg::Shut(reply) => drop(reply.send(Err(WAITS.to_owned()))),
            Msg::Interrupt { reply, .. } => drop(reply.send(Err(WAITS.to_owned()))),
            Msg::Heard { .. } | Msg::Tick | Msg::StillStuck { .. } => returning.aside.push(message),
            Msg::Cancel { .. } => {
                // It does not wait for anybody any more.
                returning.aside.push(message);
                for host in returning.awaited.clone() {
                    self.lose_host(host, "the run was ended before it was back".to_owned());
                }
            }
            other => return Some(other),
        }
        None
    }

    /// Ends the run because a worker has received more commands than the log has: the log is an older copy, or the
    /// worker lies.
    pub(super) fn log_went_back(&self, host: HostId, ack: u64, said: u64) {
        let name = self.roster.get(host).map(|entry| host_name(&entry.worker, entry.incarnation));
        let worker = name.unwrap_or_else(|| host.to_string());
        let _ = self.failed.send(CoordinatorError::LogWentBack { worker, ack, said });
    }

    /// Records that a worker is connected.
    pub(super) fn is_back(&mut self, host: HostId) {
        if let Some(returning) = &mut self.returning {
            returning.is_back(host);
        }
    }

    /// Continues the run if all awaited hosts are back; returns the messages that were set aside.
    pub(super) fn go_on_if_all_are_back(&mut self) -> Vec<ConductorMsg> {
        let Some(returning) = self.returning.as_mut().filter(|it| it.can_go_on()) else {
            return Vec::new();
        };
        let new = returning.take_new();
        let (since, ResumedClock { away, at, .. }) = (returning.since, returning.went_on);
        let (last, is_to_end) = (self.last, returning.is_to_end());
        self.feed_lost(last);
        // Only those of workers that are back are left.
        let any_vms = self.run.provider().alive_vms().next().is_some();
        let went_on = any_vms && !waits_for_machine(&self.run);
        if went_on {
            self.clock.run_since(since, at);
        }
        // They are part of the run before anybody hears of what was lost, and wants room.
        for message in new {
            if let ConductorMsg::Heard { host, through, heard } = message {
                self.take_reports(host, through, heard);
            }
        }
        // One that has joined by that may have been lost by what else it said.
        self.feed_lost(last);
        // Where one has come that does not suit the run, nobody may ever come who does: the run says so in its end.
        let has_come = |standing: &HostStanding| {
            matches!(standing, HostStanding::Joined | HostStanding::Unfit { .. })
        };
        let is_anybody_there = self.roster.iter().any(|(_, entry)| has_come(&entry.standing));
        if !is_anybody_there && !is_to_end {
            return Vec::new();
        }
        let aside = self.returning.take().map(|returning| returning.aside).unwrap_or_default();
        let now = if went_on { self.clock.show_now() } else { last };
        let away_real_us = outage::to_micros(away + since.elapsed());
        // Where nothing went on, the clock starts with it.
        self.feed_event(now, Event::Resumed { outage: now.since(last), away_real_us });
        self.say_clock();
        aside
    }

    /// Tells the run which workers are lost: those that don't come back, and those that came back and are lost again.
    fn feed_lost(&mut self, at: Time) {
        let lost = self.returning.as_mut().map(|returning| std::mem::take(&mut returning.lost));
        for (host, why) in lost.unwrap_or_default() {
            self.feed_event(at, Event::HostLost { host, why, unheard: true });
        }
    }
}
