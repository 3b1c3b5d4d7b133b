//! The machine of one simulated VM.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use dormouse_metadata::MetadataService;
use dormouse_proto::v1::{CreateVm, OwnEnd};
use dormouse_tasks::answer::reckoned;
use dormouse_units::{Ppm, TaskId};
use dormouse_vm::life::{Key, LaunchFailure, TierSlot};
use dormouse_worker::{
    agent::in_process::{
        BoxedFuture, CheckpointUpload, CpuTime, JobBirth, JobDeparture, JobDump, JobLeave,
        JobOrder, JobRank, KeptOutputs, LaunchPass, OwnKeep, ProgramNotice, QuotaLift, RankTime,
        SnapshotError, TakenCheckpoint, TaskBirth, TaskDump, TaskLaunch, TaskProcess, VmGate,
        VmMachine,
    },
    cgroup::{self, CpuQuota},
    criu::AfterDump,
    metadata::Endpoint,
    process::ProcessEnd,
    workspace::TaskName,
};
use nix::sched::CpuSet;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use tokio_util::sync::CancellationToken;

use super::vcpus::{SimulatedProgram, Vcpus};
use crate::{
    witness::Image,
    worker::{chance::Chance, host::Host, uplink::Uplink},
};

/// Usual time to create a VM.
pub(super) const MAKE: Duration = Duration::from_millis(5);
/// Usual time to freeze or thaw the control groups of a VM.
const FREEZE: Duration = Duration::from_millis(3);
/// Usual time until a killed process is gone.
const DEATH: Duration = Duration::from_millis(2);
/// Usual time that CRIU needs to seize a process; the next constants are those to dump a process, and a whole job.
const SEIZE: Duration = Duration::from_millis(2);
const DUMP: Duration = Duration::from_millis(20);
const DUMP_JOB: Duration = Duration::from_millis(40);

/// The machine of one VM: its vCPUs and the programs on them.
pub(super) struct SimulatedVm<U: Uplink> {
    pub(super) host: Arc<Host<U>>,
    id: u32,
    /// A vCPU's share of a host core, in ppm, on a VM that may run jobs; `None` on other VMs.
    pub(super) core_ppm: Option<u32>,
    gate: Arc<VmGate>,
    state: Mutex<VmState>,
    /// Notified when a change may make the next event come sooner.
    changed: Notify,
    /// Cancelled when all programs of the VM are killed, which also ends operations on them.
    killed: CancellationToken,
}

impl<U: Uplink> fmt::Debug for SimulatedVm<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedVm").field("id", &self.id).finish_non_exhaustive()
    }
}

struct VmState {
    /// The instant up to which time has been simulated.
    at: Instant,
    vcpus: Vcpus,
    chance: Chance,
    processes: BTreeMap<i32, ProcessRecord>,
    is_removed: bool,
}

/// The record of a process, beside its program.
struct ProcessRecord {
    key: Key,
    /// The arguments of the process's program.
    args: Vec<String>,
    watcher: Option<Box<dyn FnOnce() + Send>>,
    /// Whether the witness knows that the process is gone.
    is_gone: bool,
}

/// A program that is about to start.
pub(super) struct Newborn {
    pub(super) key: Key,
    pub(super) args: Vec<String>,
    pub(super) program: SimulatedProgram,
}

impl<U: Uplink> SimulatedVm<U> {
    pub(super) fn new(host: &Arc<Host<U>>, create: &CreateVm, gate: &Arc<VmGate>) -> Arc<Self> {
        let chance = host.plan.chance("vm", host.incarnation ^ u64::from(create.vm));
        let mut vcpus = Vcpus::new(create.vcpus);
        if let Some(core_ppm) = create.core_ppm {
            (0..create.vcpus).for_each(|vcpu| vcpus.set_quota(vcpu, Some(core_ppm), [None; 2]));
        }
        let state = VmState {
            at: Instant::now(),
            vcpus,
            chance,
            processes: BTreeMap::new(),
            is_removed: false,
        };
        Arc::new(Self {
            host: Arc::clone(host),
            id: create.vm,
            core_ppm: create.core_ppm,
            gate: Arc::clone(gate),
            state: Mutex::new(state),
            changed: Notify::new(),
            killed: CancellationToken::new(),
        })
    }

    pub(super) const fn id(&self) -> u32 {
        self.id
    }

    fn state(&self) -> MutexGuard<'_, VmState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn with_chance<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.state().chance)
    }

    fn time(&self, usual: Duration) -> Duration {
        self.with_chance(|chance| chance.time(usual))
    }

    /// Calls `look` with the vCPUs in their present state.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Vcpus) -> T) -> T {
        self.pass(|state| look(&state.vcpus))
    }

    /// Calls `change` with the VM's state, after simulating time up to now.
    fn change<T>(&self, change: impl FnOnce(&mut VmState) -> T) -> T {
        let changed = self.pass(change);
        self.changed.notify_one();
        changed
    }

    /// Simulates time up to now, calls `then`, and reports the processes that have ended.
    fn pass<T>(&self, then: impl FnOnce(&mut VmState) -> T) -> T {
        let mut state = self.state();
        let now = Instant::now();
        let passed = now.saturating_duration_since(state.at);
        state.vcpus.pass(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX));
        state.at = now;
        let result = then(&mut state);
        let VmState { vcpus, processes, .. } = &mut *state;
        let mut ended = Vec::new();
        for (pid, process) in processes.iter_mut() {
            let Some(how) = vcpus.programs.get(pid).and_then(SimulatedProgram::ended) else {
                continue;
            };
            if !std::mem::replace(&mut process.is_gone, true) {
                if how == ProcessEnd::Exited(0) {
                    self.host.witness().work_done(process.key.0, process.key.1);
                }
                self.host.shared.process_is_gone(process.key);
            }
            ended.extend(process.watcher.take());
        }
        drop(state);
        ended.into_iter().for_each(|watcher| watcher());
        result
    }

    /// Simulates events at their times, until the VM or its worker is gone.
    pub(super) async fn drive(self: Arc<Self>) {
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
                () = self.host.shared.gone() => return,
                () = self.changed.notified() => {}
                () = wait => {}
            }
        }
    }

    /// Starts a program; returns its process id.
    pub(super) fn bear(&self, newborn: Newborn) -> i32 {
        let Newborn { key, args, program } = newborn;
        self.host.shared.process_began(key);
        self.change(|state| {
            let pid = state.processes.keys().next_back().map_or(1, |last| last + 1);
            let process = ProcessRecord { key, args, watcher: None, is_gone: false };
            state.processes.insert(pid, process);
            state.vcpus.programs.insert(pid, program);
            pid
        })
    }

    pub(super) fn kill(&self, pid: i32) {
        self.kill_within(pid, self.time(DEATH));
    }

    fn kill_within(&self, pid: i32, takes: Duration) {
        self.change(|state| {
            let ns = u64::try_from(takes.as_nanos()).unwrap_or(u64::MAX);
            state.vcpus.kill(pid, ns);
            // It never does anything of its own again.
            state.vcpus.set_standing(pid, true);
            if let Some(process) = state.processes.get_mut(&pid)
                && !std::mem::replace(&mut process.is_gone, true)
            {
                self.host.shared.process_is_gone(process.key);
            }
        });
    }

    pub(super) fn ended(&self, pid: i32) -> Option<ProcessEnd> {
        self.look(|vcpus| vcpus.programs.get(&pid).and_then(SimulatedProgram::ended))
    }

    pub(super) fn watch(&self, pid: i32, watcher: Box<dyn FnOnce() + Send>) {
        self.change(|state| {
            if let Some(process) = state.processes.get_mut(&pid) {
                process.watcher = Some(watcher);
            }
        });
    }

    pub(super) fn set_standing(&self, pid: i32, stands: bool) {
        self.change(|state| state.vcpus.set_standing(pid, stands));
    }

    /// Dumps the program of a process, which is stopped or killed by that.
    async fn dump(
        &self,
        key: Key,
        pid: i32,
        (usual, due): (Duration, Option<Ppm>),
        after: AfterDump,
    ) -> Result<(Image, Instant), SnapshotError> {
        let ended = || SnapshotError { ended: true, ..SnapshotError::new("it has ended") };
        self.killed.run_until_cancelled(sleep(self.time(SEIZE))).await.ok_or_else(ended)?;
        let Some(inside) = self.gate.enter_dump() else {
            return Err(SnapshotError { overtaken: true, ..SnapshotError::new("its VM freezes") });
        };
        if self.look(|vcpus| vcpus.programs.get(&pid).is_none_or(|it| it.ended().is_some())) {
            return Err(ended());
        }
        self.set_standing(pid, true);
        let stopped_at = Instant::now();
        let takes = self.time(usual) + self.host.slower();
        self.killed.run_until_cancelled(sleep(takes)).await.ok_or_else(ended)?;
        let rates = self.host.plan.rates;
        let (damaging, fails) =
            self.with_chance(|chance| (chance.happens(rates.damage), chance.happens(rates.dump)));
        let done = self.look(|vcpus| {
            let (worked, whole) = vcpus.programs.get(&pid).map_or((0, 1), |it| it.worked());
            let ppm = u128::from(worked) * 1_000_000 / u128::from(whole.max(1));
            Ppm::new(u32::try_from(ppm).unwrap_or(1_000_000).min(999_999))
        });
        let done = due.map_or(done, |due| due.min(done));
        let kept = match damaging || fails {
            true => Err("CRIU failed".to_owned()),
            false => self.host.images.keep(key, done),
        };
        drop(inside);
        match kept {
            Ok(image) => {
                self.host.witness().checkpoint_made(image);
                if after == AfterDump::Kill {
                    self.kill(pid);
                }
                Ok((image, stopped_at))
            }
            Err(why) => {
                self.set_standing(pid, false);
                Err(SnapshotError { damaging, ..SnapshotError::new(why) })
            }
        }
    }

    fn taken(&self, (image, stopped_at): (Image, Instant)) -> TakenCheckpoint {
        let host = Arc::clone(&self.host);
        TakenCheckpoint {
            number: image.number.get(),
            ppm: image.done.get(),
            bytes: 1,
            stopped_at,
            dump: stopped_at.elapsed(),
            foreign_ns: 0,
            upload: Box::new(SimulatedUpload { host, image }),
        }
    }
}

/// A guard: as long as it exists, a slot has no quota.
#[derive(Debug)]
struct Lift<U: Uplink> {
    vm: Arc<SimulatedVm<U>>,
    vcpu: u32,
    slot: TierSlot,
}

impl<U: Uplink> Drop for Lift<U> {
    fn drop(&mut self) {
        self.vm.change(|state| state.vcpus.lift(self.vcpu, self.slot, false));
    }
}

/// A checkpoint that is being sent to the coordinator.
#[derive(Debug)]
struct SimulatedUpload<U: Uplink> {
    host: Arc<Host<U>>,
    image: Image,
}

impl<U: Uplink> CheckpointUpload for SimulatedUpload<U> {
    fn send(
        self: Box<Self>,
        pass: LaunchPass,
        _: Arc<AtomicU64>,
    ) -> BoxedFuture<Result<u64, String>> {
        let host = Arc::clone(&self.host);
        host.shared.inside(async move { self.host.images.put(&pass, &self.image).await })
    }
}

impl<U: Uplink> VmMachine for SimulatedVm<U> {
    fn set_quota(&self, vcpu: u32, ppm: Option<u32>) -> cgroup::Result<()> {
        self.change(|state| state.vcpus.set_quota(vcpu, ppm, [None; 2]));
        Ok(())
    }

    fn set_quotas(&self, vcpu: u32, ppm: u32, slots: [Option<u32>; 2]) -> cgroup::Result<()> {
        self.change(|state| state.vcpus.set_quota(vcpu, Some(ppm), slots));
        Ok(())
    }

    fn quota(&self, ppm: u32) -> CpuQuota {
        CpuQuota::from_ppm(ppm, CpuQuota::DEFAULT_PERIOD_US)
    }

    fn bind(&self, _: u32, _: &CpuSet) -> cgroup::Result<()> {
        Ok(())
    }

    fn lift_quota(self: Arc<Self>, vcpu: u32, slot: TierSlot) -> cgroup::Result<QuotaLift> {
        self.change(|state| state.vcpus.lift(vcpu, slot, true));
        Ok(Box::new(Lift { vm: self, vcpu, slot }))
    }

    fn boost(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.change(|state| state.vcpus.set_foreground(vcpu, slot, true));
        Ok(())
    }

    fn demote(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.change(|state| state.vcpus.set_foreground(vcpu, slot, false));
        Ok(())
    }

    fn hold(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.change(|state| state.vcpus.set_held(vcpu, slot, true));
        Ok(())
    }

    fn let_go(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.change(|state| state.vcpus.set_held(vcpu, slot, false));
        Ok(())
    }

    fn slot_cpu_ns(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<u64> {
        Ok(self.look(|vcpus| vcpus.charged_ns(vcpu, slot)))
    }

    fn slot_pids(&self, _: u32, _: TierSlot) -> BTreeSet<i32> {
        BTreeSet::new()
    }

    fn slot_threads(&self, _: u32, _: TierSlot) -> Vec<i32> {
        Vec::new()
    }

    fn kills_for_memory(&self) -> u64 {
        0
    }

    fn freeze(self: Arc<Self>) -> BoxedFuture<Result<(), String>> {
        self.host.clone().shared.inside(async move {
            sleep(self.time(FREEZE)).await;
            if self.with_chance(|chance| chance.happens(self.host.plan.rates.freeze)) {
                return Err("it can't be frozen".to_owned());
            }
            self.change(|state| state.vcpus.is_frozen = true);
            Ok(())
        })
    }

    fn thaw(self: Arc<Self>) -> BoxedFuture<Result<(), String>> {
        self.host.clone().shared.inside(async move {
            sleep(self.time(FREEZE)).await;
            if self.with_chance(|chance| chance.happens(self.host.plan.rates.freeze)) {
                return Err("it can't be thawed".to_owned());
            }
            self.change(|state| state.vcpus.is_frozen = false);
            Ok(())
        })
    }

    fn promote(self: Arc<Self>, vcpu: u32, slot: TierSlot) -> BoxedFuture<Result<(), String>> {
        self.host.clone().shared.inside(async move {
            self.change(|state| {
                for other in TierSlot::BOTH {
                    state.vcpus.set_foreground(vcpu, other, other == slot);
                }
            });
            Ok(())
        })
    }

    fn kill_all(self: Arc<Self>) -> BoxedFuture<Result<(), String>> {
        self.host.clone().shared.inside(async move {
            sleep(DEATH).await;
            // What is frozen dies as well: the kernel lets it go for that.
            let all: Vec<i32> = self.change(|state| {
                state.vcpus.is_frozen = false;
                state.processes.keys().copied().collect()
            });
            all.into_iter().for_each(|pid| self.kill_within(pid, Duration::ZERO));
            self.killed.cancel();
            Ok(())
        })
    }

    fn remove(self: Arc<Self>, _: Vec<Arc<dyn TaskProcess>>) -> BoxedFuture<Result<(), String>> {
        self.host.clone().shared.inside(async move {
            self.change(|state| state.is_removed = true);
            self.host.shared.has_vm(self.id, false);
            Ok(())
        })
    }

    fn open_endpoint(
        self: Arc<Self>,
        _: MetadataService,
        _: Ipv4Addr,
        _: Option<u32>,
    ) -> BoxedFuture<Result<Endpoint, String>> {
        Box::pin(std::future::ready(Err("the simulator has no network for programs".to_owned())))
    }

    fn launch_task(
        self: Arc<Self>,
        launch: TaskLaunch,
    ) -> BoxedFuture<Result<TaskBirth, LaunchFailure>> {
        self.host.clone().shared.inside(self.task_birth(launch))
    }

    fn launch_job(
        self: Arc<Self>,
        pass: LaunchPass,
        order: JobOrder,
    ) -> BoxedFuture<Result<JobBirth, LaunchFailure>> {
        self.host.clone().shared.inside(self.job_birth(pass, order))
    }

    fn dump_task(
        self: Arc<Self>,
        dump: TaskDump,
    ) -> BoxedFuture<Result<TakenCheckpoint, SnapshotError>> {
        self.host.clone().shared.inside(async move {
            let TaskDump { key, process, due, after, permit, .. } = dump;
            let taken = self.dump(key, process.pid(), (DUMP, due), after).await;
            drop(permit);
            taken.map(|image| self.taken(image))
        })
    }

    fn dump_job(
        self: Arc<Self>,
        dump: JobDump,
    ) -> BoxedFuture<Result<TakenCheckpoint, SnapshotError>> {
        self.host.clone().shared.inside(async move {
            let JobDump { key, process, due, after, permit, .. } = dump;
            let taken = self.dump(key, process.pid(), (DUMP_JOB, due), after).await;
            drop(permit);
            taken.map(|image| self.taken(image))
        })
    }

    fn leave_job(self: Arc<Self>, pass: LaunchPass, leave: JobLeave) -> BoxedFuture<JobDeparture> {
        self.host.clone().shared.inside(async move {
            let turn = pass.unless_revoked(Arc::clone(&self.host.criu).acquire_owned()).await;
            let Ok(Ok(permit)) = turn else {
                return JobDeparture::Lost { why: "it is no longer wanted".to_owned() };
            };
            let pid = leave.process.pid();
            let Some(key) = self.state().processes.get(&pid).map(|process| process.key) else {
                return JobDeparture::Lost { why: "it is not there".to_owned() };
            };
            let due = Some(Ppm::new(leave.progress.progress_ppm));
            let left = self.dump(key, pid, (DUMP_JOB, due), AfterDump::Kill).await;
            drop(permit);
            match left {
                Ok((_, stopped_at)) => {
                    JobDeparture::Dumped { took: stopped_at.elapsed(), bytes: 1 }
                }
                Err(SnapshotError { overtaken: true, .. }) => JobDeparture::Overtaken,
                Err(error) => match self.ended(pid) {
                    Some(ended @ ProcessEnd::Exited(_)) => JobDeparture::Ended(ended),
                    _ => {
                        self.kill(pid);
                        JobDeparture::Lost { why: error.why }
                    }
                },
            }
        })
    }

    fn rank_time(&self, _: JobRank) -> Option<RankTime> {
        None
    }

    fn resume_ranks(&self, ranks: &[JobRank]) -> Result<(), String> {
        for rank in ranks {
            self.set_standing(rank.pid, false);
        }
        Ok(())
    }

    fn verdict(
        &self,
        name: &TaskName,
        ended: ProcessEnd,
        _: u64,
        _: Option<CpuTime>,
    ) -> Result<(bool, String), String> {
        match ended {
            ProcessEnd::Exited(0) => {}
            ProcessEnd::Exited(status) => return Err(format!("it ended with status {status}")),
            ProcessEnd::Killed(signal) => return Err(format!("it was killed by signal {signal}")),
        }
        let task = name.task().parse().map(TaskId::new).ok();
        let state = self.state();
        let args = state.processes.values().rev().find(|it| Some(it.key.0) == task);
        let answer = args.and_then(|process| reckoned(&process.args, 1));
        let answer = answer.and_then(|answer| serde_json::to_string(&answer).ok());
        answer.map(|answer| (true, answer)).ok_or_else(|| "it left no result".to_owned())
    }

    fn own_end(&self, _: &TaskName, _: ProcessEnd) -> OwnEnd {
        OwnEnd::default()
    }

    fn own_failure(&self, _: &TaskName, _: &OwnEnd) -> Option<String> {
        None
    }

    fn written_bytes(&self, _: &TaskName) -> u64 {
        0
    }

    fn keep_own(self: Arc<Self>, _: OwnKeep) -> BoxedFuture<KeptOutputs> {
        Box::pin(std::future::ready(KeptOutputs::default()))
    }

    fn kill_slot(&self, _: u32, _: TierSlot) {}

    fn notify_program(&self, _: &ProgramNotice<'_>) {}
}
