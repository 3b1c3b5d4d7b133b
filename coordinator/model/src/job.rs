//! A rigid parallel job, as it is submitted and as its scheduler is told of it.

use std::sync::Arc;

use dormouse_units::{Bytes, Ppm, Span, TaskId, Time, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A job of a trace, including what nobody knows of it before it has run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The job's number in the trace.
    pub number: u64,
    /// When the job is submitted.
    pub submitted: Time,
    /// Number of the job's processes.
    pub processes: u32,
    /// Run time of the job on processors of its own; the scheduler never sees it.
    pub runtime: Span,
    /// Run time that the job's user expects.
    pub estimate: Span,
    /// True CPU usage of the job's processes.
    pub usage: Usage,
    /// Memory that each of the job's processes needs; zero where nobody says.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    pub memory: Bytes,
    /// The jobs that it follows: it is submitted once they have ended, whenever that is, and until
    /// then `submitted` is the time that its log has. `None`: it follows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Arc<After>>,
    /// Whether it wanted more than its estimate, at which it is ended: its run time is what it had.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_cut: bool,
    /// Whether its program says at its end that it failed: it has run as long as it would have otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fails: bool,
}

/// The end of other jobs, after which a job is submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// Numbers of the jobs in the trace; the last of them to end counts.
    pub jobs: Vec<u64>,
    /// Time from that end to the submission.
    pub think: Span,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Room that a machine has for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Number of the machine's processors.
    pub processors: u32,
    /// Memory that a process may have on a processor; `None`: nobody says.
    pub memory: Option<Bytes>,
}

/// Why a job can't be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The job wants more processors than the machine has.
    #[error("it wants {processes} processors; the machine has {machine}")]
    TooLarge {
        /// Number of processors that the job wants.
        processes: u32,
        /// Number of processors that the machine has.
        machine: u32,
    },
    /// The job has no process.
    #[error("it wants no processor")]
    NoProcess,
    /// A process of the job wants more memory than one can have.
    #[error("it wants {memory} for each process; a process can have {most}")]
    TooMuchMemory {
        /// Memory that each of the job's processes wants.
        memory: Bytes,
        /// Memory that a process can have.
        most: Bytes,
    },
    /// The job's processes want memory, and nobody says how much a process can have.
    #[error("it wants {memory} for each process, and how much its machine has was not said")]
    UnknownMemory {
        /// Memory that each of the job's processes wants.
        memory: Bytes,
    },
}

impl Submission {
    /// Checks that a machine with this space can ever run the job. If so, any processor has room
    /// for any process, whoever else is there: memory is never in the way of a start.
    ///
    /// # Errors
    ///
    /// The reason why the machine can't run it.
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

    /// Memory that all processes of the job need together.
    #[must_use]
    pub const fn memory_of_all(&self) -> Bytes {
        Bytes::new(self.memory.get().saturating_mul(self.processes as u64))
    }

    /// The job as its scheduler is told of it.
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

/// What the scheduler knows of the CPU usage of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageInformation {
    /// The true CPU usage.
    Exact,
    /// Nothing of jobs of several processes (section 3.5.1): each of their processes is taken to
    /// use this much. The usage of a one-process job is known.
    Absent(Ppm),
}

/// A job as a scheduler is told of it at its submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// The job: its place in the order of submission.
    pub id: TaskId,
    /// The job's number in the trace, for people; no decision depends on it.
    pub number: u64,
    /// Number of processes, each of which wants a processor.
    pub processes: u32,
    /// Run time that the job's user expects.
    pub estimate: Span,
    /// CPU usage of the job's processes, as far as the scheduler may know it.
    pub usage: Usage,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(processes: u32, memory: u64) -> Submission {
        let (number, submitted, runtime) = (1, Time::ZERO, Span::from_secs(60));
        let (estimate, usage, memory) = (runtime, Usage::FULL, Bytes::new(memory));
        Submission {
            number,
            submitted,
            processes,
            runtime,
            estimate,
            usage,
            memory,
            after: None,
            is_cut: false,
            fails: false,
        }
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
