//! Rigid parallel jobs as they are submitted, and as their scheduler sees them.

use std::sync::Arc;

use dormouse_units::{Bytes, Ppm, Span, TaskId, Time, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A parallel job as submitted, including what is unknown before it has run.
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
    /// Run time that the user estimates.
    pub estimate: Span,
    /// True CPU usage of the job's processes.
    pub usage: Usage,
    /// Memory that each process needs; zero if unknown.
    #[serde(default, skip_serializing_if = "Bytes::is_zero")]
    pub memory: Bytes,
    /// Priority of the job: a scheduler that heeds priorities takes the greatest first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i64,
    /// The jobs that this one follows: it is submitted some time after they have ended, and until
    /// then `submitted` is the time in its log. `None`: it follows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Arc<JobPredecessors>>,
    /// True if the job would have run longer than its estimate and is killed then; `runtime` is the time
    /// until it is killed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_cut: bool,
    /// True if the program reports a failure at its end; its run time is what it would be without the failure.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fails: bool,
}

/// Other jobs after whose end a job is submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPredecessors {
    /// Numbers of the jobs in the trace; the last end counts.
    pub jobs: Vec<u64>,
    /// Time from the end of the last predecessor to the submission.
    pub think: Span,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(priority: &i64) -> bool {
    *priority == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Capacity of a machine for one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobCapacity {
    /// Number of the machine's processors.
    pub processors: u32,
    /// Memory per processor that a process may use; `None`: unknown.
    pub memory: Option<Bytes>,
}

/// Reasons why a job is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobRefusal {
    /// The job needs more processors than the machine has.
    #[error("it wants {processes} processors; the machine has {machine}")]
    TooLarge {
        /// Number of processors that the job wants.
        processes: u32,
        /// Number of processors that the machine has.
        machine: u32,
    },
    /// The job has no processes.
    #[error("it wants no processor")]
    NoProcess,
    /// A process of the job needs more memory than the machine has for one process.
    #[error("it wants {memory} for each process; a process can have {most}")]
    TooMuchMemory {
        /// Memory that each of the job's processes wants.
        memory: Bytes,
        /// Memory that a process can have.
        most: Bytes,
    },
    /// The job's processes need memory, and the machine's memory is unknown.
    #[error("it wants {memory} for each process, but the machine's memory is not given")]
    UnknownMemory {
        /// Memory that each of the job's processes wants.
        memory: Bytes,
    },
}

impl Submission {
    /// Checks that a machine with this capacity can ever run the job. If so, any processor has
    /// memory for any process, whatever else runs: memory never delays a start.
    ///
    /// # Errors
    ///
    /// The reason why the machine can't run it.
    pub fn check_fits(&self, machine: JobCapacity) -> Result<(), JobRefusal> {
        let Self { processes, memory, .. } = *self;
        match (processes, machine) {
            (0, _) => Err(JobRefusal::NoProcess),
            (_, JobCapacity { processors: machine, .. }) if processes > machine => {
                Err(JobRefusal::TooLarge { processes, machine })
            }
            (_, JobCapacity { memory: Some(most), .. }) if memory > most => {
                Err(JobRefusal::TooMuchMemory { memory, most })
            }
            (_, JobCapacity { memory: None, .. }) if memory > Bytes::ZERO => {
                Err(JobRefusal::UnknownMemory { memory })
            }
            _ => Ok(()),
        }
    }

    /// Memory that all processes of the job need together.
    #[must_use]
    pub const fn memory_of_all(&self) -> Bytes {
        Bytes::new(self.memory.get().saturating_mul(self.processes as u64))
    }

    /// The job as its scheduler sees it.
    #[must_use]
    pub fn announce_as(&self, id: TaskId, information: UsageInformation) -> Job {
        let usage = match information {
            UsageInformation::Absent(taken_for) if self.processes > 1 => Usage::Uniform(taken_for),
            UsageInformation::Absent(_) | UsageInformation::Exact => self.usage.clone(),
        };
        let Self { number, processes, estimate, priority, .. } = *self;
        Job { id, number, processes, estimate, usage, priority }
    }
}

/// The scheduler's knowledge of the CPU usage of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageInformation {
    /// The scheduler knows the true CPU usage of each process.
    Exact,
    /// The scheduler knows nothing about jobs of several processes (section 3.5.1): each process is assumed to have this usage. The
    /// usage of a one-process job is known.
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
    /// Priority of the job; 0 if nobody gives it one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i64,
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
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        }
    }

    #[test]
    fn a_job_fits_where_there_are_its_processors_and_room_for_each_process() {
        let most = Bytes::new(100);
        let machine = JobCapacity { processors: 4, memory: Some(most) };
        assert_eq!(job(4, 100).check_fits(machine), Ok(()));
        assert_eq!(job(4, 100).memory_of_all(), Bytes::new(400));
        let memory = Bytes::new(101);
        assert_eq!(
            job(1, 101).check_fits(machine),
            Err(JobRefusal::TooMuchMemory { memory, most })
        );
        let unsaid = JobCapacity { memory: None, ..machine };
        assert_eq!(job(4, 0).check_fits(unsaid), Ok(()));
        assert_eq!(job(1, 101).check_fits(unsaid), Err(JobRefusal::UnknownMemory { memory }));
        let too_large = JobRefusal::TooLarge { processes: 5, machine: 4 };
        assert_eq!(job(5, 101).check_fits(machine), Err(too_large));
        assert_eq!(job(0, 0).check_fits(machine), Err(JobRefusal::NoProcess));
    }
}
