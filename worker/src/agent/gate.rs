//! What a VM is up to, for the threads that work on it.
//!
//! A VM freezes and dies at once, whatever is being done to it. Who fetches, waits for its turn or
//! brings a task to life asks here whether that is still wanted, and counts no time in which the
//! VM is frozen. Only a dump is waited for, once CRIU holds the task: frozen, CRIU's code in it
//! would answer no more.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a VM is up to.
#[derive(Debug)]
pub struct Gate {
    state: watch::Sender<State>,
    /// The VM is destroyed.
    end: CancellationToken,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Since when it is frozen, or about to be.
    shut: Option<Instant>,
    was_shut: Duration,
    births: u32,
    dumps: u32,
}

impl State {
    fn frozen(&self) -> Duration {
        self.was_shut + self.shut.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn count(&mut self, work: Work) -> &mut u32 {
        match work {
            Work::Birth => &mut self.births,
            Work::Dump => &mut self.dumps,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Birth,
    Dump,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: watch::Sender::default(), end: CancellationToken::new() })
    }

    /// The VM is to freeze: from now on no task is brought to life and no dump begins.
    pub(crate) fn shut(&self) {
        self.state.send_modify(|state| {
            state.shut.get_or_insert_with(Instant::now);
        });
    }

    /// The VM has thawed.
    pub(crate) fn open(&self) {
        self.state.send_modify(|state| {
            state.was_shut = state.frozen();
            state.shut = None;
        });
    }

    /// The VM is to go: all that is being done to it is given up.
    pub(crate) fn end(&self) {
        self.end.cancel();
        self.open();
    }

    /// CRIU holds one of its tasks.
    pub(crate) fn is_held(&self) -> bool {
        self.state.borrow().dumps > 0
    }

    /// Processes may still come to life.
    pub(crate) fn has_births(&self) -> bool {
        self.state.borrow().births > 0
    }

    /// Waits until no process can come to life any more.
    pub(crate) async fn births_over(&self) {
        // The sender is here.
        let _ = self.state.subscribe().wait_for(|state| state.births == 0).await;
    }

    /// For CRIU to take hold of a task; `None` where the VM is to freeze or to go.
    pub fn dump(self: &Arc<Self>) -> Option<Inside> {
        self.enter(Work::Dump)
    }

    /// For a launch, which may be given up by itself, too.
    pub(crate) fn pass(self: &Arc<Self>) -> Pass {
        Pass { gate: Arc::clone(self), revoked: self.end.child_token() }
    }

    fn enter(self: &Arc<Self>, work: Work) -> Option<Inside> {
        let entered = self.state.send_if_modified(|state| {
            let may = state.shut.is_none() && !self.end.is_cancelled();
            *state.count(work) += u32::from(may);
            may
        });
        entered.then(|| Inside { gate: Arc::clone(self), work })
    }
}

/// While it lives, work is under way on a VM.
#[derive(Debug)]
pub struct Inside {
    gate: Arc<Gate>,
    work: Work,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.gate.state.send_modify(|state| *state.count(self.work) -= 1);
    }
}

/// A launch is no longer wanted.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("it is no longer wanted")]
pub struct Revoked;

/// What a launch is allowed by its VM.
#[derive(Clone, Debug)]
pub struct Pass {
    gate: Arc<Gate>,
    revoked: CancellationToken,
}

impl Pass {
    /// The launch is no longer wanted: whatever it still brings to life it kills.
    pub(crate) fn revoke(&self) {
        self.revoked.cancel();
    }

    /// Whether the launch is still wanted.
    pub fn check(&self) -> Result<(), Revoked> {
        if self.revoked.is_cancelled() { Err(Revoked) } else { Ok(()) }
    }

    /// What comes of `work`, unless the launch is given up before.
    pub async fn unless_revoked<T>(&self, work: impl Future<Output = T>) -> Result<T, Revoked> {
        self.revoked.run_until_cancelled(work).await.ok_or(Revoked)
    }

    /// Waits until the VM is not frozen.
    pub async fn thawed(&self) -> Result<(), Revoked> {
        let mut state = self.gate.state.subscribe();
        let _ = self.unless_revoked(state.wait_for(|state| state.shut.is_none())).await?;
        self.check()
    }

    /// Waits until the VM freezes.
    pub async fn frozen(&self) {
        let _ = self.gate.state.subscribe().wait_for(|state| state.shut.is_some()).await;
    }

    /// For a process to be brought to life; `None` where that is not to be now.
    pub fn birth(&self) -> Option<Inside> {
        self.check().ok()?;
        self.gate.enter(Work::Birth)
    }

    /// Counts from now on.
    pub(crate) fn stopwatch(&self) -> Stopwatch<'_> {
        let frozen = self.gate.state.borrow().frozen();
        Stopwatch { gate: &self.gate, begun: Instant::now(), frozen }
    }
}

/// Time in which a VM was not frozen.
#[derive(Debug)]
pub(crate) struct Stopwatch<'a> {
    gate: &'a Gate,
    begun: Instant,
    frozen: Duration,
}

impl Stopwatch<'_> {
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed().saturating_sub(self.stood())
    }

    /// The time for which the VM was frozen meanwhile.
    pub(crate) fn stood(&self) -> Duration {
        self.gate.state.borrow().frozen().saturating_sub(self.frozen)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_on_a_vm_that_freezes_or_goes() {
        let gate = Gate::new();
        let pass = gate.pass();
        let dump = gate.dump().unwrap();
        let birth = pass.birth().unwrap();
        gate.shut();
        assert!(gate.dump().is_none() && pass.birth().is_none());
        assert!(gate.is_held() && gate.has_births());
        drop((dump, birth));
        assert!(!gate.is_held() && !gate.has_births());
        gate.open();
        assert!(gate.dump().is_some() && pass.birth().is_some());
        pass.revoke();
        assert!(pass.birth().is_none() && gate.pass().birth().is_some());
        gate.end();
        assert!(gate.dump().is_none() && gate.pass().birth().is_none());
    }

    #[test]
    fn frozen_time_does_not_count() {
        let gate = Gate::new();
        let pass = gate.pass();
        let watch = pass.stopwatch();
        gate.shut();
        std::thread::sleep(Duration::from_millis(30));
        gate.open();
        assert!(watch.stood() >= Duration::from_millis(30));
        assert!(watch.elapsed() < watch.stood(), "{watch:?}");
        assert_eq!(pass.stopwatch().stood(), Duration::ZERO);
    }

    #[tokio::test]
    async fn who_waits_hears_of_the_thaw_and_of_the_end() {
        let gate = Gate::new();
        let pass = gate.pass();
        gate.shut();
        let waiting = tokio::spawn({
            let pass = pass.clone();
            async move { pass.thawed().await.is_ok() }
        });
        gate.open();
        assert!(waiting.await.unwrap());
        gate.shut();
        let waiting = tokio::spawn(async move { pass.thawed().await.is_ok() });
        gate.end();
        assert!(!waiting.await.unwrap());
        gate.births_over().await;
    }
}
