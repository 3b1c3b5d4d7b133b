//! The machine of one VM.

use std::{collections::BTreeSet, fmt::Debug, net::Ipv4Addr, sync::Arc};

use dormouse_metadata::MetadataService;
use dormouse_proto::v1::OwnEnd;
use dormouse_vm::life::LaunchFailure;
use nix::sched::CpuSet;

use super::{
    backend::BoxedFuture,
    checkpoints::{JobDump, JobLeave, TakenCheckpoint, TaskDump},
    launches::{OwnKeep, ProgramNotice, TaskLaunch},
    process::TaskProcess,
};
use crate::{
    agent::{
        gate::LaunchPass,
        launch::TaskBirth,
        own::KeptOutputs,
        snapshot::SnapshotError,
        verdict::CpuTime,
        vm::{JobBirth, JobDeparture, JobOrder, JobRank, RankTime},
    },
    cgroup::{self, CpuQuota, TierSlot},
    metadata::Endpoint,
    process::ProcessEnd,
    workspace::TaskName,
};

/// Lifts the quota of one slot until dropped.
pub type QuotaLift = Box<dyn Debug + Send + Sync>;

/// Machine of one VM: vCPUs of two slots each, with the processes in them. Only the VM's actor changes the machine.
///
/// Methods that return at once take some ten microseconds. What may take longer is a future, which can be awaited in
/// another task.
pub trait VmMachine: Debug + Send + Sync + 'static {
    /// Sets a vCPU's share of a host core, in ppm; `None`: the whole core.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses.
    fn set_quota(&self, vcpu: u32, ppm: Option<u32>) -> cgroup::Result<()>;

    /// Sets a vCPU's share of a host core, and the largest share for each of its slots (`None`: the vCPU's whole
    /// share), in ppm.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses.
    fn set_quotas(&self, vcpu: u32, ppm: u32, slots: [Option<u32>; 2]) -> cgroup::Result<()>;

    /// Converts a share of a host core, in ppm, to the kernel's quota.
    fn quota(&self, ppm: u32) -> CpuQuota;

    /// Binds a vCPU to cores of the host.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses.
    fn bind(&self, vcpu: u32, cores: &CpuSet) -> cgroup::Result<()>;

    /// Exempts a slot from its vCPU's quota until the returned value is dropped.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses.
    fn lift_quota(self: Arc<Self>, vcpu: u32, slot: TierSlot) -> cgroup::Result<QuotaLift>;

    /// Gives a slot the priority of a foreground, whatever the priority of the vCPU's other slot is.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses.
    fn boost(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()>;

    /// Gives a slot the priority of a background.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses.
    fn demote(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()>;

    /// Stops all processes in a slot.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses.
    fn hold(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()>;

    /// Lets all processes in a slot run on.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses.
    fn let_go(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()>;

    /// Returns the CPU time of everything that ran in a slot, in nanoseconds.
    ///
    /// # Errors
    ///
    /// The kernel doesn't report it.
    fn slot_cpu_ns(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<u64>;

    /// Returns the processes in a slot; empty if the kernel doesn't report it.
    fn slot_pids(&self, vcpu: u32, slot: TierSlot) -> BTreeSet<i32>;

    /// Returns the threads in a slot; empty if the kernel doesn't report it.
    fn slot_threads(&self, vcpu: u32, slot: TierSlot) -> Vec<i32>;

    /// Returns the number of processes killed for lack of memory; 0 if the kernel doesn't report it.
    fn kills_for_memory(&self) -> u64;

    /// Freezes everything that runs.
    ///
    /// # Errors
    ///
    /// In words, why something still runs.
    fn freeze(self: Arc<Self>) -> BoxedFuture<Result<(), String>>;

    /// Thaws everything that was frozen.
    ///
    /// # Errors
    ///
    /// In words, why something is still frozen.
    fn thaw(self: Arc<Self>) -> BoxedFuture<Result<(), String>>;

    /// Makes the background in a slot the foreground of its vCPU, once the other slot is empty or a background.
    ///
    /// # Errors
    ///
    /// In words, why the slot isn't the foreground.
    fn promote(self: Arc<Self>, vcpu: u32, slot: TierSlot) -> BoxedFuture<Result<(), String>>;

    /// Kills everything that runs.
    ///
    /// # Errors
    ///
    /// In words, why something is left.
    fn kill_all(self: Arc<Self>) -> BoxedFuture<Result<(), String>>;

    /// Reaps these killed processes, and removes the machine.
    ///
    /// # Errors
    ///
    /// In words, why something is left.
    fn remove(
        self: Arc<Self>,
        processes: Vec<Arc<dyn TaskProcess>>,
    ) -> BoxedFuture<Result<(), String>>;

    /// Opens the VM's metadata endpoint at `address`, where only its programs can reach it.
    ///
    /// # Errors
    ///
    /// In words, why it can't be opened.
    fn open_endpoint(
        self: Arc<Self>,
        service: MetadataService,
        address: Ipv4Addr,
        hop_limit: Option<u32>,
    ) -> BoxedFuture<Result<Endpoint, String>>;

    /// Starts or restores a task of one process.
    ///
    /// # Errors
    ///
    /// Why it didn't start. No process is left then.
    fn launch_task(
        self: Arc<Self>,
        launch: TaskLaunch,
    ) -> BoxedFuture<Result<TaskBirth, LaunchFailure>>;

    /// Starts or restores a parallel job.
    ///
    /// # Errors
    ///
    /// Why it didn't start. No process is left then.
    fn launch_job(
        self: Arc<Self>,
        pass: LaunchPass,
        order: JobOrder,
    ) -> BoxedFuture<Result<JobBirth, LaunchFailure>>;

    /// Checkpoints a task of one process.
    ///
    /// # Errors
    ///
    /// Why there is no checkpoint.
    fn dump_task(
        self: Arc<Self>,
        dump: TaskDump,
    ) -> BoxedFuture<Result<TakenCheckpoint, SnapshotError>>;

    /// Checkpoints a parallel job.
    ///
    /// # Errors
    ///
    /// Why there is no checkpoint.
    fn dump_job(
        self: Arc<Self>,
        dump: JobDump,
    ) -> BoxedFuture<Result<TakenCheckpoint, SnapshotError>>;

    /// Dumps a parallel job, when its turn at CRIU comes, so that the job leaves its seats.
    fn leave_job(self: Arc<Self>, pass: LaunchPass, leave: JobLeave) -> BoxedFuture<JobDeparture>;

    /// Returns the kernel's times of one process of a job; `None` once it is gone.
    fn rank_time(&self, rank: JobRank) -> Option<RankTime>;

    /// Lets stopped processes of a job run on.
    ///
    /// # Errors
    ///
    /// In words, which process is still stopped.
    fn resume_ranks(&self, ranks: &[JobRank]) -> Result<(), String>;

    /// Judges the answer of a program that ended: whether it is right, and the answer as JSON. `killed_before`
    /// processes of the VM were killed for lack of memory before the program began; its work takes `work`.
    ///
    /// # Errors
    ///
    /// In words, why there is no answer.
    fn verdict(
        &self,
        name: &TaskName,
        ended: ProcessEnd,
        killed_before: u64,
        work: Option<CpuTime>,
    ) -> Result<(bool, String), String>;

    /// Returns how a user's own program ended.
    fn own_end(&self, name: &TaskName, ended: ProcessEnd) -> OwnEnd;

    /// Describes why a user's own program failed, with its last output; `None` if it did well.
    fn own_failure(&self, name: &TaskName, end: &OwnEnd) -> Option<String>;

    /// Returns the bytes that a program has written to its standard output and error.
    fn written_bytes(&self, name: &TaskName) -> u64;

    /// Checks the answer of a user's own program that has ended, and keeps its files.
    fn keep_own(self: Arc<Self>, keep: OwnKeep) -> BoxedFuture<KeptOutputs>;

    /// Kills all processes in a slot.
    fn kill_slot(&self, vcpu: u32, slot: TierSlot);

    /// Notifies a program: creates the file that it wants, and then signals its processes.
    fn notify_program(&self, notice: &ProgramNotice<'_>);
}
