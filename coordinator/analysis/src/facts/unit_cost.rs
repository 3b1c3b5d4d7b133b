//! CPU time of a host's tasks for a unit of work, compared with other tasks of the same program on
//! the same host.
//!
//! A worker that computes only part of a task and idles for the rest uses more or less CPU time per
//! unit than in tasks that it does in full. A worker that does so in all its tasks can't be found
//! this way.

use std::collections::BTreeMap;

use dormouse_model::Report;
use dormouse_units::{Attempt, HostId, TaskId};
use serde::Deserialize;

/// Least number of tasks of one program on one host for which the tasks' costs are compared.
const LEAST_TASKS: usize = 5;
/// Factor by which a task's cost must be above or below the median for the task to be named. Tasks
/// that wait for memory, or are often restored, differ by less.
const MOST_TIMES: f64 = 3.0;
/// Greatest number of tasks with unusual costs that the sentences name.
const MOST_NAMED: usize = 5;

/// Program and input of a task, as far as they decide the cost of a unit of its work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct ProgramKey {
    kind: String,
    class: Option<String>,
    id: Option<u32>,
    memory_bytes: Option<u64>,
}

/// The parts of a task's answer that say how much work the task did.
#[derive(Deserialize)]
struct AmountOfWork {
    #[serde(flatten)]
    program: ProgramKey,
    units: u64,
}

/// CPU time per unit of work, in real microseconds, of the tasks of each program on each host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UnitCosts {
    of: BTreeMap<(HostId, ProgramKey), Vec<(TaskId, f64)>>,
}

// Measured costs are never NaN.
impl Eq for UnitCosts {}

impl UnitCosts {
    /// Adds the end of a task. A task with several attempts is left out: it is not known what part
    /// of its work the last one did.
    pub(super) fn see(&mut self, host: HostId, report: &Report) {
        let Report::TaskFinished { task, attempt, verified, result, real_cpu_us, .. } = report
        else {
            return;
        };
        let amount = result.as_deref().map(serde_json::from_str::<AmountOfWork>);
        let Some(Ok(AmountOfWork { program, units: units @ 1.. })) = amount else { return };
        if *verified && *attempt == Attempt::default().next() {
            #[expect(clippy::cast_precision_loss, reason = "a ratio")]
            let each = *real_cpu_us as f64 / units as f64;
            self.of.entry((host, program)).or_default().push((*task, each));
        }
    }

    /// One sentence for each task whose cost differs much from the median of its program on its
    /// host, the largest difference first.
    pub(super) fn findings(&self, name: impl Fn(HostId) -> String) -> Vec<String> {
        let mut found = Vec::new();
        for ((host, program), tasks) in &self.of {
            let mut costs: Vec<f64> = tasks.iter().map(|(_, cost)| *cost).collect();
            costs.sort_by(f64::total_cmp);
            let median = costs[costs.len() / 2];
            if costs.len() < LEAST_TASKS || median <= 0.0 {
                continue;
            }
            for (task, cost) in tasks {
                let times = cost / median;
                let far = times.max(median / cost.max(f64::MIN_POSITIVE));
                if far < MOST_TIMES {
                    continue;
                }
                let (host, kind, others) = (name(*host), &program.kind, tasks.len() - 1);
                let said = format!(
                    "{task} took {times:.2} times the CPU time for a unit of its work that {host} took in the median of \
                     its {others} other tasks of {kind} (said from {MOST_TIMES} times on, and from 1/{MOST_TIMES} down)"
                );
                found.push((far, said));
            }
        }
        found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let left_out = found.len().saturating_sub(MOST_NAMED);
        let named = found.into_iter().take(MOST_NAMED).map(|(_, said)| said);
        let more =
            (left_out > 0).then(|| format!("{left_out} more tasks took as unlike the others"));
        named.chain(more).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dormouse_units::VmId;

    fn finished(task: u32, attempt: u32, (units, real_cpu_us): (u64, u64)) -> Report {
        let result = format!(
            "{{\"kind\": \"cg\", \"class\": \"S\", \"units\": {units}, \"digest\": \"1\"}}"
        );
        Report::TaskFinished {
            vm: VmId::new(1),
            task: TaskId::new(task),
            attempt: Attempt::new(attempt),
            verified: true,
            reported: false,
            program_failed: false,
            result: Some(result.into()),
            real_cpu_us,
        }
    }

    fn findings(reports: &[Report]) -> Vec<String> {
        let mut costs = UnitCosts::default();
        reports.iter().for_each(|report| costs.see(HostId::new(3), report));
        costs.findings(|host| host.to_string())
    }

    /// The attack: a worker takes the whole time of a task, and does only a tenth of the work.
    #[test]
    fn a_task_that_did_a_tenth_of_its_work_in_the_same_time_is_named() {
        let honest = |task| finished(task, 1, (1_000, 50_000 + u64::from(task) * 1_000));
        let mut reports: Vec<Report> = (0..8).map(honest).collect();
        assert_eq!(findings(&reports), [""; 0]);
        reports.push(finished(8, 1, (100, 50_000)));
        let [said] = &findings(&reports)[..] else { panic!("{:?}", findings(&reports)) };
        let words = "task8 took 9.26 times the CPU time for a unit of its work that host3 took in the median of its 8 other";
        assert!(said.starts_with(words) && said.contains("from 3 times on"), "{said}");
        // It did no work, and says that it did all.
        reports[8] = finished(8, 1, (1_000, 10));
        assert!(findings(&reports)[0].starts_with("task8 took 0.00 times"));
        // What an attempt before it did is not known.
        reports[8] = finished(8, 2, (100, 50_000));
        assert_eq!(findings(&reports), [""; 0]);
        reports.extend((9..20).map(|task| finished(task, 1, (10, 50_000))));
        let many = findings(&reports);
        assert_eq!(many.len(), MOST_NAMED + 1, "{many:?}");
    }

    #[test]
    fn a_few_tasks_say_nothing_of_one() {
        let few: Vec<Report> = [(10, 10), (10, 10), (10, 10), (10, 900)]
            .into_iter()
            .zip(0..)
            .map(|(amount, task)| finished(task, 1, amount))
            .collect();
        assert_eq!(findings(&few), [""; 0]);
    }
}
