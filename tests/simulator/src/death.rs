//! A planned death of a coordinator, at a given point of its work.

use crate::faults::{CrashPoint, Fault, Millis};

/// A planned death of a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// The name of the fault's kind.
    pub name: &'static str,
    /// The point of its work at which the coordinator dies.
    pub point: CrashPoint,
    /// The time until the coordinator's host starts the next one.
    pub down: Millis,
    /// The power loss of the coordinator's host; `None`: only the process dies.
    pub power: Option<PowerLoss>,
}

/// The effects of a power cut on what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLoss {
    /// The part of the unsynced writes that survives, in parts per million.
    pub kept: u32,
    /// Garbage that is appended to the log, in bytes.
    pub garbage: u32,
    /// Whether checkpoints that were stored lately are torn or gone.
    pub tears_checkpoints: bool,
    /// Whether the seal is damaged, gone or an older one, although it was synced.
    pub tears_seal: bool,
    /// Whether a part of the log that was synced and sealed is damaged or gone.
    pub tears_log: bool,
}

impl Death {
    /// The coordinator's death that a fault causes; `None` if the fault is of another kind.
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
