//! What is under way on a VM: what comes to its end by itself, and when.

use std::{collections::BTreeMap, time::Duration};

use dormouse_vm::life::Key;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

/// Something that takes its time.
#[derive(Debug)]
pub(super) enum Work {
    /// A process comes to life, from a checkpoint at a place at CRIU or from scratch.
    Birth(Key, Option<OwnedSemaphorePermit>),
    /// What is being done to an attempt is given up.
    GivenUp(Key),
    /// CRIU takes hold of a process at this place, which is to be killed then or to go on.
    Seize(Key, OwnedSemaphorePermit),
    /// CRIU lets go of it.
    Dump(Key, OwnedSemaphorePermit),
    /// A job that is to go elsewhere is dumped at this place at CRIU.
    Leave(Key, OwnedSemaphorePermit),
    /// A process that was killed is seen to be gone.
    Death(Key),
    /// A process comes to its own end.
    Exit(Key),
    /// A process is seen to hang.
    Hang(Key),
}

impl Work {
    pub(super) const fn key(&self) -> Key {
        match self {
            Self::Birth(key, _)
            | Self::GivenUp(key)
            | Self::Seize(key, _)
            | Self::Dump(key, _)
            | Self::Leave(key, _)
            | Self::Death(key)
            | Self::Exit(key)
            | Self::Hang(key) => *key,
        }
    }

    /// Whether it stands still while its VM is frozen.
    const fn freezes(&self) -> bool {
        matches!(self, Self::Birth(..) | Self::Death(_) | Self::Exit(_) | Self::Hang(_))
    }
}

/// All that is under way on a VM, by when it comes to its end.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    works: BTreeMap<(Instant, u64), Work>,
    /// What stands still with the VM, and how long it takes yet.
    frozen: Vec<(Duration, Work)>,
    count: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, takes: Duration, work: Work) {
        self.count += 1;
        self.works.insert((Instant::now() + takes, self.count), work);
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.works.keys().next().map(|(at, _)| *at)
    }

    /// Takes the first that is due by now.
    pub(super) fn take_due(&mut self) -> Option<Work> {
        let first = self.works.first_entry()?;
        (first.key().0 <= Instant::now()).then(|| first.remove())
    }

    /// Drops all that is under way of an attempt.
    pub(super) fn forget(&mut self, key: Key) {
        self.works.retain(|_, work| work.key() != key);
        self.frozen.retain(|(_, work)| work.key() != key);
    }

    pub(super) fn freeze(&mut self) {
        let now = Instant::now();
        let frozen = self.works.extract_if(.., |_, work| work.freezes());
        let frozen = frozen.map(|((at, _), work)| (at.saturating_duration_since(now), work));
        self.frozen.extend(frozen);
    }

    pub(super) fn thaw(&mut self) {
        for (takes, work) in std::mem::take(&mut self.frozen) {
            self.add(takes, work);
        }
    }
}
