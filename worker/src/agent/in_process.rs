//! The parts of the agent that need no host: its session, its reading of commands, the owners of its VMs. The simulator
//! builds workers from these parts, with machines that are only state in memory.

pub use super::{
    cores::HostCores,
    faults::{DialledLink, Dialling, HostDialler, WorkerNetwork},
    gate::{GatedWork, LaunchPass, RevokedLaunch, VmGate},
    launch::{TaskBirth, plan_launch},
    life::{LifeEnd, LifeMachines, go_on, refuse_start, speedup_of, wait_welcome},
    machine::{
        Born, BoxedFuture, CheckpointUpload, JobDump, JobLeave, LaunchFuture, LaunchPlan,
        LaunchSteps, LaunchWay, LifeContext, MachineBackend, OwnKeep, ProgramNotice, ProgressPage,
        QuotaLift, TakenCheckpoint, TaskDump, TaskLaunch, TaskProcess, VmMachine, launch_program,
    },
    own::KeptOutputs,
    run::RejoinPauses,
    session::{
        DialError, DialTarget, GrpcTransport, SessionEvent, SessionTransport, WorkerCredentials,
        keep_session,
    },
    snapshot::SnapshotError,
    transfer::{
        FetchError, NotSent, StuckTransfer, compare_stored, fetch_until_answered,
        send_until_answered,
    },
    verdict::CpuTime,
    vm::{CommandStamp, JobBirth, JobDeparture, JobOrder, JobRank, RankTime, VmCommand},
    vms::{VmSupervisor, VmsMsg},
};
