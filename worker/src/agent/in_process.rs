//! The parts of the agent that have no need of a host: its session, its reading of commands, the owners of its VMs.
//! The simulator builds workers of them whose machines are state in memory.

pub use super::{
    cores::Cores,
    faults::{Dialler, Dialling, Link, Network},
    gate::{Gate, Inside, Pass, Revoked},
    launch::Birth,
    life::{End, Machines, go_on, refused, speedup_of, welcomed},
    machine::{
        BoxedFuture, CheckpointUpload, JobDump, JobLeave, LifeContext, MachineBackend, OwnKeep,
        ProgramNotice, ProgressPage, QuotaLift, TakenCheckpoint, TaskDump, TaskLaunch, TaskProcess,
        VmMachine,
    },
    own::Kept,
    repeat::{Pauses, is_unanswered},
    run::Absences,
    session::{Credentials, Dial, DialError, Heard, Remote, Transport, keep},
    snapshot::SnapshotError,
    verdict::CpuTime,
    vm::{Ask, CommandStamp, JobBirth, JobOrder, JobRank, Leaving, RankTime},
    vms::{Vms, VmsMsg},
};
