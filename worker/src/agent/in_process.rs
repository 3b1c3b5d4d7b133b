//! The parts of the agent that need no host: its session, its reading of commands, the owners of its VMs. The simulator
//! builds workers from these parts, with machines that are only state in memory.

pub use super::{
    cell::{CellLaunch, CellRelays, RelayOrder},
    cores::HostCores,
    faults::{
        DialledLink, Dialling, FaultyHost, HostDialler, WorkerNetwork, carry_out as carry_out_fault,
    },
    gate::{GatedWork, LaunchPass, RevokedLaunch, VmGate},
    life::{LifeEnd, LifeMachines, SupervisedVms, go_on, refuse_start, speedup_of, wait_welcome},
    machine::{
        AttemptBirth, AttemptDump, AttemptOrder, Born, BoxedFuture, CellMachine, CheckpointUpload,
        CountedWork, DumpFailure, DumpMachine, DumpMoments, DumpSteps, DumpWay, LaunchMachine,
        LaunchPlan, LaunchSteps, LaunchWay, LifeContext, MachineBackend, OvertakenDump, OwnMachine,
        ProgressPage, QuotaLift, TakenCheckpoint, TaskProcess, VmMachine, dump_and_leave,
        dump_program, launch_program,
    },
    own::KeptOutputs,
    places::AttemptPlaces,
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
    vm::{CommandStamp, JobDeparture, JobRank, RankTime, VmCommand},
};
