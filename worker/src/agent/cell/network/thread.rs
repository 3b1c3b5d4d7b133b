//! The thread that reads and delivers the packets of all instances of a worker.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Interval at which connections that are over are removed.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// A thread with a runtime of its own, which ends when this is dropped. Its tasks take turns: an instance that floods its network
/// delays packets of others by its own turns, and nothing else of the worker.
#[derive(Debug)]
pub(super) struct PacketThread {
    runtime: Handle,
    _end: DropGuard,
}

impl PacketThread {
    /// Starts the thread, which calls `sweep` once a second.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub(super) fn start(sweep: impl Fn(Instant) + Send + 'static) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, end) = (runtime.handle().clone(), CancellationToken::new());
        let until = end.clone();
        thread::Builder::new().name("packets".to_owned()).spawn(move || {
            runtime.block_on(async {
                let mut turns = tokio::time::interval(SWEEP_EVERY);
                while until.run_until_cancelled(turns.tick()).await.is_some() {
                    sweep(Instant::now());
                }
            });
        })?;
        Ok(Self { runtime: handle, _end: end.drop_guard() })
    }

    /// Returns the runtime, whose tasks end with the thread.
    pub(super) const fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn tasks_run_in_a_thread_of_their_own_which_sweeps_and_ends() {
        let (swept, sweeps) = mpsc::channel();
        let thread = PacketThread::start(move |_| drop(swept.send(thread_name()))).unwrap();
        let (tell, told) = mpsc::channel();
        thread.runtime().spawn(async move { tell.send(thread_name()) });
        let patience = Duration::from_secs(60);
        assert_eq!(told.recv_timeout(patience).unwrap().as_deref(), Some("packets"));
        for _ in 0..2 {
            assert_eq!(sweeps.recv_timeout(patience).unwrap().as_deref(), Some("packets"));
        }
        drop(thread);
        // The closure goes with the thread.
        let begun = std::time::Instant::now();
        let end = loop {
            match sweeps.recv_timeout(patience) {
                Ok(_) => assert!(begun.elapsed() < patience, "it sweeps on"),
                Err(end) => break end,
            }
        };
        assert_eq!(end, mpsc::RecvTimeoutError::Disconnected);
    }

    fn thread_name() -> Option<String> {
        thread::current().name().map(str::to_owned)
    }
}
