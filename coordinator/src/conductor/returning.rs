//! A run that is gone on with waits for its workers: nothing happens in it until each of them is back
//! or lost. VMs went on where their workers kept them; of the others nobody knows more than that they
//! were there when the coordinator went, so there they ended, and nobody is charged for what may have
//! been since.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use dormouse_model::Event;
use dormouse_units::HostId;

use super::jobs::waits_for_machine;
use super::{ConductorMsg, ConductorState};
use crate::outage::{self, Back};
use crate::progress::Awaited;

/// The workers that a run waits for before it goes on.
#[derive(Debug)]
pub(super) struct Returning {
    awaited: BTreeSet<HostId>,
    back: BTreeSet<HostId>,
    /// Those that do not come back, and why.
    lost: Vec<(HostId, String)>,
    /// What came meanwhile, to be heard when the run goes on.
    aside: Vec<ConductorMsg>,
    /// What the run goes on with where its VMs went on.
    went_on: Back,
    /// When that was so.
    since: Instant,
}

impl Returning {
    /// Waits for these, from now on.
    pub(super) fn of(awaited: BTreeSet<HostId>, went_on: Back) -> Self {
        let (back, lost, aside) = (BTreeSet::new(), Vec::new(), Vec::new());
        Self { awaited, back, lost, aside, went_on, since: Instant::now() }
    }

    fn is_back(&mut self, host: HostId) {
        if self.awaited.remove(&host) {
            self.back.insert(host);
        }
    }

    /// A worker of the run does not come back, or has left again.
    pub(super) fn is_lost(&mut self, host: HostId, why: String) {
        self.awaited.remove(&host);
        self.back.remove(&host);
        self.lost.push((host, why));
    }

    /// The workers that are back.
    pub(super) const fn back(&self) -> &BTreeSet<HostId> {
        &self.back
    }

    pub(super) fn progress(&self) -> Awaited {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let of = self.awaited.len() + self.back.len() + self.lost.len();
        Awaited { back: count(self.back.len()), of: count(of) }
    }
}

impl ConductorState {
    /// What is to be done with a message now; `None`: it waits until the run goes on.
    pub(super) fn unless_set_aside(&mut self, message: ConductorMsg) -> Option<ConductorMsg> {
        use ConductorMsg::{
            Attached, Cancel, Close, Heard, Hello, Interrupt, Lost, Pause, SayClock, Show, Shut,
            Status, StillStuck, Submit, Tick,
        };
        let Some(returning) = &mut self.returning else { return Some(message) };
        match message {
            Heard { .. }
            | Submit { .. }
            | Shut(_)
            | Interrupt { .. }
            | Tick
            | StillStuck { .. } => {
                returning.aside.push(message);
                return None;
            }
            // It does not wait for anybody any more.
            Cancel { .. } => {
                returning.aside.push(message);
                for host in returning.awaited.clone() {
                    self.lose(host, "the run was ended before it was back".to_owned());
                }
                return None;
            }
            Attached { .. }
            | Close
            | Hello { .. }
            | Lost { .. }
            | Pause { .. }
            | SayClock
            | Show
            | Status(_) => {}
        }
        Some(message)
    }

    /// A worker is connected.
    pub(super) fn is_back(&mut self, host: HostId) {
        if let Some(returning) = &mut self.returning {
            returning.is_back(host);
        }
    }

    /// Goes on with the run if there is nobody left to wait for; what has come meanwhile, to be heard
    /// now.
    pub(super) fn go_on_if_all_are_back(&mut self) -> Vec<ConductorMsg> {
        let Some(returning) = self.returning.take_if(|it| it.awaited.is_empty()) else {
            return Vec::new();
        };
        let Returning { lost, aside, went_on, since, .. } = returning;
        for (host, why) in lost {
            self.feed(self.last, Event::HostLost { host, why, unheard: true });
        }
        let Back { away, at, .. } = went_on;
        let mut now = self.last;
        if !waits_for_machine(&self.run) {
            // Only those of workers that are back are left.
            match self.vms.is_empty() {
                true => self.clock.run(),
                false => {
                    self.clock.run_since(since, at);
                    now = self.clock.now();
                }
            }
        }
        let away: Duration = away + since.elapsed();
        let (outage, away_real_us) = (now.since(self.last), outage::micros(away));
        self.feed(now, Event::Resumed { outage, away_real_us });
        self.say_clock();
        aside
    }
}
