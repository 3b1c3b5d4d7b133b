//! The machine of one VM.

use std::{collections::BTreeSet, fmt::Debug, future::ready, io, net::Ipv4Addr, sync::Arc};

use dormouse_metadata::MetadataService;
use dormouse_proto::v1::OwnEnd;
use dormouse_tasks::result::TaskResult;
use dormouse_vm::life::LaunchFailure;
use nix::sched::CpuSet;

use super::{
    backend::BoxedFuture,
    checkpoints::{AttemptDump, TakenCheckpoint},
    launches::{AttemptBirth, AttemptOrder, OwnKeep, ProgramNotice},
    moments::DumpMoments,
    process::TaskProcess,
};
use crate::{
    agent::{
        cell::{CellLaunch, CellRelays, RelayOrder},
        own::KeptOutputs,
        snapshot::SnapshotError,
        vm::{JobDeparture, JobRank, RankTime},
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
pub trait VmMachine:
    LaunchMachine + DumpMachine + OwnMachine + CellMachine + Debug + Send + Sync + 'static
{
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
    fn quota(&self, ppm: u32) -> CpuQuota {
        CpuQuota::from_ppm(ppm, CpuQuota::DEFAULT_PERIOD_US)
    }

    /// Binds a vCPU to cores of the host. A machine that does not say otherwise has no cores to choose from.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses.
    fn bind(&self, _vcpu: u32, _cores: &CpuSet) -> cgroup::Result<()> {
        Ok(())
    }

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
    fn slot_pids(&self, _vcpu: u32, _slot: TierSlot) -> BTreeSet<i32> {
        BTreeSet::new()
    }

    /// Returns the number of the VM's processes that the kernel has killed for lack of memory; 0 if the kernel doesn't report it.
    fn kills_for_memory(&self) -> u64 {
        0
    }

    /// Freezes all processes of the VM.
    ///
    /// # Errors
    ///
    /// In words, why a process still runs.
    fn freeze(self: Arc<Self>) -> BoxedFuture<Result<(), String>>;

    /// Thaws all processes of the VM.
    ///
    /// # Errors
    ///
    /// In words, why a process is still frozen.
    fn thaw(self: Arc<Self>) -> BoxedFuture<Result<(), String>>;

    /// Makes the background in a slot the foreground of its vCPU, once the other slot is empty or a background.
    ///
    /// # Errors
    ///
    /// In words, why the slot isn't the foreground.
    fn promote(self: Arc<Self>, vcpu: u32, slot: TierSlot) -> BoxedFuture<Result<(), String>>;

    /// Kills all processes of the VM.
    ///
    /// # Errors
    ///
    /// In words, why something is left.
    fn kill_all(self: Arc<Self>) -> BoxedFuture<Result<(), String>>;

    /// Reaps the killed `processes`, and removes the machine of the VM.
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
        _service: MetadataService,
        _address: Ipv4Addr,
        _hop_limit: Option<u32>,
    ) -> BoxedFuture<Result<Endpoint, String>> {
        Box::pin(ready(Err("this machine has no network for programs".to_owned())))
    }

    /// Returns the kernel's times of one process of a job; `None` once it is gone, or if the kernel doesn't report it.
    fn rank_time(&self, _rank: JobRank) -> Option<RankTime> {
        None
    }

    /// Lets stopped processes of a job run on.
    ///
    /// # Errors
    ///
    /// In words, which process is still stopped.
    fn resume_ranks(&self, ranks: &[JobRank]) -> Result<(), String>;

    /// Returns the result that a program left.
    ///
    /// # Errors
    ///
    /// In words, why there is none.
    fn answer(&self, name: &TaskName) -> Result<TaskResult, String>;

    /// Describes a new kill of a process of the VM by the kernel for lack of memory, beyond `killed_before` such kills; `None`:
    /// there is none, or the kernel doesn't report it.
    fn killed_for_memory(&self, _killed_before: u64) -> Option<String> {
        None
    }

    /// Returns the end of what a program has written to its standard error, at most this number of bytes; empty if it wrote
    /// nothing.
    fn last_output(&self, _name: &TaskName, _bytes: u64) -> String {
        String::new()
    }
}

/// Machine of one VM as far as launches of programs need it.
pub trait LaunchMachine {
    /// Starts or restores an attempt ([`super::launch_program`]).
    ///
    /// # Errors
    ///
    /// Why it didn't start. No process is left then.
    fn launch_attempt(
        self: Arc<Self>,
        order: AttemptOrder,
    ) -> BoxedFuture<Result<AttemptBirth, LaunchFailure>>;
}

/// Machine of one VM as far as dumps of programs need it.
pub trait DumpMachine {
    /// Takes a checkpoint of an attempt ([`super::dump_program`]).
    ///
    /// # Errors
    ///
    /// Why there is no checkpoint.
    fn dump_attempt(
        self: Arc<Self>,
        dump: AttemptDump,
        moments: DumpMoments,
    ) -> BoxedFuture<Result<TakenCheckpoint, SnapshotError>>;

    /// Dumps a parallel job, so that the job leaves its seats ([`super::dump_and_leave`]).
    fn leave_seats(
        self: Arc<Self>,
        dump: AttemptDump,
        moments: DumpMoments,
    ) -> BoxedFuture<JobDeparture>;
}

/// Machine of one VM as far as users' own programs need it. A machine that refuses such programs
/// ([`super::MachineBackend::check_order`]) needs none of this.
pub trait OwnMachine {
    /// Returns the threads in a slot; empty if the kernel doesn't report it.
    fn slot_threads(&self, _vcpu: u32, _slot: TierSlot) -> Vec<i32> {
        Vec::new()
    }

    /// Returns how a user's own program ended.
    fn own_end(&self, _name: &TaskName, _ended: ProcessEnd) -> OwnEnd {
        OwnEnd::default()
    }

    /// Describes why a user's own program failed, with its last output; `None` if it did well.
    fn own_failure(&self, _name: &TaskName, _end: &OwnEnd) -> Option<String> {
        None
    }

    /// Returns the bytes that a program has written to its standard output and error.
    fn written_bytes(&self, _name: &TaskName) -> u64 {
        0
    }

    /// Checks the answer of a user's own program that has ended, and keeps its files.
    fn keep_own(self: Arc<Self>, _keep: OwnKeep) -> BoxedFuture<KeptOutputs> {
        Box::pin(ready(KeptOutputs::default()))
    }

    /// Kills all processes in a slot.
    fn kill_slot(&self, _vcpu: u32, _slot: TierSlot) {}

    /// Notifies a program: creates the file that it wants, and then signals its processes.
    fn notify_program(&self, _notice: &ProgramNotice<'_>) {}
}

/// Machine of one VM as far as the cell of an instance needs it. A machine that does not say otherwise runs no cells.
pub trait CellMachine {
    /// Starts the cell of an instance; returns its first process.
    ///
    /// # Errors
    ///
    /// In words, why it didn't start. No process is left then.
    fn launch_cell(
        self: Arc<Self>,
        _launch: CellLaunch,
    ) -> BoxedFuture<Result<Arc<dyn TaskProcess>, String>> {
        let why = "this machine runs no programs of instances".to_owned();
        Box::pin(ready(Err(why)))
    }

    /// Opens ways between the cell's network and the host; `warn` gets what the cell's owner should know.
    ///
    /// # Errors
    ///
    /// In words, why they can't be opened.
    fn open_relays(
        self: Arc<Self>,
        _order: RelayOrder,
        _warn: Box<dyn Fn(String) + Send>,
    ) -> BoxedFuture<Result<CellRelays, String>> {
        let why = "this machine runs no programs of instances".to_owned();
        Box::pin(std::future::ready(Err(why)))
    }

    /// Tells the first process of a cell to end the cell, with some time for the other processes to end by themselves.
    fn end_cell(&self, _first: &dyn TaskProcess) {}

    /// Returns what a cell has written to its console, from byte `from` on, as far as one report holds it.
    ///
    /// # Errors
    ///
    /// The console can't be read.
    fn read_console(&self, _name: &TaskName, _from: u64) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }
}
