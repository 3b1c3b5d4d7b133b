//! A rigid parallel job: as it is submitted, and as its scheduler is told of it.

use dormouse_units::{Ppm, Span, TaskId, Time, Usage};
use serde::{Deserialize, Serialize};

/// A job of a trace, with what nobody knows of it before it has run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// Its number in the trace.
    pub number: u64,
    /// When it is submitted.
    pub submitted: Time,
    /// Its processes.
    pub processes: u32,
    /// How long it runs on processors of its own; the scheduler never sees this.
    pub runtime: Span,
    /// How long its user says that it will run.
    pub estimate: Span,
    /// CPU usage of its processes, in truth.
    pub usage: Usage,
}

/// Why a job can't be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It could never run.
    #[error("it wants {processes} processors; the machine has {machine}")]
    TooLarge {
        /// Processors it wants.
        processes: u32,
        /// Processors there are.
        machine: u32,
    },
    /// It would run on nothing.
    #[error("it wants no processor")]
    NoProcess,
}

impl Submission {
    /// Whether a machine of this many processors can ever run it.
    ///
    /// # Errors
    ///
    /// Why it can't.
    pub const fn fits(&self, machine: u32) -> Result<(), Refusal> {
        match self.processes {
            0 => Err(Refusal::NoProcess),
            processes if processes > machine => Err(Refusal::TooLarge { processes, machine }),
            _ => Ok(()),
        }
    }

    /// What its scheduler is told of it.
    #[must_use]
    pub fn told(&self, id: TaskId, information: UsageInformation) -> Job {
        let usage = match information {
            UsageInformation::Absent(taken_for) if self.processes > 1 => Usage::Uniform(taken_for),
            UsageInformation::Absent(_) | UsageInformation::Exact => self.usage.clone(),
        };
        let Self { number, processes, estimate, .. } = *self;
        Job { id, number, processes, estimate, usage }
    }
}

/// What the scheduler knows of CPU usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageInformation {
    /// The truth.
    Exact,
    /// Nothing of jobs of several processes (section 3.5.1): each of their processes is
    /// taken for this much. A one-process job is known to use its processor.
    Absent(Ppm),
}

/// What a scheduler is told of a job when it is submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The job: its place in the order of submission.
    pub id: TaskId,
    /// Its number in the trace, for people: nothing is decided by it.
    pub number: u64,
    /// Processes, each of which wants a processor.
    pub processes: u32,
    /// How long the user expects it to run.
    pub estimate: Span,
    /// CPU usage of its processes, as far as the scheduler may know it.
    pub usage: Usage,
}
