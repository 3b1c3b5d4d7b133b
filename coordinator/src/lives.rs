//! Workers' lives that have a session: one that comes back is taken back whatever the conductor,
//! and the scheduler on its thread, are at.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ractor::ActorRef;

use crate::session::SessionMsg;

/// The sessions of workers that are not lost, by name and incarnation.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    sessions: Mutex<BTreeMap<(String, u64), ActorRef<SessionMsg>>>,
}

impl Lives {
    fn all(&self) -> MutexGuard<'_, BTreeMap<(String, u64), ActorRef<SessionMsg>>> {
        // Nothing is left half done under this lock.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This life of this worker has a session.
    pub(crate) fn begin(&self, worker: &str, incarnation: u64, session: ActorRef<SessionMsg>) {
        self.all().insert((worker.to_owned(), incarnation), session);
    }

    /// It is lost to the run.
    pub(crate) fn end(&self, worker: &str, incarnation: u64) {
        self.all().remove(&(worker.to_owned(), incarnation));
    }

    /// The session of this life of the worker; `None` if it is lost or was never here.
    pub(crate) fn session(&self, worker: &str, incarnation: u64) -> Option<ActorRef<SessionMsg>> {
        self.all().get(&(worker.to_owned(), incarnation)).cloned()
    }
}
