//! The death of a coordinator, bound to the point of its doings at which it dies.

use crate::faults::{CrashPoint, Fault, Millis};

/// A death that a plan has for its coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// The name of the fault's kind.
    pub name: &'static str,
    /// The point in its doings at which the coordinator dies.
    pub point: CrashPoint,
    /// The time until its host starts another one.
    pub down: Millis,
    /// The loss of its host's power; `None`: only the process dies.
    pub power: Option<PowerLoss>,
}

/// The effects of a power cut on what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLoss {
    /// The part of the unsynced writes that is kept, in parts per million.
    pub kept: u32,
    /// Garbage that stands after the log's end then, in bytes.
    pub garbage: u32,
    /// Checkpoints that were stored lately are torn or gone.
    pub tears_checkpoints: bool,
    /// The seal is damaged, gone or a former one, although it was synced.
    pub tears_seal: bool,
    /// A part of the log that was synced and sealed is damaged or gone.
    pub tears_log: bool,
}

impl Death {
    /// The death that a fault is; `None`: it is none.
    #[must_use]
    pub const fn from_fault(fault: &Fault) -> Option<Self> {
        let name = fault.name();
        match *fault {
            Fault::CoordinatorKill { point, down } => Some(Self { name, point, down, power: None }),
            Fault::PowerCut {
                point,
                down,
                kept,
                garbage,
                tears_checkpoints,
                tears_seal,
                tears_log,
            } => {
                let power =
                    Some(PowerLoss { kept, garbage, tears_checkpoints, tears_seal, tears_log });
                Some(Self { name, point, down, power })
            }
            _ => None,
        }
    }
}
