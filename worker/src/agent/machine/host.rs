//! The machines of a real host: control groups, processes and CRIU.

use std::{
    collections::BTreeSet,
    fs,
    net::Ipv4Addr,
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use dormouse_metadata::MetadataService;
use dormouse_proto::v1::{CheckpointRef, CreateVm, OwnEnd, Report, StartTask};
use dormouse_tasks::supervisor::WORK;
use dormouse_vm::life::LaunchFailure;
use nix::{
    errno::Errno,
    sched::CpuSet,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::task::spawn_blocking;

use super::{
    backend::{BoxedFuture, MachineBackend},
    checkpoints::{CheckpointUpload, JobDump, JobLeave, TakenCheckpoint, TaskDump},
    launches::{OwnKeep, ProgramNotice, TaskLaunch},
    launching::turn_at_criu,
    process::TaskProcess,
    vm::{QuotaLift, VmMachine},
};
use crate::{
    agent::{
        gate::{LaunchPass, VmGate},
        host::{LifeHost, limit},
        launch::{self, TaskBirth, TaskPlace},
        own::{self, KeptOutputs},
        report::{Key, explain_error},
        snapshot::{self, SnapshotError, TaskSnapshot},
        threads::run_urgent,
        verdict::{CpuTime, judge_answer},
        vm::{
            JobBirth, JobDeparture, JobOrder, JobRank, RankTime, create_job_groups, dump_and_leave,
            dump_job, launch_job, resume_ranks,
        },
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

    fn create_vm(
        &self,
        create: &CreateVm,
        gate: &Arc<VmGate>,
    ) -> BoxedFuture<Result<Arc<dyn VmMachine>, String>> {
        let (host, gate) = (Arc::clone(&self.0), Arc::clone(gate));
        let (id, vcpus, memory) = (create.vm, create.vcpus, create.memory_bytes);
        let core_ppm = create.core_ppm;
        Box::pin(async move {
            let making = {
                let host = Arc::clone(&host);
                spawn_blocking(move || {
                    let tree = &host.prepared.tree;
                    match core_ppm {
                        None => tree.create_vm(u64::from(id), vcpus, memory),
                        Some(core_ppm) => create_job_groups(tree, id, vcpus, memory, core_ppm),
                    }
                })
            };
            let groups =
                making.await.map_err(|e| explain_error(&e))?.map_err(|e| explain_error(&e))?;
            let machine: Arc<dyn VmMachine> =
                Arc::new(HostVm { host, groups: Arc::new(groups), gate });
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

    fn unfinished_bytes(&self, name: &TaskName) -> u64 {
        self.0.store().unfinished_bytes(name)
    }
}

/// A VM made of control groups.
#[derive(Debug)]
struct HostVm {
    host: Arc<LifeHost>,
    groups: Arc<cgroup::VmGroups>,
    gate: Arc<VmGate>,
}

impl HostVm {
    fn task_place(&self, cpu: u32, slot: TierSlot) -> TaskPlace {
        TaskPlace { groups: Arc::clone(&self.groups), gate: Arc::clone(&self.gate), cpu, slot }
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

    fn taken_checkpoint(&self, key: Key, snapshot: TaskSnapshot) -> TakenCheckpoint {
        let TaskSnapshot { checkpoint, ppm, stopped_at, dump, foreign_ns } = snapshot;
        let number = u32::try_from(checkpoint.manifest().sequence).unwrap_or(u32::MAX);
        let bytes = checkpoint.manifest().total_bytes();
        let host = Arc::clone(&self.host);
        let upload = Box::new(HostUpload { host, key, number, checkpoint });
        TakenCheckpoint { number, ppm, bytes, stopped_at, dump, foreign_ns, upload }
    }
}

/// Runs a dump in a thread; after a panic in it the task may be damaged.
async fn run_dump(
    work: impl FnOnce() -> Result<TakenCheckpoint, SnapshotError> + Send + 'static,
) -> Result<TakenCheckpoint, SnapshotError> {
    spawn_blocking(work).await.unwrap_or_else(|panic| {
        Err(SnapshotError { damaging: true, ..SnapshotError::new(panic.to_string()) })
    })
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

    fn slot_threads(&self, vcpu: u32, slot: TierSlot) -> Vec<i32> {
        self.groups.slot_threads(vcpu, slot).unwrap_or_default()
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

    fn launch_task(
        self: Arc<Self>,
        launch: TaskLaunch,
    ) -> BoxedFuture<Result<TaskBirth, LaunchFailure>> {
        let TaskLaunch { name, order, cpu, slot, pass, .. } = launch;
        let place = self.task_place(cpu, slot);
        Box::pin(launch::launch_task(Arc::clone(&self.host), place, pass, name, order))
    }

    fn launch_job(
        self: Arc<Self>,
        pass: LaunchPass,
        order: JobOrder,
    ) -> BoxedFuture<Result<JobBirth, LaunchFailure>> {
        let (host, groups) = (Arc::clone(&self.host), Arc::clone(&self.groups));
        Box::pin(launch_job(host, groups, pass, order))
    }

    fn dump_task(
        self: Arc<Self>,
        dump: TaskDump,
    ) -> BoxedFuture<Result<TakenCheckpoint, SnapshotError>> {
        Box::pin(run_dump(move || {
            let TaskDump { key, name, cpu, slot, process, page, by_criu, .. } = dump;
            let (place, done) = (self.task_place(cpu, slot), (dump.due, dump.own_done));
            let of = (&*process, page.as_deref());
            let result = match by_criu {
                true => snapshot::take_checkpoint(
                    &self.host, &place, &name, key.1, of, done, dump.after,
                ),
                false => {
                    own::take_checkpoint(&self.host, &place, &name, key.1, of.0, done, dump.after)
                }
            };
            drop(dump.permit);
            result.map(|snapshot| self.taken_checkpoint(key, snapshot))
        }))
    }

    fn dump_job(
        self: Arc<Self>,
        dump: JobDump,
    ) -> BoxedFuture<Result<TakenCheckpoint, SnapshotError>> {
        Box::pin(run_dump(move || {
            let result = dump_job(&self.host, &self.groups, &self.gate, &dump);
            let key = dump.key;
            drop(dump.permit);
            result.map(|snapshot| self.taken_checkpoint(key, snapshot))
        }))
    }

    fn leave_job(self: Arc<Self>, pass: LaunchPass, leave: JobLeave) -> BoxedFuture<JobDeparture> {
        Box::pin(async move {
            let permit = match turn_at_criu(Arc::clone(&self.host.criu), &pass).await {
                Ok(permit) => permit,
                Err(why) => return JobDeparture::Lost { why },
            };
            let dumping = spawn_blocking(move || {
                // Until CRIU is through: its code in a frozen process would not answer.
                let Some(inside) = self.gate.enter_dump() else { return JobDeparture::Overtaken };
                let left = dump_and_leave(&self.host, &self.groups, leave);
                drop((permit, inside));
                left
            });
            dumping.await.unwrap_or_else(|e| JobDeparture::Lost { why: explain_error(&e) })
        })
    }

    fn rank_time(&self, rank: JobRank) -> Option<RankTime> {
        rank.scheduler_time()
    }

    fn resume_ranks(&self, ranks: &[JobRank]) -> Result<(), String> {
        resume_ranks(ranks).map_err(|e| explain_error(&e))
    }

    fn verdict(
        &self,
        name: &TaskName,
        ended: ProcessEnd,
        killed_before: u64,
        work: Option<CpuTime>,
    ) -> Result<(bool, String), String> {
        judge_answer(&self.host, name, ended, (&self.groups, killed_before), work)
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
struct HostUpload {
    host: Arc<LifeHost>,
    key: Key,
    number: u32,
    checkpoint: StoredCheckpoint,
}

impl CheckpointUpload for HostUpload {
    fn send(
        self: Box<Self>,
        pass: LaunchPass,
        sent: Arc<AtomicU64>,
    ) -> BoxedFuture<Result<u64, String>> {
        Box::pin(async move {
            let Self { host, key, number, checkpoint } = *self;
            let (run, task, attempt) = (host.run.clone(), key.0.get(), key.1.get());
            let reference = CheckpointRef { run, task, checkpoint: number, attempt };
            host.transfers.put_checkpoint(&pass, reference, checkpoint, sent).await
        })
    }
}
