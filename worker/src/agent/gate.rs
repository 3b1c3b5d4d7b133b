//! The gate of a VM: tells the threads that work on the VM whether it runs, freezes or is destroyed.
//!
//! A VM freezes and dies at once, whatever is being done to it. A thread that fetches something, waits for its turn or
//! starts a task asks the gate whether that is still wanted, and counts no time in which the VM is frozen. Only a dump
//! is waited for, once CRIU holds the task: CRIU's code in a frozen task would not answer.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Tracks whether a VM runs, freezes or is destroyed, for work on the VM that other tasks and threads do.
#[derive(Debug)]
pub struct VmGate {
    state: watch::Sender<GateState>,
    /// Cancelled when the VM is destroyed.
    end: CancellationToken,
}

#[derive(Clone, Copy, Debug, Default)]
struct GateState {
    /// Time at which the VM was frozen or told to freeze; `None`: the VM runs.
    shut: Option<Instant>,
    was_shut: Duration,
    births: u32,
    dumps: u32,
}

impl GateState {
    fn frozen_time(&self) -> Duration {
        self.was_shut + self.shut.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn count_of(&mut self, work: GateWork) -> &mut u32 {
        match work {
            GateWork::Birth => &mut self.births,
            GateWork::Dump => &mut self.dumps,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum GateWork {
    Birth,
    Dump,
}

impl VmGate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: watch::Sender::default(), end: CancellationToken::new() })
    }

    /// Closes the gate, as the VM is to freeze: from now on no process starts and no dump begins.
    pub(crate) fn shut_gate(&self) {
        self.state.send_modify(|state| {
            state.shut.get_or_insert_with(Instant::now);
        });
    }

    /// Opens the gate, as the VM has thawed.
    pub(crate) fn open(&self) {
        self.state.send_modify(|state| {
            state.was_shut = state.frozen_time();
            state.shut = None;
        });
    }

    /// Ends all work on the VM, which is destroyed.
    pub(crate) fn end_vm(&self) {
        self.end.cancel();
        self.open();
    }

    /// Returns whether CRIU holds one of the VM's tasks.
    pub(crate) fn is_held(&self) -> bool {
        self.state.borrow().dumps > 0
    }

    /// Returns whether processes may still start.
    pub(crate) fn has_births(&self) -> bool {
        self.state.borrow().births > 0
    }

    /// Waits until no process on the VM can start any more.
    pub(crate) async fn births_over(&self) {
        // The sender is here.
        let _ = self.state.subscribe().wait_for(|state| state.births == 0).await;
    }

    /// Begins a dump by CRIU; `None` if the VM is to freeze or is destroyed.
    pub fn enter_dump(self: &Arc<Self>) -> Option<GatedWork> {
        self.enter_work(GateWork::Dump)
    }

    /// Makes the pass of a launch, which can be revoked.
    pub(crate) fn make_pass(self: &Arc<Self>) -> LaunchPass {
        LaunchPass { gate: Arc::clone(self), revoked: self.end.child_token() }
    }

    fn enter_work(self: &Arc<Self>, work: GateWork) -> Option<GatedWork> {
        let entered = self.state.send_if_modified(|state| {
            let may = state.shut.is_none() && !self.end.is_cancelled();
            *state.count_of(work) += u32::from(may);
            may
        });
        entered.then(|| GatedWork { gate: Arc::clone(self), work })
    }
}

/// Work under way on a VM, which ends when dropped.
#[derive(Debug)]
pub struct GatedWork {
    gate: Arc<VmGate>,
    work: GateWork,
}

impl Drop for GatedWork {
    fn drop(&mut self) {
        self.gate.state.send_modify(|state| *state.count_of(self.work) -= 1);
    }
}

/// Error of a launch that was revoked.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("it is no longer wanted")]
pub struct RevokedLaunch;

/// Permission for a launch on a VM.
#[derive(Clone, Debug)]
pub struct LaunchPass {
    gate: Arc<VmGate>,
    revoked: CancellationToken,
}

impl LaunchPass {
    /// Revokes the launch: any process that it still starts is killed.
    pub(crate) fn revoke_launch(&self) {
        self.revoked.cancel();
    }

    /// Checks that the launch isn't revoked.
    pub fn check_wanted(&self) -> Result<(), RevokedLaunch> {
        if self.revoked.is_cancelled() { Err(RevokedLaunch) } else { Ok(()) }
    }

    /// Waits for `work`, unless the launch is revoked first.
    pub async fn unless_revoked<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, RevokedLaunch> {
        self.revoked.run_until_cancelled(work).await.ok_or(RevokedLaunch)
    }

    /// Waits until the VM isn't frozen.
    pub async fn wait_thawed(&self) -> Result<(), RevokedLaunch> {
        let mut state = self.gate.state.subscribe();
        let _ = self.unless_revoked(state.wait_for(|state| state.shut.is_none())).await?;
        self.check_wanted()
    }

    /// Waits until the VM freezes.
    pub async fn wait_frozen(&self) {
        let _ = self.gate.state.subscribe().wait_for(|state| state.shut.is_some()).await;
    }

    /// Begins the start of a process; `None` if the VM is to freeze or is destroyed.
    pub fn enter_birth(&self) -> Option<GatedWork> {
        self.check_wanted().ok()?;
        self.gate.enter_work(GateWork::Birth)
    }

    /// Starts a stopwatch that counts only time in which the VM isn't frozen.
    pub(crate) fn start_stopwatch(&self) -> Stopwatch<'_> {
        let frozen = self.gate.state.borrow().frozen_time();
        Stopwatch { gate: &self.gate, begun: Instant::now(), frozen }
    }
}

/// Stopwatch that counts only time in which a VM isn't frozen.
#[derive(Debug)]
pub(crate) struct Stopwatch<'a> {
    gate: &'a VmGate,
    begun: Instant,
    frozen: Duration,
}

impl Stopwatch<'_> {
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed().saturating_sub(self.frozen_meanwhile())
    }

    /// Returns the time for which the VM was frozen since the start.
    pub(crate) fn frozen_meanwhile(&self) -> Duration {
        self.gate.state.borrow().frozen_time().saturating_sub(self.frozen)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_on_a_vm_that_freezes_or_goes() {
        let gate = VmGate::new();
        let pass = gate.make_pass();
        let dump = gate.enter_dump().unwrap();
        let birth = pass.enter_birth().unwrap();
        gate.shut_gate();
        assert!(gate.enter_dump().is_none() && pass.enter_birth().is_none());
        assert!(gate.is_held() && gate.has_births());
        drop((dump, birth));
        assert!(!gate.is_held() && !gate.has_births());
        gate.open();
        assert!(gate.enter_dump().is_some() && pass.enter_birth().is_some());
        pass.revoke_launch();
        assert!(pass.enter_birth().is_none() && gate.make_pass().enter_birth().is_some());
        gate.end_vm();
        assert!(gate.enter_dump().is_none() && gate.make_pass().enter_birth().is_none());
    }

    #[test]
    fn frozen_time_does_not_count() {
        let gate = VmGate::new();
        let pass = gate.make_pass();
        let watch = pass.start_stopwatch();
        gate.shut_gate();
        std::thread::sleep(Duration::from_millis(30));
        gate.open();
        assert!(watch.frozen_meanwhile() >= Duration::from_millis(30));
        assert!(watch.elapsed() < watch.frozen_meanwhile(), "{watch:?}");
        assert_eq!(pass.start_stopwatch().frozen_meanwhile(), Duration::ZERO);
    }

    #[tokio::test]
    async fn who_waits_hears_of_the_thaw_and_of_the_end() {
        let gate = VmGate::new();
        let pass = gate.make_pass();
        gate.shut_gate();
        let waiting = tokio::spawn({
            let pass = pass.clone();
            async move { pass.wait_thawed().await.is_ok() }
        });
        gate.open();
        assert!(waiting.await.unwrap());
        gate.shut_gate();
        let waiting = tokio::spawn(async move { pass.wait_thawed().await.is_ok() });
        gate.end_vm();
        assert!(!waiting.await.unwrap());
        gate.births_over().await;
    }
}
