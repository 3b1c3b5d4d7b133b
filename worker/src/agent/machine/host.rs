//! The machines of a real host: control groups, processes and CRIU.

use std::{
    collections::BTreeSet,
    fs, io,
    net::Ipv4Addr,
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use dormouse_metadata::MetadataService;
use dormouse_proto::v1::{CheckpointRef, CreateVm, OwnEnd, Report, StartTask};
use dormouse_tasks::{left, result::TaskResult, supervisor::WORK};
use dormouse_vm::life::LaunchFailure;
use nix::{
    errno::Errno,
    sched::CpuSet,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{runtime::Handle, task::spawn_blocking};

use super::{
    backend::{BoxedFuture, MachineBackend},
    checkpoints::{AttemptDump, CheckpointUpload, TakenCheckpoint},
    dumps::{dump_and_leave, dump_program},
    launches::{AttemptBirth, AttemptOrder, OwnKeep, ProgramNotice},
    launching::launch_program,
    moments::DumpMoments,
    process::TaskProcess,
    vm::{CellMachine, DumpMachine, LaunchMachine, OwnMachine, QuotaLift, VmMachine},
};
use crate::{
    agent::{
        cell::{self, CellLaunch, CellRelays, RelayOrder},
        gate::LaunchPass,
        host::{LifeHost, limit},
        launch::{self, RESULT, TaskPlace},
        own::{self, KeptOutputs},
        report::{Key, explain_error},
        snapshot::{SnapshotError, TaskSnapshot},
        threads::run_urgent,
        verdict::for_want_of_memory,
        vm::{JobDeparture, JobRank, RankTime, create_job_groups, resume_ranks},
    },
    cgroup::{self, CpuQuota, TierSlot},
    metadata::{Endpoint, leave_notice},
    process::ProcessEnd,
    store::StoredCheckpoint,
    workspace::TaskName,
};

/// The host under all VMs of one session, with real control groups and processes.
#[derive(Debug)]
pub(crate) struct HostBackend(pub(crate) Arc<LifeHost>);

impl MachineBackend for HostBackend {
    fn running(&self) -> BoxedFuture<()> {
        Box::pin(std::future::ready(()))
    }

    fn report(&self, report: Report) {
        self.0.send_report(report);
    }

    fn create_vm(&self, create: &CreateVm) -> BoxedFuture<Result<Arc<dyn VmMachine>, String>> {
        let host = Arc::clone(&self.0);
        let (id, memory) = (create.vm, create.memory_bytes);
        let (lanes, vcpus) = (lane_count(create), create.vcpus);
        let core_ppm = create.core_ppm;
        Box::pin(async move {
            let making = {
                let host = Arc::clone(&host);
                spawn_blocking(move || {
                    let tree = &host.prepared.tree;
                    match core_ppm {
                        None => {
                            let groups = tree.create_vm(u64::from(id), lanes, memory)?;
                            groups.bound_processes(vcpus)?;
                            Ok(groups)
                        }
                        Some(core_ppm) => create_job_groups(tree, id, lanes, memory, core_ppm),
                    }
                })
            };
            let groups =
                making.await.map_err(|e| explain_error(&e))?.map_err(|e| explain_error(&e))?;
            let machine: Arc<dyn VmMachine> = Arc::new(HostVm { host, groups: Arc::new(groups) });
            Ok(machine)
        })
    }

    fn check_order(&self, order: &StartTask) -> Result<(), String> {
        own::check_mounts(order, &self.0.prepared.mounts)
    }

    fn waits_for_inputs(&self, order: &StartTask) -> bool {
        own::waits_for_inputs(&self.0, order)
    }

    fn release(&self, name: &TaskName, key: Key, keeps: bool) {
        self.0.release_attempt(name, key, keeps);
    }

    fn release_folder(&self, name: &TaskName, vm: u32, keeps: bool) {
        self.0.release_folder(name, vm, keeps);
    }

    fn forget_folder(&self, name: &TaskName) {
        self.0.forget_folder(name);
    }

    fn unfinished_bytes(&self, name: &TaskName) -> u64 {
        self.0.store().unfinished_bytes(name)
    }
}

/// Returns the number of a VM's groups that have a quota of their own: one for each vCPU, and one for all vCPUs of a VM with a
/// cell, whose processes may run on any of them.
pub(crate) fn lane_count(create: &CreateVm) -> u32 {
    if create.cell.is_some() { create.vcpus.min(1) } else { create.vcpus }
}

/// A VM made of control groups.
#[derive(Debug)]
pub(crate) struct HostVm {
    pub(crate) host: Arc<LifeHost>,
    pub(crate) groups: Arc<cgroup::VmGroups>,
}

impl HostVm {
    fn task_place(&self, cpu: u32, slot: TierSlot) -> TaskPlace {
        TaskPlace { groups: Arc::clone(&self.groups), cpu, slot }
    }

    /// Returns the slot in which an attempt's only process begins, or the parent of its processes.
    pub(crate) fn parent_place(&self, order: &AttemptOrder) -> TaskPlace {
        let (cpu, slot) = order.parent_slot();
        self.task_place(cpu, slot)
    }

    /// Changes control groups in a thread of its own, as the change must not wait.
    fn run_urgently(
        self: Arc<Self>,
        work: impl FnOnce(&cgroup::VmGroups) -> cgroup::Result<()> + Send + 'static,
    ) -> BoxedFuture<Result<(), String>> {
        Box::pin(async move {
            let done = run_urgent(move || work(&self.groups)).await;
            done.map_err(|e| explain_error(&e))?.map_err(|e| explain_error(&e))
        })
    }

    pub(crate) fn taken_checkpoint(&self, snapshot: TaskSnapshot) -> TakenCheckpoint {
        let TaskSnapshot { checkpoint, stopped_at, dump, took, foreign_ns } = snapshot;
        let manifest = checkpoint.manifest();
        let number = u32::try_from(manifest.sequence).unwrap_or(u32::MAX);
        let (ppm, bytes) = (manifest.progress.progress_ppm, manifest.total_bytes());
        let upload = Box::new(HostUpload(Arc::clone(&self.host), checkpoint));
        TakenCheckpoint { number, ppm, bytes, stopped_at, dump, took, foreign_ns, upload }
    }
}

impl VmMachine for HostVm {
    fn set_quota(&self, vcpu: u32, ppm: Option<u32>) -> cgroup::Result<()> {
        self.groups.set_quota(vcpu, ppm)
    }

    fn set_quotas(&self, vcpu: u32, ppm: u32, slots: [Option<u32>; 2]) -> cgroup::Result<()> {
        self.groups.set_quotas(vcpu, ppm, slots)
    }

    fn quota(&self, ppm: u32) -> CpuQuota {
        self.groups.core_quota(ppm)
    }

    fn bind(&self, vcpu: u32, cores: &CpuSet) -> cgroup::Result<()> {
        self.groups.bind_vcpu(vcpu, cores)
    }

    fn lift_quota(self: Arc<Self>, vcpu: u32, slot: TierSlot) -> cgroup::Result<QuotaLift> {
        Ok(Box::new(Arc::clone(&self.groups).lift_quota_of(vcpu, slot)?))
    }

    fn boost(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.groups.boost_slot(vcpu, slot)
    }

    fn demote(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.groups.demote_slot(vcpu, slot)
    }

    fn hold(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.groups.hold_slot(vcpu, slot)
    }

    fn let_go(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.groups.let_go(vcpu, slot)
    }

    fn slot_cpu_ns(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<u64> {
        self.groups.slot_cpu_ns(vcpu, slot)
    }

    fn slot_pids(&self, vcpu: u32, slot: TierSlot) -> BTreeSet<i32> {
        self.groups.slot_pids(vcpu, slot).unwrap_or_default()
    }

    fn kills_for_memory(&self) -> u64 {
        self.groups.kills_for_memory().unwrap_or(0)
    }

    fn freeze(self: Arc<Self>) -> BoxedFuture<Result<(), String>> {
        self.run_urgently(|groups| groups.freeze_vm(limit::FREEZE).map(drop))
    }

    fn thaw(self: Arc<Self>) -> BoxedFuture<Result<(), String>> {
        self.run_urgently(|groups| groups.thaw_vm(limit::FREEZE).map(drop))
    }

    fn promote(self: Arc<Self>, vcpu: u32, slot: TierSlot) -> BoxedFuture<Result<(), String>> {
        // It may wait for a slot to be empty: not on a thread that others need.
        self.run_urgently(move |groups| groups.promote_slot(vcpu, slot, limit::KILL))
    }

    fn kill_all(self: Arc<Self>) -> BoxedFuture<Result<(), String>> {
        self.run_urgently(|groups| groups.kill_all(limit::KILL).map(drop))
    }

    fn remove(
        self: Arc<Self>,
        processes: Vec<Arc<dyn TaskProcess>>,
    ) -> BoxedFuture<Result<(), String>> {
        self.run_urgently(move |groups| {
            processes.iter().for_each(|process| reap_killed(&**process));
            groups.remove(limit::KILL)
        })
    }

    fn open_endpoint(
        self: Arc<Self>,
        service: MetadataService,
        address: Ipv4Addr,
        hop_limit: Option<u32>,
    ) -> BoxedFuture<Result<Endpoint, String>> {
        Box::pin(async move {
            let opening = spawn_blocking(move || {
                let cell = self.groups.cell().map(AsRef::as_ref);
                Endpoint::open(cell, service, address, hop_limit)
            });
            opening
                .await
                .map_err(|error| explain_error(&error))?
                .map_err(|error| explain_error(&error))
        })
    }

    fn rank_time(&self, rank: JobRank) -> Option<RankTime> {
        rank.scheduler_time()
    }

    fn resume_ranks(&self, ranks: &[JobRank]) -> Result<(), String> {
        resume_ranks(ranks).map_err(|e| explain_error(&e))
    }

    fn answer(&self, name: &TaskName) -> Result<TaskResult, String> {
        let directory = self.host.workspace().task_directory(name);
        TaskResult::read(&directory.join(RESULT)).map_err(|e| explain_error(&e))
    }

    fn killed_for_memory(&self, killed_before: u64) -> Option<String> {
        for_want_of_memory(&self.groups, killed_before)
    }

    fn last_output(&self, name: &TaskName, bytes: u64) -> String {
        let directory = self.host.workspace().task_directory(name);
        let words = left::tail(&directory.join("stderr"), bytes).unwrap_or_default();
        String::from_utf8_lossy(&words).trim().to_owned()
    }
}

impl CellMachine for HostVm {
    fn launch_cell(
        self: Arc<Self>,
        launch: CellLaunch,
    ) -> BoxedFuture<Result<Arc<dyn TaskProcess>, String>> {
        Box::pin(async move {
            launch.pass.wait_thawed().await.map_err(|e| explain_error(&e))?;
            // No thread waits for an earlier VM of the instance.
            let found = cell::claim_folder(&self.host, &launch).await?;
            loop {
                launch.pass.wait_thawed().await.map_err(|e| explain_error(&e))?;
                // It may have been frozen again.
                let Some(inside) = launch.pass.enter_birth() else { continue };
                let vm = Arc::clone(&self);
                let begun = launch::in_a_thread(inside, move || {
                    cell::begin_cell(&vm.host, &vm.groups, &launch, &found)
                });
                return begun.await.map(|first| Arc::new(first) as Arc<dyn TaskProcess>);
            }
        })
    }

    fn open_relays(
        self: Arc<Self>,
        order: RelayOrder,
        warn: Box<dyn Fn(String) + Send>,
    ) -> BoxedFuture<Result<CellRelays, String>> {
        Box::pin(async move {
            let runtime = Handle::current();
            let opening = spawn_blocking(move || {
                let _entered = runtime.enter();
                self.host.uplink.begin(&self.host.switch).map_err(|error| explain_error(&error))?;
                let order = order.with_api_found(&self.host.prepared.coordinator);
                let order = order.map_err(|error| format!("the provider's API: {error}"))?;
                let cell = self.groups.cell().filter(|cell| cell.has_network());
                let cell = cell.ok_or_else(|| "the cell shares its host's network".to_owned())?;
                CellRelays::open(cell, &self.host.switch, order, warn)
                    .map_err(|error| explain_error(&error))
            });
            opening.await.map_err(|error| explain_error(&error))?
        })
    }

    fn end_cell(&self, first: &dyn TaskProcess) {
        send_signal(first.pid(), Signal::SIGTERM);
    }

    fn read_console(&self, name: &TaskName, from: u64) -> io::Result<Vec<u8>> {
        cell::read_console(&self.host.workspace().task_directory(name), from)
    }
}

impl LaunchMachine for HostVm {
    fn launch_attempt(
        self: Arc<Self>,
        order: AttemptOrder,
    ) -> BoxedFuture<Result<AttemptBirth, LaunchFailure>> {
        Box::pin(launch_program(self, order))
    }
}

impl DumpMachine for HostVm {
    fn dump_attempt(
        self: Arc<Self>,
        dump: AttemptDump,
        moments: DumpMoments,
    ) -> BoxedFuture<Result<TakenCheckpoint, SnapshotError>> {
        let dumping = run_in_thread(dump_program(self, dump, moments));
        // After a panic in it the task may be damaged.
        let damaged = |why| SnapshotError { damaging: true, ..SnapshotError::new(why) };
        Box::pin(async move { dumping.await.unwrap_or_else(|why| Err(damaged(why))) })
    }

    fn leave_seats(
        self: Arc<Self>,
        dump: AttemptDump,
        moments: DumpMoments,
    ) -> BoxedFuture<JobDeparture> {
        let leaving = run_in_thread(dump_and_leave(self, dump, moments));
        Box::pin(async move { leaving.await.unwrap_or_else(|why| JobDeparture::Lost { why }) })
    }
}

/// Runs work that blocks in a thread; the work continues even if nobody waits for it.
///
/// # Errors
///
/// The work has panicked.
async fn run_in_thread<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, String> {
    let running = spawn_blocking(move || Handle::current().block_on(work));
    running.await.map_err(|panic| explain_error(&panic))
}

impl OwnMachine for HostVm {
    fn slot_threads(&self, vcpu: u32, slot: TierSlot) -> Vec<i32> {
        self.groups.slot_threads(vcpu, slot).unwrap_or_default()
    }

    fn own_end(&self, name: &TaskName, ended: ProcessEnd) -> OwnEnd {
        own::end_of(&self.host.workspace().task_directory(name), ended)
    }

    fn own_failure(&self, name: &TaskName, end: &OwnEnd) -> Option<String> {
        own::describe_failure(&self.host.workspace().task_directory(name), end)
    }

    fn written_bytes(&self, name: &TaskName) -> u64 {
        let directory = self.host.workspace().task_directory(name);
        let length = |name| fs::metadata(directory.join(name)).map_or(0, |file| file.len());
        length("stdout") + length("stderr")
    }

    fn keep_own(self: Arc<Self>, keep: OwnKeep) -> BoxedFuture<KeptOutputs> {
        let OwnKeep { name, order, end, cpu, slot, pass } = keep;
        let place = slot.filter(|_| own::is_to_be_checked(&order, &end));
        let place = place.map(|slot| self.task_place(cpu, slot));
        let host = Arc::clone(&self.host);
        Box::pin(async move {
            let checked = match place {
                Some(place) => Some(own::run_check(&host, &place, &pass, &name, &order).await),
                None => None,
            };
            let mut kept = own::keep_outputs(&host, &pass, &name, &order).await;
            match checked {
                Some(Ok(status)) => kept.verify_status = Some(status),
                Some(Err(why)) => kept.say_first(format!("its check: {why}")),
                None => {}
            }
            kept
        })
    }

    fn kill_slot(&self, vcpu: u32, slot: TierSlot) {
        for pid in self.slot_pids(vcpu, slot) {
            // One that has just ended by itself is as well.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }

    fn notify_program(&self, notice: &ProgramNotice<'_>) {
        let how = notice.how;
        if !how.file.is_empty() {
            let directory = self.host.workspace().task_directory(notice.name);
            make_file(&directory.join(WORK), &how.file, notice.notice);
        }
        if let (Ok(signal), Some(parent)) = (Signal::try_from(how.signal), notice.parent) {
            let pids = notice.seats.iter().map(|seat| self.slot_pids(seat.vcpu, seat.slot));
            let pids: BTreeSet<i32> = pids.flatten().collect();
            // The parent is the worker's own: it would end by it.
            pids.into_iter().filter(|pid| *pid != parent).for_each(|pid| send_signal(pid, signal));
        }
    }
}

/// Reaps a killed process of a VM. The process is dead already, unless the VM's groups couldn't be killed, and may have
/// been reaped elsewhere.
pub(crate) fn reap_killed(process: &dyn TaskProcess) {
    let _ = process.kill();
    let _ = process.wait(limit::KILL);
}

fn make_file(directory: &Path, file: &str, notice: &str) {
    if let Err(error) = leave_notice(directory, file, notice) {
        tracing::warn!(
            file,
            why = explain_error(&error),
            "a program's notice file can't be written"
        );
    }
}

fn send_signal(pid: i32, signal: Signal) {
    match kill(Pid::from_raw(pid), signal) {
        // It has ended since it was listed.
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => {
            tracing::warn!(pid, %error, "a program can't be sent the signal of a notice");
        }
    }
}

/// A checkpoint in this host's store that is sent to the coordinator.
#[derive(Debug)]
struct HostUpload(Arc<LifeHost>, StoredCheckpoint);

impl CheckpointUpload for HostUpload {
    fn send(
        self: Box<Self>,
        pass: LaunchPass,
        reference: CheckpointRef,
        sent: Arc<AtomicU64>,
    ) -> BoxedFuture<Result<u64, String>> {
        Box::pin(async move {
            let Self(host, checkpoint) = *self;
            host.transfers.put_checkpoint(&pass, reference, checkpoint, sent).await
        })
    }
}
