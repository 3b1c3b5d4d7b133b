//! The signals that tell this process to end.

use std::future::pending;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Number of signals so far. One task listens for as long as the process lives: with one for each run, signals
/// between two runs would be lost.
static HEARD: Mutex<Option<watch::Receiver<u32>>> = Mutex::new(None);

/// Time within which a further signal counts as a repetition of the last one: `timeout` and some supervisors send a signal both to
/// a process and to its group.
const ECHO: Duration = Duration::from_millis(250);

/// SIGINT and SIGTERM of this process, one after the other, from the first one on: a signal that arrives before a run
/// begins still stops that run.
#[derive(Debug)]
pub struct ProcessSignals {
    heard: watch::Receiver<u32>,
    taken: u32,
}

impl ProcessSignals {
    /// Returns the signals of this process.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn of_this_process() -> io::Result<Self> {
        let mut listens = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = match &*listens {
            Some(heard) => heard.clone(),
            None => listens.insert(listen_signals()?).clone(),
        };
        Ok(Self { heard, taken: 0 })
    }

    /// Returns whether a signal has arrived.
    #[must_use]
    pub fn any_came(&self) -> bool {
        *self.heard.borrow() > 0
    }

    /// Waits for the next signal. Dropping the future loses none.
    pub async fn next(&mut self) {
        let taken = self.taken;
        if self.heard.wait_for(|heard| *heard > taken).await.is_err() {
            // Its thread is gone: none will come.
            pending::<()>().await;
        }
        self.taken += 1;
    }
}

/// Starts to listen; signals count once this has returned.
fn listen_signals() -> io::Result<watch::Receiver<u32>> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let (tell, heard) = watch::channel(0_u32);
    let listens = async move {
        let mut before = None;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            let now = Instant::now();
            if !is_echo(before.replace(now), now) {
                tell.send_modify(|heard| *heard = heard.saturating_add(1));
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listens))?;
    Ok(heard)
}

/// Returns whether a signal that arrives now only repeats the previous one.
fn is_echo(before: Option<Instant>, now: Instant) -> bool {
    before.is_some_and(|before| now.saturating_duration_since(before) < ECHO)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `timeout` ended a run for good where it was to be paused, whenever its two signals came apart.
    #[test]
    fn a_signal_and_its_echo_are_one() {
        let begun = Instant::now();
        assert!(!is_echo(None, begun));
        assert!(is_echo(Some(begun), begun));
        assert!(is_echo(Some(begun), begun + Duration::from_millis(20)));
        assert!(!is_echo(Some(begun), begun + Duration::from_millis(400)));
    }
}
