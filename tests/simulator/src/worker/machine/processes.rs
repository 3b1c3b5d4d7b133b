//! The processes of one simulated VM, in simulated time.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dormouse_units::Ppm;
use dormouse_vm::life::{Key, TierSlot};
use dormouse_worker::process::ProcessEnd;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{programs::SimulatedProgram, vcpus::Vcpus};
use crate::worker::{chance::Chance, shared::Shared};

/// Usual time until a killed process is gone.
pub(in crate::worker) const DEATH: Duration = Duration::from_millis(2);

/// The processes of one VM and the vCPUs that they run on, with the chances of what goes wrong.
pub(in crate::worker) struct VmKernel {
    shared: Arc<Shared>,
    state: Mutex<KernelState>,
    chance: Mutex<Chance>,
    /// Cancelled when all programs of the VM are killed, which also ends operations on them.
    killed: CancellationToken,
    /// Notified when a change may make the next event come sooner.
    changed: Notify,
}

struct KernelState {
    /// The instant up to which time has been simulated.
    at: Instant,
    vcpus: Vcpus,
    processes: BTreeMap<i32, ProcessRecord>,
    is_removed: bool,
}

/// The record of a process, beside its program.
struct ProcessRecord {
    key: Key,
    began: Instant,
    /// The arguments of the process's program.
    args: Vec<String>,
    watcher: Option<Box<dyn FnOnce() + Send>>,
    /// Whether the witness knows that the process is gone.
    is_gone: bool,
}

/// A process that is about to start.
pub(in crate::worker) struct NewProcess {
    pub(in crate::worker) key: Key,
    pub(in crate::worker) args: Vec<String>,
    pub(in crate::worker) program: SimulatedProgram,
}

impl fmt::Debug for VmKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VmKernel").finish_non_exhaustive()
    }
}

impl VmKernel {
    pub(in crate::worker) fn new(shared: &Arc<Shared>, vcpus: Vcpus, chance: Chance) -> Self {
        let (at, processes) = (Instant::now(), BTreeMap::new());
        let state = Mutex::new(KernelState { at, vcpus, processes, is_removed: false });
        let (shared, chance) = (Arc::clone(shared), Mutex::new(chance));
        Self { shared, state, chance, killed: CancellationToken::new(), changed: Notify::new() }
    }

    pub(in crate::worker) fn chance(&self) -> MutexGuard<'_, Chance> {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws the time that an operation takes.
    pub(in crate::worker) fn time(&self, usual: Duration) -> Duration {
        self.chance().time(usual)
    }

    /// Draws whether something happens that has this rate.
    pub(in crate::worker) fn happens(&self, rate: Ppm) -> bool {
        self.chance().happens(rate)
    }

    /// Waits for this time, unless all programs of the VM are killed first (`None`).
    pub(in crate::worker) async fn outlive(&self, time: Duration) -> Option<()> {
        self.killed.run_until_cancelled(sleep(time)).await
    }

    fn state(&self) -> MutexGuard<'_, KernelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `look` with the vCPUs in their present state.
    pub(in crate::worker) fn look<T>(&self, look: impl FnOnce(&Vcpus) -> T) -> T {
        self.pass(|state| look(&state.vcpus))
    }

    /// Calls `change` with the vCPUs, after simulating time up to now.
    pub(in crate::worker) fn change<T>(&self, change: impl FnOnce(&mut Vcpus) -> T) -> T {
        self.change_state(|state| change(&mut state.vcpus))
    }

    fn change_state<T>(&self, change: impl FnOnce(&mut KernelState) -> T) -> T {
        let changed = self.pass(change);
        self.changed.notify_one();
        changed
    }

    /// Simulates time up to now, calls `then`, and reports the processes that have ended.
    fn pass<T>(&self, then: impl FnOnce(&mut KernelState) -> T) -> T {
        let mut state = self.state();
        let now = Instant::now();
        let passed = now.saturating_duration_since(state.at);
        state.vcpus.pass(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX));
        state.at = now;
        let result = then(&mut state);
        let KernelState { vcpus, processes, .. } = &mut *state;
        let mut ended = Vec::new();
        for (pid, process) in processes.iter_mut() {
            let Some(how) = vcpus.programs.get(pid).and_then(SimulatedProgram::ended) else {
                continue;
            };
            if !std::mem::replace(&mut process.is_gone, true) {
                if how == ProcessEnd::Exited(0) {
                    self.shared.witness().work_done(process.key.0, process.key.1);
                }
                self.shared.process_is_gone(process.key);
            }
            ended.extend(process.watcher.take());
        }
        drop(state);
        ended.into_iter().for_each(|watcher| watcher());
        result
    }

    /// Simulates events at their times, until the VM or its worker is gone.
    pub(in crate::worker) async fn drive(self: Arc<Self>) {
        loop {
            let (next, is_removed) = self.pass(|state| (state.vcpus.next_ns(), state.is_removed));
            if is_removed {
                return;
            }
            let wait = async {
                match next {
                    Some(ns) => sleep(Duration::from_nanos(ns)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.shared.gone() => return,
                () = self.changed.notified() => {}
                () = wait => {}
            }
        }
    }

    /// Starts a process, which stands still; returns its process id, or `None` if the VM's groups are removed.
    pub(in crate::worker) fn start(&self, new: NewProcess) -> Option<i32> {
        let NewProcess { key, args, program } = new;
        self.change_state(|state| {
            if state.is_removed {
                return None;
            }
            self.shared.process_began(key);
            let pid = state.processes.keys().next_back().map_or(1, |last| last + 1);
            let process =
                ProcessRecord { key, began: Instant::now(), args, watcher: None, is_gone: false };
            state.processes.insert(pid, process);
            state.vcpus.programs.insert(pid, program);
            state.vcpus.set_standing(pid, true);
            Some(pid)
        })
    }

    /// Kills a process, which is gone after some time.
    pub(in crate::worker) fn kill(&self, pid: i32) {
        self.kill_within(pid, self.time(DEATH));
    }

    fn kill_within(&self, pid: i32, takes: Duration) {
        self.change_state(|state| {
            state.vcpus.kill(pid, u64::try_from(takes.as_nanos()).unwrap_or(u64::MAX));
            // It never does anything of its own again.
            state.vcpus.set_standing(pid, true);
            if let Some(process) = state.processes.get_mut(&pid)
                && !std::mem::replace(&mut process.is_gone, true)
            {
                self.shared.process_is_gone(process.key);
            }
        });
    }

    /// Kills all processes at once, frozen ones too: the kernel lets them go for that.
    pub(in crate::worker) fn kill_all(&self) {
        self.change(|vcpus| vcpus.is_frozen = false);
        let all: Vec<(i32, Option<(Key, Duration)>)> = {
            let state = self.state();
            let living = |it: &ProcessRecord| (!it.is_gone).then(|| (it.key, it.began.elapsed()));
            state.processes.iter().map(|(pid, process)| (*pid, living(process))).collect()
        };
        for (pid, alive) in all {
            if let Some((key, lived)) = alive {
                self.shared.witness().died_with_vm(key, lived);
            }
            self.kill_within(pid, Duration::ZERO);
        }
        self.killed.cancel();
    }

    /// Exempts a slot from its quota until the returned value is dropped.
    pub(in crate::worker) fn lift(self: &Arc<Self>, vcpu: u32, slot: TierSlot) -> SlotLift {
        self.change(|vcpus| vcpus.lift(vcpu, slot, true));
        SlotLift { kernel: Arc::clone(self), vcpu, slot }
    }

    /// Forgets the VM; `false`: it has processes that live, whose groups the kernel does not remove.
    pub(in crate::worker) fn remove(&self) -> bool {
        self.change_state(|state| {
            let lives = |it: &SimulatedProgram| it.ended().is_none();
            state.is_removed = !state.vcpus.programs.values().any(lives);
            state.is_removed
        })
    }

    /// The attempt that a process belongs to.
    pub(in crate::worker) fn key(&self, pid: i32) -> Option<Key> {
        self.state().processes.get(&pid).map(|process| process.key)
    }

    /// How a process ended; `None` if it has not.
    pub(in crate::worker) fn ended(&self, pid: i32) -> Option<ProcessEnd> {
        self.look(|vcpus| vcpus.programs.get(&pid).and_then(SimulatedProgram::ended))
    }

    /// Has `watcher` called once a process has ended.
    pub(in crate::worker) fn watch(&self, pid: i32, watcher: Box<dyn FnOnce() + Send>) {
        self.change_state(|state| {
            if let Some(process) = state.processes.get_mut(&pid) {
                process.watcher = Some(watcher);
            }
        });
    }

    /// Stops a process, or lets it continue.
    pub(in crate::worker) fn set_standing(&self, pid: i32, stands: bool) {
        self.change(|vcpus| vcpus.set_standing(pid, stands));
    }

    /// The arguments of a process's program.
    pub(in crate::worker) fn args(&self, pid: i32) -> Option<Vec<String>> {
        self.state().processes.get(&pid).map(|process| process.args.clone())
    }

    /// The arguments of the program of the newest process that `is_it` accepts.
    pub(in crate::worker) fn newest_args(
        &self,
        is_it: impl Fn(Key) -> bool,
    ) -> Option<Vec<String>> {
        let state = self.state();
        let newest = state.processes.values().rev().find(|process| is_it(process.key));
        newest.map(|process| process.args.clone())
    }
}

/// A guard: as long as it exists, a slot has no quota.
#[derive(Debug)]
pub(in crate::worker) struct SlotLift {
    kernel: Arc<VmKernel>,
    vcpu: u32,
    slot: TierSlot,
}

impl Drop for SlotLift {
    fn drop(&mut self) {
        self.kernel.change(|vcpus| vcpus.lift(self.vcpu, self.slot, false));
    }
}
