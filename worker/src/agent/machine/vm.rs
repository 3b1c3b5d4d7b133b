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

/// While it lives, one slot of a vCPU has no quota.
pub type QuotaLift = Box<dyn Debug + Send + Sync>;

/// The machine of one VM: vCPUs of two slots each, and the processes in them. Its owner alone changes it.
///
/// What returns at once takes some ten microseconds. What may take longer is a future, and may be waited for in a task
/// of its own.
pub trait VmMachine: Debug + Send + Sync + 'static {
    /// Gives a vCPU a share of a host core, in ppm; `None`: all of it.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    fn set_quota(&self, vcpu: u32, ppm: Option<u32>) -> cgroup::Result<()>;

    /// Gives a vCPU a share of a host core, in ppm, and its slots at most so much of it (`None`: all).
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    fn set_quotas(&self, vcpu: u32, ppm: u32, slots: [Option<u32>; 2]) -> cgroup::Result<()>;

    /// A share of a host core, in ppm, as the kernel is told it.
    fn quota(&self, ppm: u32) -> CpuQuota;

    /// Binds a vCPU to cores of the host.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    fn bind(&self, vcpu: u32, cores: &CpuSet) -> cgroup::Result<()>;

    /// Exempts a slot from the quota of its vCPU until what is returned is dropped.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    fn lift_quota(self: Arc<Self>, vcpu: u32, slot: TierSlot) -> cgroup::Result<QuotaLift>;

    /// Gives a slot the priority of a foreground, beside the one that has it.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    fn boost(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()>;

    /// Gives a slot the priority of a background.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    fn demote(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()>;

    /// Has all that is in a slot stand still.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    fn hold(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()>;

    /// Lets all that is in a slot go on.
    ///
    /// # Errors
    /// No such vCPU, or the kernel refuses.
    fn let_go(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()>;

    /// CPU time of all that has run in a slot, in nanoseconds.
    ///
    /// # Errors
    /// The kernel does not say.
    fn slot_cpu_ns(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<u64>;

    /// The processes in a slot; none where the kernel does not say.
    fn slot_pids(&self, vcpu: u32, slot: TierSlot) -> BTreeSet<i32>;

    /// The threads in a slot; none where the kernel does not say.
    fn slot_threads(&self, vcpu: u32, slot: TierSlot) -> Vec<i32>;

    /// How many processes have been killed for want of memory; 0 where the kernel does not say.
    fn kills_for_memory(&self) -> u64;

    /// Freezes all that runs.
    ///
    /// # Errors
    /// In words, why something still runs.
    fn freeze(self: Arc<Self>) -> BoxedFuture<Result<(), String>>;

    /// Thaws all that was frozen.
    ///
    /// # Errors
    /// In words, why it still stands.
    fn thaw(self: Arc<Self>) -> BoxedFuture<Result<(), String>>;

    /// Makes the background in a slot the foreground of its vCPU, once the other slot is empty or a background.
    ///
    /// # Errors
    /// In words, why it is not.
    fn promote(self: Arc<Self>, vcpu: u32, slot: TierSlot) -> BoxedFuture<Result<(), String>>;

    /// Kills all that runs.
    ///
    /// # Errors
    /// In words, why something is left.
    fn kill_all(self: Arc<Self>) -> BoxedFuture<Result<(), String>>;

    /// Reaps these processes, which were killed, and removes the machine.
    ///
    /// # Errors
    /// In words, why something is left.
    fn remove(
        self: Arc<Self>,
        processes: Vec<Arc<dyn TaskProcess>>,
    ) -> BoxedFuture<Result<(), String>>;

    /// Opens the endpoint of the VM's metadata at `address`, where its programs alone reach it.
    ///
    /// # Errors
    /// In words, why there is none.
    fn open_endpoint(
        self: Arc<Self>,
        service: MetadataService,
        address: Ipv4Addr,
        hop_limit: Option<u32>,
    ) -> BoxedFuture<Result<Endpoint, String>>;

    /// Brings a task of one process to life.
    ///
    /// # Errors
    /// Why it did not come to life. Nothing of it runs then.
    fn launch_task(
        self: Arc<Self>,
        launch: TaskLaunch,
    ) -> BoxedFuture<Result<TaskBirth, LaunchFailure>>;

    /// Brings a parallel job to life.
    ///
    /// # Errors
    /// Why it did not come to life. Nothing of it runs then.
    fn launch_job(
        self: Arc<Self>,
        pass: LaunchPass,
        order: JobOrder,
    ) -> BoxedFuture<Result<JobBirth, LaunchFailure>>;

    /// Takes a checkpoint of a task of one process.
    ///
    /// # Errors
    /// Why there is none.
    fn dump_task(
        self: Arc<Self>,
        dump: TaskDump,
    ) -> BoxedFuture<Result<TakenCheckpoint, SnapshotError>>;

    /// Takes a checkpoint of a parallel job.
    ///
    /// # Errors
    /// Why there is none.
    fn dump_job(
        self: Arc<Self>,
        dump: JobDump,
    ) -> BoxedFuture<Result<TakenCheckpoint, SnapshotError>>;

    /// Dumps a parallel job, which leaves its places, when it is its turn at CRIU.
    fn leave_job(self: Arc<Self>, pass: LaunchPass, leave: JobLeave) -> BoxedFuture<JobDeparture>;

    /// Times that the kernel counts of one process of a job; `None` once it is gone.
    fn rank_time(&self, rank: JobRank) -> Option<RankTime>;

    /// Lets processes of a job go on that were stopped.
    ///
    /// # Errors
    /// In words, why one still stands.
    fn resume_ranks(&self, ranks: &[JobRank]) -> Result<(), String>;

    /// Judges the answer of a program that ended: whether it is right, and the answer as JSON. `killed_before` processes
    /// of the VM had been killed for want of memory before the program began, whose work takes so long.
    ///
    /// # Errors
    /// In words, why there is no answer.
    fn verdict(
        &self,
        name: &TaskName,
        ended: ProcessEnd,
        killed_before: u64,
        work: Option<CpuTime>,
    ) -> Result<(bool, String), String>;

    /// How a program of the user's own ended.
    fn own_end(&self, name: &TaskName, ended: ProcessEnd) -> OwnEnd;

    /// Why a program of the user's own did not do well, with its last words; `None` if it did.
    fn own_failure(&self, name: &TaskName, end: &OwnEnd) -> Option<String>;

    /// Bytes that a program has written to its standard output and error.
    fn written_bytes(&self, name: &TaskName) -> u64;

    /// Checks the answer of a program of the user's own that has ended, and keeps what it left.
    fn keep_own(self: Arc<Self>, keep: OwnKeep) -> BoxedFuture<KeptOutputs>;

    /// Kills all processes in a slot.
    fn kill_slot(&self, vcpu: u32, slot: TierSlot);

    /// Tells a program of a notice: the file that it wants is made, and then its processes have their signal.
    fn notify_program(&self, notice: &ProgramNotice<'_>);
}
