//! What parallel jobs are on a worker: their programs, what these are promised, and what is said
//! of them on the wire.

use std::time::Duration;

use dormouse_engine::{JobAccount, JobLedger, ProcessUse, Report};
use dormouse_policies::batch::Submission;
use dormouse_proto::v1;
use dormouse_units::{Attempt, Bytes, Ppm, TaskId, Tier, Time, VmId};

use crate::Speedup;
use crate::wire::part;

/// How parallel jobs are made to last as long as they should.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Programs {
    pub(crate) speedup: Speedup,
    /// The share of a host core that a processor is.
    pub(crate) core: Ppm,
    /// How long a job's processes compute between two barriers, real time.
    pub(crate) phase: Duration,
}

impl Programs {
    /// The arguments of a job's program: it takes its run time on processors of its own, and its
    /// processes use what they should of them.
    pub(crate) fn arguments(&self, job: &Submission) -> Vec<String> {
        let real = self.speedup.real(job.runtime.as_micros());
        let phases = phases_of(real, self.phase);
        let cpu_us = self.core.of(u64::try_from(real.as_micros()).unwrap_or(u64::MAX)).max(1);
        let decimal = |part: Ppm| format!("{:.6}", part.as_f64());
        let usage: Vec<_> = (0..job.processes as usize).map(|n| decimal(job.usage.of(n))).collect();
        let words = [
            "parallel".to_owned(),
            "--processes".to_owned(),
            job.processes.to_string(),
            "--phases".to_owned(),
            phases.to_string(),
            "--usage".to_owned(),
            usage.join(","),
            "--speed".to_owned(),
            decimal(self.core),
            "--seed".to_owned(),
            job.number.to_string(),
            "--cpu-time".to_owned(),
            format!("{cpu_us}us"),
        ];
        words.to_vec()
    }

    /// The same for the worker, which sees to it.
    pub(crate) fn plan(&self, job: &Submission) -> v1::JobPlan {
        let real = self.speedup.real(job.runtime.as_micros());
        v1::JobPlan {
            runtime_us: u64::try_from(real.as_micros()).unwrap_or(u64::MAX),
            phases: phases_of(real, self.phase),
            usage_ppm: (0..job.processes as usize).map(|n| job.usage.of(n).get()).collect(),
        }
    }
}

/// How many phases of about this length a job has that takes so long on processors of its own, in
/// real time: at least one.
#[must_use]
pub fn phases_of(runtime: Duration, phase: Duration) -> u32 {
    const MOST: u128 = 1_000_000;
    let phases = (runtime.as_nanos() / phase.as_nanos().max(1)).clamp(1, MOST);
    u32::try_from(phases).unwrap_or(1)
}

/// A report, the account that comes before it, and when what it reports is due.
type Heard = (Report, Option<Report>, Option<Time>);

/// What a worker says of a parallel job: the report, the account that comes before it, and when
/// what it reports is due. `None`: it is of something else.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn heard(report: v1::report::Report) -> Result<Option<Heard>, String> {
    use v1::report::Report as Wire;
    Ok(Some(match report {
        Wire::JobStarted(it) => {
            let (vm, task, attempt) = of_job(it.job)?;
            let (done, real_took_us) = (Ppm::ZERO, it.took_us);
            (Report::TaskStarted { vm, task, attempt, done, real_took_us }, None, None)
        }
        Wire::JobPromoted(it) => {
            let (vm, task, attempt) = of_job(it.job)?;
            let real_took_us = it.took_us;
            (Report::TaskPromoted { vm, task, attempt, real_took_us }, None, None)
        }
        Wire::JobMoved(it) => {
            let (vm, task, attempt) = of_job(it.job)?;
            let moved = Report::TaskMoved {
                vm,
                task,
                attempt,
                done: part(it.done_ppm)?,
                lost: it.lost,
                real_took_us: it.took_us,
                real_dump_us: it.dump_us,
                real_restore_us: it.restore_us,
                bytes: Bytes::new(it.bytes),
            };
            (moved, None, None)
        }
        Wire::JobKilled(it) => {
            let of @ (vm, task, attempt) = of_job(it.job)?;
            let uses: Vec<_> = it.uses.iter().map(process_use).collect();
            let real_cpu_us = cpu_us(&uses);
            let done = part(it.done_ppm)?;
            let account = JobAccount { done, uses, ledger: ledger(it.ledger), real_late_us: 0 };
            let stopped = Report::TaskStopped { vm, task, attempt, kept: None, real_cpu_us };
            (stopped, Some(account_of(of, account)), None)
        }
        Wire::JobFinished(it) => {
            let of @ (vm, task, attempt) = of_job(it.job)?;
            let due = it.job.filter(|job| job.at_us > 0).map(|job| Time::from_micros(job.at_us));
            let uses: Vec<_> = it.uses.iter().map(process_use).collect();
            let (verified, real_cpu_us) = (it.verified, cpu_us(&uses));
            let (ledger, real_late_us) = (ledger(it.ledger), it.late_us);
            let account = JobAccount { done: Ppm::ONE, uses, ledger, real_late_us };
            let finished = Report::TaskFinished { vm, task, attempt, verified, real_cpu_us };
            (finished, Some(account_of(of, account)), due)
        }
        Wire::JobFailed(it) => {
            let (vm, task, attempt) = of_job(it.job)?;
            let (why, real_cpu_us) = (it.why, 0);
            (Report::TaskFailed { vm, task, attempt, why, real_cpu_us }, None, None)
        }
        _ => return Ok(None),
    }))
}

fn account_of((vm, task, attempt): (VmId, TaskId, Attempt), account: JobAccount) -> Report {
    Report::JobAccount { vm, task, attempt, account: Box::new(account) }
}

fn cpu_us(uses: &[ProcessUse]) -> u64 {
    uses.iter().fold(0, |sum, of| sum.saturating_add(of.cpu_us))
}

fn of_job(of: Option<v1::JobRef>) -> Result<(VmId, TaskId, Attempt), String> {
    let of = of.ok_or("it does not say of which job it is")?;
    Ok((VmId::new(of.vm), TaskId::new(of.job), Attempt::new(of.attempt)))
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
    use dormouse_units::{Span, Usage};

    use super::*;

    #[test]
    fn a_job_is_given_what_takes_its_run_time_on_its_processors() {
        let programs = Programs {
            speedup: Speedup::from_f64(30.0).expect("sensible"),
            core: Ppm::new(112_500),
            phase: Duration::from_millis(500),
        };
        let job = Submission {
            number: 7,
            submitted: Time::ZERO,
            processes: 2,
            runtime: Span::from_secs(300),
            estimate: Span::from_secs(300),
            usage: Usage::each(vec![Ppm::new(400_000), Ppm::new(900_000)]),
        };
        let program = programs.arguments(&job).join(" ");
        // 300 s at speed-up 30 are 10 s, of which a processor does 1.125 s on a core.
        let expected = "parallel --processes 2 --phases 20 --usage 0.900000,0.400000 \
                        --speed 0.112500 --seed 7 --cpu-time 1125000us";
        assert_eq!(program, expected);
        let usage_ppm = vec![900_000, 400_000];
        let planned = v1::JobPlan { runtime_us: 10_000_000, phases: 20, usage_ppm };
        assert_eq!(programs.plan(&job), planned);
    }

    #[test]
    fn damaged_reports_are_refused_with_what_is_wrong() {
        use v1::report::Report as Wire;
        let job = Some(v1::JobRef { vm: 4, job: 2, attempt: 3, at_us: 9 });
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
        let (vm, task, attempt) = (VmId::new(4), TaskId::new(2), Attempt::new(3));
        let finished = v1::JobFinished { job, verified: true, late_us: -7, ..Default::default() };
        let (report, account, due) =
            heard(Wire::JobFinished(finished)).expect("sound").expect("of a job");
        let verified = Report::TaskFinished { vm, task, attempt, verified: true, real_cpu_us: 0 };
        assert_eq!((report, due), (verified, Some(Time::from_micros(9))));
        assert!(
            matches!(account, Some(Report::JobAccount { account, .. }) if account.real_late_us == -7)
        );
    }
}
