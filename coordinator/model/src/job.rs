//! A rigid parallel job: as it is submitted, and as its scheduler is told of it.

use dormouse_units::{Bytes, Ppm, Span, TaskId, Time, Usage};
use serde::{Deserialize, Serialize};

/// A job of a trace, with what nobody knows of it before it has run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The job's number in the trace.
    pub number: u64,
    /// When it is submitted.
    pub submitted: Time,
    /// Number of the job's processes.
    pub processes: u32,
    /// How long it runs on processors of its own; the scheduler never sees this.
    pub runtime: Span,
    /// How long its user says that it will run.
    pub estimate: Span,
    /// CPU usage of its processes, in truth.
    pub usage: Usage,
    /// Memory that each of its processes needs; none where nobody says.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    pub memory: Bytes,
}

/// What a machine has for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Number of the machine's processors.
    pub processors: u32,
    /// Memory that a process may have on one; `None`: nobody says.
    pub memory: Option<Bytes>,
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
    /// A process of it has nowhere room.
    #[error("it wants {memory} for each process; a process can have {most}")]
    TooMuchMemory {
        /// Memory that each of its processes wants.
        memory: Bytes,
        /// Memory that a process can have.
        most: Bytes,
    },
    /// It can't be said whether a process of it has room.
    #[error("it wants {memory} for each process, and how much its machine has was not said")]
    UnknownMemory {
        /// Memory that each of its processes wants.
        memory: Bytes,
    },
}

impl Submission {
    /// Whether a machine with this space can ever run it. Any of its processors holds any of its
    /// processes then, whoever else is there: memory is never in the way of a start.
    ///
    /// # Errors
    ///
    /// Why it can't.
    pub fn fits(&self, machine: Space) -> Result<(), Refusal> {
        let Self { processes, memory, .. } = *self;
        match (processes, machine) {
            (0, _) => Err(Refusal::NoProcess),
            (_, Space { processors: machine, .. }) if processes > machine => {
                Err(Refusal::TooLarge { processes, machine })
            }
            (_, Space { memory: Some(most), .. }) if memory > most => {
                Err(Refusal::TooMuchMemory { memory, most })
            }
            (_, Space { memory: None, .. }) if memory > Bytes::ZERO => {
                Err(Refusal::UnknownMemory { memory })
            }
            _ => Ok(()),
        }
    }

    /// Memory that all its processes need together.
    #[must_use]
    pub const fn memory_of_all(&self) -> Bytes {
        Bytes::new(self.memory.get().saturating_mul(self.processes as u64))
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
    /// The true CPU usage.
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
    /// The job's number in the trace, for people: nothing is decided by it.
    pub number: u64,
    /// Processes, each of which wants a processor.
    pub processes: u32,
    /// How long the user expects it to run.
    pub estimate: Span,
    /// CPU usage of its processes, as far as the scheduler may know it.
    pub usage: Usage,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(processes: u32, memory: u64) -> Submission {
        let (number, submitted, runtime) = (1, Time::ZERO, Span::from_secs(60));
        let (estimate, usage, memory) = (runtime, Usage::FULL, Bytes::new(memory));
        Submission { number, submitted, processes, runtime, estimate, usage, memory }
    }

    #[test]
    fn a_job_fits_where_there_are_its_processors_and_room_for_each_process() {
        let most = Bytes::new(100);
        let machine = Space { processors: 4, memory: Some(most) };
        assert_eq!(job(4, 100).fits(machine), Ok(()));
        assert_eq!(job(4, 100).memory_of_all(), Bytes::new(400));
        let memory = Bytes::new(101);
        assert_eq!(job(1, 101).fits(machine), Err(Refusal::TooMuchMemory { memory, most }));
        let unsaid = Space { memory: None, ..machine };
        assert_eq!(job(4, 0).fits(unsaid), Ok(()));
        assert_eq!(job(1, 101).fits(unsaid), Err(Refusal::UnknownMemory { memory }));
        let too_large = Refusal::TooLarge { processes: 5, machine: 4 };
        assert_eq!(job(5, 101).fits(machine), Err(too_large));
        assert_eq!(job(0, 0).fits(machine), Err(Refusal::NoProcess));
    }
}
