//! What a machine for parallel jobs reports.

use dormouse_batch::{JobId, Tier};
use dormouse_proto::v1;
use dormouse_units::{Attempt, Ppm};
use serde::{Deserialize, Serialize};

/// A report. Times are real microseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
pub enum MachineReport {
    /// The machine is there.
    Created,
    /// The machine is gone, and all its jobs with it.
    Destroyed,
    /// The machine can't go on.
    Broken {
        /// Why.
        why: String,
    },
    /// A job's processes are in their slots and may work.
    Started {
        /// Which job.
        job: JobId,
        /// Which of its starts.
        attempt: Attempt,
        /// From the command to here.
        took_us: u64,
    },
    /// A job's slots are in the foreground now, where they were.
    Promoted {
        /// Which job.
        job: JobId,
        /// Which of its starts.
        attempt: Attempt,
        /// From the command to here.
        took_us: u64,
    },
    /// A job goes on elsewhere.
    Moved {
        /// Which job.
        job: JobId,
        /// Which of its starts.
        attempt: Attempt,
        /// What of its work came along.
        done: Ppm,
        /// Why nothing did; empty if it did.
        lost: String,
        /// From the command to here.
        took_us: u64,
        /// What the dump took of that.
        dump_us: u64,
        /// What the restore took of that.
        restore_us: u64,
        /// Size of the checkpoint.
        bytes: u64,
    },
    /// A job was killed.
    Killed {
        /// Which job.
        job: JobId,
        /// Which of its starts.
        attempt: Attempt,
        /// What of its work is lost.
        done: Ppm,
        /// What its processes got.
        uses: Vec<ProcessUse>,
        /// What it was due and got; `None` where nobody kept count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ledger: Option<JobLedger>,
    },
    /// A job came to its end.
    Finished {
        /// Which job.
        job: JobId,
        /// Which of its starts.
        attempt: Attempt,
        /// Its answer is right.
        verified: bool,
        /// What its processes got.
        uses: Vec<ProcessUse>,
        /// What it was due and got; `None` where nobody kept count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ledger: Option<JobLedger>,
        /// How much later than due, which is when it is heard of, it really ended; below zero:
        /// earlier.
        #[serde(default, skip_serializing_if = "is_zero")]
        late_us: i64,
    },
    /// A job failed.
    Failed {
        /// Which job.
        job: JobId,
        /// Which of its starts.
        attempt: Attempt,
        /// Why.
        why: String,
    },
}

/// What a start of a job was due and got, over all its processes. Real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLedger {
    /// CPU time that its processes would have had on processors of just their speed.
    pub due_us: u64,
    /// CPU time for which they computed.
    pub received_us: u64,
    /// CPU time that their slots were charged beside that: births, dumps, restores, ends.
    pub beside_us: u64,
    /// How long their quotas were lifted.
    pub lifted_us: u64,
    /// Time by which a process was ahead of what it was due, at worst.
    pub ahead_us: u64,
    /// Time by which a process was behind, at worst.
    pub behind_us: u64,
}

/// What a process got on a processor in one situation. Times are real microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// Which of the job's processes.
    pub process: u32,
    /// Where.
    pub processor: u32,
    /// In which slot.
    pub tier: Tier,
    /// The processor's other slot was taken, too.
    pub shared: bool,
    /// How long.
    pub wall_us: u64,
    /// For how much of that it wanted to compute.
    pub wanted_us: u64,
    /// How much CPU time its processor promises it for that.
    pub promised_us: u64,
    /// How much it got.
    pub cpu_us: u64,
    /// How long it may have been kept waiting in all by a neighbour that had just used up their
    /// processor.
    pub may_wait_us: u64,
}

/// A report in these words; `None` if it is of another kind of VM.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn heard(report: v1::report::Report) -> Result<Option<MachineReport>, String> {
    use v1::report::Report as Wire;
    Ok(Some(match report {
        Wire::JobStarted(it) => {
            let (job, attempt) = of_job(it.job)?;
            MachineReport::Started { job, attempt, took_us: it.took_us }
        }
        Wire::JobPromoted(it) => {
            let (job, attempt) = of_job(it.job)?;
            MachineReport::Promoted { job, attempt, took_us: it.took_us }
        }
        Wire::JobMoved(it) => {
            let (job, attempt) = of_job(it.job)?;
            let v1::JobMoved { lost, took_us, dump_us, restore_us, bytes, .. } = it;
            let done = part(it.done_ppm)?;
            MachineReport::Moved { job, attempt, done, lost, took_us, dump_us, restore_us, bytes }
        }
        Wire::JobKilled(it) => {
            let (job, attempt) = of_job(it.job)?;
            let (done, uses) = (part(it.done_ppm)?, it.uses.iter().map(process_use).collect());
            MachineReport::Killed { job, attempt, done, uses, ledger: ledger(it.ledger) }
        }
        Wire::JobFinished(it) => {
            let (job, attempt) = of_job(it.job)?;
            let uses = it.uses.iter().map(process_use).collect();
            let (verified, ledger, late_us) = (it.verified, ledger(it.ledger), it.late_us);
            MachineReport::Finished { job, attempt, verified, uses, ledger, late_us }
        }
        Wire::JobFailed(it) => {
            let (job, attempt) = of_job(it.job)?;
            MachineReport::Failed { job, attempt, why: it.why }
        }
        _ => return Ok(None),
    }))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn of_job(of: Option<v1::JobRef>) -> Result<(JobId, Attempt), String> {
    let of = of.ok_or("it does not say of which job it is")?;
    Ok((JobId::new(of.job), Attempt::new(of.attempt)))
}

fn part(ppm: u32) -> Result<Ppm, String> {
    if ppm > Ppm::ONE.get() {
        return Err(format!("{ppm} parts per million of the work are more than all of it"));
    }
    Ok(Ppm::new(ppm))
}

fn ledger(of: Option<v1::JobLedger>) -> Option<JobLedger> {
    let v1::JobLedger { due_us, received_us, beside_us, lifted_us, ahead_us, behind_us } = of?;
    Some(JobLedger { due_us, received_us, beside_us, lifted_us, ahead_us, behind_us })
}

fn process_use(of: &v1::ProcessUse) -> ProcessUse {
    ProcessUse {
        process: of.process,
        processor: of.processor,
        tier: match of.tier() {
            v1::Tier::Foreground => Tier::Foreground,
            v1::Tier::Background => Tier::Background,
        },
        shared: of.shared,
        wall_us: of.wall_us,
        wanted_us: of.wanted_us,
        promised_us: of.promised_us,
        cpu_us: of.cpu_us,
        may_wait_us: of.may_wait_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_reports_are_refused_with_what_is_wrong() {
        use v1::report::Report as Wire;
        let job = Some(v1::JobRef { vm: 0, job: 2, attempt: 3, at_us: 0 });
        for (report, word) in [
            (Wire::JobFinished(v1::JobFinished::default()), "which job"),
            (
                Wire::JobMoved(v1::JobMoved { job, done_ppm: 1_000_001, ..Default::default() }),
                "more",
            ),
        ] {
            let no = heard(report).expect_err("damaged");
            assert!(no.contains(word), "{no}");
        }
        assert_eq!(heard(Wire::VmCreated(v1::VmRef { vm: 1 })), Ok(None));
        let started = heard(Wire::JobStarted(v1::JobStarted { job, took_us: 7 }));
        let (job, attempt) = (JobId::new(2), Attempt::new(3));
        assert_eq!(started, Ok(Some(MachineReport::Started { job, attempt, took_us: 7 })));
    }
}
