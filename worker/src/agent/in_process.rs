//! The parts of the agent that have no need of a host: its session, its reading of commands, the owners of its VMs.
//! The simulator builds workers of them whose machines are state in memory.

pub use super::{
    cores::Cores,
    faults::{Dialler, Dialling, Link, Network},
    gate::{Gate, Inside, Pass, Revoked},
    launch::{Birth, plan_launch},
    life::{End, Machines, go_on, refused, speedup_of, welcomed},
    machine::{
        Born, BoxedFuture, CheckpointUpload, JobDump, JobLeave, LaunchFuture, LaunchPlan,
        LaunchSteps, LaunchWay, LifeContext, MachineBackend, OwnKeep, ProgramNotice, ProgressPage,
        QuotaLift, TakenCheckpoint, TaskDump, TaskLaunch, TaskProcess, VmMachine, launch_program,
    },
    own::Kept,
    run::Absences,
    session::{Credentials, Dial, DialError, Heard, Remote, Transport, keep},
    snapshot::SnapshotError,
    transfer::{
        FetchError, NotSent, Stuck, compare_stored, fetch_until_answered, send_until_answered,
    },
    verdict::CpuTime,
    vm::{Ask, CommandStamp, JobBirth, JobOrder, JobRank, Leaving, RankTime},
    vms::{Vms, VmsMsg},
};
