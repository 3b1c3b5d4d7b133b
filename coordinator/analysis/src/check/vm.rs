//! A VM as the checker follows it.

use std::collections::BTreeMap;
use std::fmt;

use dormouse_cloud::{Host, InstanceType, Market, Meter};
use dormouse_units::{Bytes, Credits, HostId, Money, Ppm, Price, Span, TaskId, Tier, Time};

use super::balance::{Balance, Use};

/// The stage of a VM's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Booting,
    Running,
    /// Told to hibernate, not frozen yet. Its scheduler can't know.
    Freezing,
    Frozen,
    Ended,
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Booting => "booting",
            Self::Running => "running",
            Self::Freezing => "about to hibernate",
            Self::Frozen => "hibernated",
            Self::Ended => "gone",
        })
    }
}

/// What is known of it from the log alone.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    pub(super) kind: InstanceType,
    pub(super) market: Market,
    pub(super) bid: Option<Price>,
    pub(super) host: HostId,
    /// What it takes of it.
    pub(super) room: Host,
    /// The VM waits for room that others have to leave.
    pub(super) waits: bool,
    /// The time at which it was given notice, if it was, and whether it had booted then.
    pub(super) notice: Option<(Time, bool)>,
    /// The VM hibernates, or is hibernated, so that another has its room, or may be.
    pub(super) is_displaced: bool,
    /// The VM is told to resume.
    pub(super) resumes: bool,
    /// The tier and the processors of its host that it has, where that is said.
    pub(super) places: Option<(Tier, Vec<u32>)>,
    pub(super) life: Life,
    pub(super) launched: Time,
    /// What it is charged.
    pub(super) meter: Meter,
    /// The time for which it has been frozen before, and since when it is now.
    pub(super) frozen: Span,
    pub(super) frozen_since: Option<Time>,
    /// The tasks on it and their memory.
    pub(super) tasks: BTreeMap<TaskId, Bytes>,
    pub(super) credits: Option<Balance>,
    /// What it is charged for surplus credits.
    pub(super) surcharge: Money,
}

impl Followed {
    pub(super) fn freeze(&mut self, now: Time) {
        self.life = Life::Frozen;
        self.places = None;
        self.frozen_since = Some(now);
        self.meter.freeze(now);
    }

    pub(super) fn thaw(&mut self, now: Time) {
        self.life = Life::Running;
        (self.resumes, self.is_displaced) = (false, false);
        self.frozen = self.frozen_until(now);
        self.frozen_since = None;
        self.meter.start(now);
    }

    /// What of its host's room it has for certain.
    pub(super) fn held(&self) -> Host {
        match self.life {
            Life::Ended => Host::of_vcpus(0),
            Life::Frozen if !self.resumes => self.room.without(&self.room.left_while_hibernated()),
            _ if self.waits => Host::of_vcpus(0),
            _ => self.room,
        }
    }

    /// The time for which it has been frozen by `now`.
    pub(super) fn frozen_until(&self, now: Time) -> Span {
        self.frozen + self.frozen_since.map_or(Span::ZERO, |since| now.since(since))
    }

    /// What is wrong with a balance reported now, and with the time of which it is said to be, where the report before
    /// or this one may have been late by the first span, and this one by the second as well.
    pub(super) fn credit_error(
        &mut self,
        now: Time,
        (balance, as_of): (Credits, Option<Time>),
        late: (Span, Span),
    ) -> Option<String> {
        let Some(burstable) = self.kind.burstable else {
            return Some(format!("{} has credits but is not burstable", self.kind.name));
        };
        let most = u64::from(self.kind.vcpus) * u64::from(Ppm::ONE.get());
        let launched = self.launched;
        let credits =
            self.credits.get_or_insert_with(|| Balance::new(burstable.of_machine(), launched));
        credits.pass(now, Use { least: 0, most });
        credits.error_in(now, (balance, as_of), late)
    }
}
