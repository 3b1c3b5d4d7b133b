//! Parallel jobs on a worker: their programs, their plans and their accounts.

use std::time::Duration;

use dormouse_model::{JobStartAccount, JobStartLedger, ProcessCpuUse, Report, Submission};
use dormouse_proto::v1;
use dormouse_units::{Attempt, Bytes, Ppm, Speedup, TaskId, Tier, VmId};
use dormouse_vm::ideal::phases_of;

/// Settings with which the programs of parallel jobs are run so that they take the right time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParallelPrograms {
    pub(crate) speedup: Speedup,
    /// Share of a host core that each processor of a job gets.
    pub(crate) core: Ppm,
    /// Time that a job's processes compute between two barriers, in real time.
    pub(crate) phase: Duration,
}

impl ParallelPrograms {
    /// Returns the command-line arguments of a job's program: with them it takes the job's run time if the job has its
    /// processors to itself, and its processes use the CPU as the job says.
    pub(crate) fn job_arguments(&self, job: &Submission) -> Vec<String> {
        let real = self.speedup.to_real(job.runtime);
        let phases = phases_of(real, self.phase);
        let cpu_us = self.speedup.cpu_time(job.runtime, self.core).as_micros().max(1);
        let decimal = |part: Ppm| format!("{:.6}", part.as_f64());
        let usage: Vec<_> =
            (0..job.processes as usize).map(|n| decimal(job.usage.of_process(n))).collect();
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
        let fills = memory_to_fill(job.memory);
        let memory = ["--memory".to_owned(), format!("{}B", fills.get())];
        let memory = (fills > Bytes::ZERO).then_some(memory);
        words.into_iter().chain(memory.into_iter().flatten()).collect()
    }

    /// Returns the job's plan for the worker, which paces the processes by it.
    pub(crate) fn job_plan(&self, job: &Submission) -> v1::Plan {
        let real = self.speedup.to_real(job.runtime);
        v1::Plan {
            real_runtime_us: u64::try_from(real.as_micros()).unwrap_or(u64::MAX),
            phases: phases_of(real, self.phase),
            usage_ppm: (0..job.processes as usize).map(|n| job.usage.of_process(n).get()).collect(),
        }
    }
}

/// Returns the memory that a process must fill so that it has `memory` in total, with its program, its page tables
/// and its part of the parent.
fn memory_to_fill(memory: Bytes) -> Bytes {
    const PROGRAM: Bytes = Bytes::new(1 << 20);
    memory.saturating_sub(PROGRAM).saturating_sub(Bytes::new(memory.get() / 256))
}

/// Decodes the account `of` a job from the wire; `done` is the part of the job's work that is done.
pub(crate) fn read_account(
    (vm, task, attempt): (VmId, TaskId, Attempt),
    done: Ppm,
    of: &v1::JobAccount,
) -> Report {
    let uses = of.uses.iter().map(process_use).collect();
    let (ledger, real_late_us) = (of.ledger.map(read_ledger), of.real_late_us);
    let account = Box::new(JobStartAccount { done, uses, ledger, real_late_us });
    Report::JobAccount { vm, task, attempt, account }
}

fn read_ledger(of: v1::JobLedger) -> JobStartLedger {
    JobStartLedger {
        due_us: of.real_due_us,
        received_us: of.real_received_us,
        beside_us: of.real_beside_us,
        lifted_us: of.real_lifted_us,
        ahead_us: of.real_ahead_us,
        behind_us: of.real_behind_us,
    }
}

fn process_use(of: &v1::ProcessUse) -> ProcessCpuUse {
    ProcessCpuUse {
        process: of.process,
        processor: of.vcpu,
        tier: match of.tier() {
            v1::Tier::Foreground => Tier::Foreground,
            v1::Tier::Background => Tier::Background,
        },
        shared: of.shared,
        wall_us: of.real_wall_us,
        wanted_us: of.real_wanted_us,
        promised_us: of.real_promised_us,
        cpu_us: of.real_cpu_us,
        may_wait_us: of.real_may_wait_us,
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Span, Time, Usage};

    use super::*;

    #[test]
    fn a_job_is_given_what_takes_its_run_time_on_its_processors() {
        let programs = ParallelPrograms {
            speedup: Speedup::times_real(30),
            core: Ppm::new(112_500),
            phase: Duration::from_millis(500),
        };
        let job = Submission {
            number: 7,
            submitted: Time::ZERO,
            processes: 2,
            runtime: Span::from_secs(300),
            estimate: Span::from_secs(300),
            usage: Usage::each_process(vec![Ppm::new(400_000), Ppm::new(900_000)]),
            memory: Bytes::ZERO,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        };
        let program = programs.job_arguments(&job).join(" ");
        // 300 s at speed-up 30 are 10 s, of which a processor does 1.125 s on a core.
        let expected = "parallel --processes 2 --phases 20 --usage 0.900000,0.400000 \
                        --speed 0.112500 --seed 7 --cpu-time 1125000us";
        assert_eq!(program, expected);
        let fat = Submission { memory: Bytes::new(3 << 20), ..job.clone() };
        assert_eq!(programs.job_arguments(&fat).join(" "), format!("{expected} --memory 2084864B"));
        let usage_ppm = vec![900_000, 400_000];
        let planned = v1::Plan { real_runtime_us: 10_000_000, phases: 20, usage_ppm };
        assert_eq!(programs.job_plan(&job), planned);
    }
}
