//! The parts of the agent that have no need of a host: its session, its reading of commands, its clocks
//! and its retries. The simulator builds workers of them whose machines are state in memory.

pub use super::{
    bounds::{Occupancy, shorten},
    faults::{Dialler, Dialling, Link, Network},
    life::{End, Machines, go_on, refused, speedup_of, welcomed},
    repeat::{Pauses, is_unanswered},
    run::Absences,
    session::{Credentials, Dial, DialError, Heard, Remote, Transport, keep},
    vm::{Ask, CommandStamp, Due, Pace, VmClock},
    vms::without_vm,
};
