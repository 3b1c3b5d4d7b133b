//! Sessions of workers by name and incarnation: a worker that reconnects gets its session back without waiting for the
//! conductor, or for the scheduler on the conductor's thread.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dormouse_units::HostId;
use ractor::ActorRef;

use crate::messages::message::SessionMsg;

/// Host and actor of each session, by the worker's name and incarnation.
type Sessions = BTreeMap<(String, u64), (HostId, ActorRef<SessionMsg>)>;

/// Sessions of all workers that aren't lost, by name and incarnation.
#[derive(Debug, Default)]
pub(crate) struct SessionRegistry {
    sessions: Mutex<Sessions>,
}

impl SessionRegistry {
    fn all(&self) -> MutexGuard<'_, Sessions> {
        // Nothing is left half done under this lock.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the session of one incarnation of a worker, which is host `host` of the run.
    pub(crate) fn begin_session(
        &self,
        (worker, incarnation): (&str, u64),
        host: HostId,
        session: ActorRef<SessionMsg>,
    ) {
        self.all().insert((worker.to_owned(), incarnation), (host, session));
    }

    /// Removes the session of a worker's incarnation that is lost.
    pub(crate) fn end_session(&self, worker: &str, incarnation: u64) {
        self.all().remove(&(worker.to_owned(), incarnation));
    }

    /// Returns the session of a worker's incarnation; `None`: the session is lost or unknown.
    pub(crate) fn find_session(
        &self,
        worker: &str,
        incarnation: u64,
    ) -> Option<ActorRef<SessionMsg>> {
        self.all().get(&(worker.to_owned(), incarnation)).map(|(_, session)| session.clone())
    }

    /// Kills all sessions as if their process had been killed.
    pub(crate) fn kill_sessions(&self) {
        self.all().values().for_each(|(_, session)| session.kill());
    }

    /// Returns the worker's name and incarnation for a host; `None`: the host is lost or unknown.
    pub(crate) fn life_of_host(&self, host: HostId) -> Option<(String, u64)> {
        let all = self.all();
        all.iter().find(|(_, (it, _))| *it == host).map(|(life, _)| life.clone())
    }

    /// Returns the host of a session; `None`: the host is lost or unknown.
    pub(crate) fn host_of_life(&self, worker: &str, incarnation: u64) -> Option<HostId> {
        self.all().get(&(worker.to_owned(), incarnation)).map(|(host, _)| *host)
    }
}
