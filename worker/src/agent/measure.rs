//! Measuring the CPU time of one repetition of each program on this host.

use std::{
    collections::BTreeMap,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use dormouse_proto::v1::Program as Args;
use dormouse_tasks::result::TaskResult;
use tokio::task::spawn_blocking;

use super::{
    AgentError, Result, available_millicores,
    host::{LifeHost, limit},
    report::explain_error,
};
use crate::{
    cgroup::{self, TierSlot},
    process::{self, ProcessEnd, ProgramCommand},
    workspace::{self, TaskName},
};

/// Number of the VM for measurements: no VM of a run has it, as VMs' numbers have 32 bits.
const VM: u64 = 1 << 32;
/// Programs without a smallest amount of work.
const DIVISIBLE: [&str; 2] = ["vector", "noop"];

/// Reasons why a program wasn't measured.
#[derive(Debug, thiserror::Error)]
enum MeasurementError {
    #[error("the control groups failed")]
    Cgroup(#[from] cgroup::CgroupError),
    #[error("the process failed")]
    Process(#[from] process::ProcessError),
    #[error("its directory failed")]
    Workspace(#[from] workspace::WorkspaceError),
    #[error("its result file is missing")]
    Result(#[from] dormouse_tasks::result::ResultError),
    #[error("it did not finish one repetition within {} s", .0.as_secs())]
    Late(Duration),
    #[error("it failed: {0}")]
    Ended(ProcessEnd),
    #[error("no thread can be started for it")]
    Thread(#[source] std::io::Error),
    #[error("the thread that ran it panicked")]
    Panicked,
}

/// Measures the CPU time of one repetition of each program, in microseconds, while all of the host's cores are busy
/// with the same program; zero for those without a smallest amount of work.
pub(crate) async fn measure_repetitions(
    host: Arc<LifeHost>,
    programs: Vec<Args>,
) -> Result<Vec<u64>> {
    let found = spawn_blocking(move || measure_all(&host, &programs)).await;
    found.unwrap_or_else(|panic| {
        Err(AgentError::Measure { program: "any".to_owned(), why: explain_error(&panic) })
    })
}

fn measure_all(host: &LifeHost, programs: &[Args]) -> Result<Vec<u64>> {
    let mut known: BTreeMap<Vec<&str>, u64> = BTreeMap::new();
    let mut found = Vec::new();
    for program in programs {
        let kind = without_id(&program.args);
        let us = match known.get(&kind) {
            Some(us) => *us,
            None => measure_program(host, &program.args)?,
        };
        known.insert(kind, us);
        found.push(us);
    }
    Ok(found)
}

/// Returns the arguments without the id of an ED task, which changes a coefficient but not the amount of work.
fn without_id(args: &[String]) -> Vec<&str> {
    let mut rest = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--id" {
            args.next();
        } else {
            rest.push(arg.as_str());
        }
    }
    rest
}

fn measure_program(host: &LifeHost, args: &[String]) -> Result<u64> {
    if args.first().is_some_and(|kind| DIVISIBLE.contains(&kind.as_str())) {
        return Ok(0);
    }
    let fail = |error: MeasurementError| AgentError::Measure {
        program: args.join(" "),
        why: explain_error(&error),
    };
    let cores = (available_millicores() / 1000).max(1);
    let groups = host
        .prepared
        .tree
        .create_vm(VM, cores, None)
        .map_err(|e| fail(MeasurementError::Cgroup(e)))?;
    let times = thread::scope(|scope| {
        let copies: Vec<_> = (0..cores)
            .map(|cpu| {
                let groups = &groups;
                let copy = move || run_repetition(host, groups, cpu, args);
                thread::Builder::new().spawn_scoped(scope, copy).map_err(MeasurementError::Thread)
            })
            .collect();
        let joined =
            copies.into_iter().map(|copy| copy?.join().unwrap_or(Err(MeasurementError::Panicked)));
        joined.collect::<std::result::Result<Vec<u64>, MeasurementError>>()
    });
    let swept = groups.kill_all(limit::KILL).and_then(|_| groups.remove(limit::KILL));
    let us = times.map_err(fail)?.into_iter().max().unwrap_or(0);
    swept.map_err(|e| fail(MeasurementError::Cgroup(e)))?;
    tracing::info!(program = args.join(" "), us, "measured");
    Ok(us)
}

fn run_repetition(
    host: &LifeHost,
    groups: &cgroup::VmGroups,
    cpu: u32,
    args: &[String],
) -> std::result::Result<u64, MeasurementError> {
    let name = TaskName::new(host.run.clone(), format!("measure-{cpu}"))?;
    let directory = host.workspace().create_task(&name)?;
    let result = directory.join("result.json");
    let entry = groups.slot_groups(cpu, TierSlot::A)?;
    let task = ProgramCommand::new(host.task_program(), &directory)
        .args(args)
        .args(["--work", "1", "--result"])
        .arg(&result)
        .start_task(&entry, limit::BIRTH)?;
    let started = Instant::now();
    let ended = loop {
        let left = limit::MEASURE.saturating_sub(started.elapsed());
        match task.wait_end(left)? {
            Some(ended) => break ended,
            None if left.is_zero() => return Err(MeasurementError::Late(limit::MEASURE)),
            None => {}
        }
    };
    // 3: right as far as anybody knows.
    if !matches!(ended, ProcessEnd::Exited(0 | 3)) {
        return Err(MeasurementError::Ended(ended));
    }
    let seconds = TaskResult::read(&result)?.cpu_seconds;
    host.workspace().remove_task(&name)?;
    let took = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    Ok(u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_differ_in_their_id_only_are_measured_once() {
        let args = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (one, two) = (args("ed --class W --id 7"), args("ed --class W --id 8"));
        assert_eq!(without_id(&one), without_id(&two));
        assert_ne!(without_id(&one), without_id(&args("ed --class A --id 7")));
    }
}
