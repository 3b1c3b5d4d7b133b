//! Lower bound of a run's size from its experiment: a run that would never end, or fill the disk,
//! is refused before it begins.

use std::collections::BTreeSet;

use dormouse_cloud::{InterruptionModel, InterruptionScope, Market};
use dormouse_documents::{Mistakes, Node};
use dormouse_model::{CheckpointConfig, CheckpointScheme, Setup, Task};
use dormouse_policies::Fleet;
use dormouse_units::{Span, Time};

use super::Experiment;

/// Number of events of a task without checkpoints: its VM comes and goes, the task starts, and it
/// finishes.
const EVENTS_OF_A_TASK: u64 = 6;
/// Size of an event in a log, in bytes; in `j60-sc2` it is 330.
const BYTES_OF_AN_EVENT: u64 = 300;
/// Size in a log of an interruption that hits no VM, in bytes.
const BYTES_OF_AN_INTERRUPTION: u64 = 150;
/// Greatest number of events of a run: a log of more would have tens of gigabytes.
const MOST_EVENTS: u64 = 100_000_000;
/// Interval of checkpoints in the schemes that follow the hours of a VM.
const HOUR: Span = Span::from_secs(3_600);

/// Least size of a run, if some VM is interrupted while the run's longest task runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunExtent {
    /// Least number of events of the run.
    pub events: u64,
    /// Least size of the run's log, in bytes.
    pub bytes: u64,
}

impl Experiment {
    /// The size of the run as far as it is known beforehand: the tasks of its bag with their
    /// checkpoints, and the interruptions of each target while the longest task runs, whether or
    /// not they hit a VM. Parallel jobs and requests are counted only when they arrive.
    #[must_use]
    pub fn extent(&self) -> RunExtent {
        let setup = &self.setup;
        let tasks = setup.bag.tasks.iter().map(|task| {
            EVENTS_OF_A_TASK.saturating_add(count_checkpoints(&setup.checkpoint, task))
        });
        let longest = setup.bag.tasks.iter().map(shortest_runtime).max().unwrap_or_default();
        let interruptions = setup.interruptions.iter().map(|model| match model {
            InterruptionModel::Poisson { hibernate_every, resume_every, scope } => {
                let of_one = [hibernate_every, resume_every]
                    .into_iter()
                    .flatten()
                    .fold(0_u64, |sum, every| sum.saturating_add(count_periods(longest, *every)));
                of_one.saturating_mul(count_targets(setup, *scope))
            }
            InterruptionModel::Schedule { acts } => acts.len() as u64,
            InterruptionModel::Weekly { scope, rates, .. } => {
                let of_one = rates.expected_events(Time::ZERO, Time::ZERO + longest);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "an estimate; it saturates"
                )]
                let of_one = of_one as u64;
                of_one.saturating_mul(count_targets(setup, *scope))
            }
            InterruptionModel::Lifetime { .. } | InterruptionModel::Replay { .. } => 0,
        });
        let attempts = EVENTS_OF_A_TASK.saturating_mul(self.count_attempts(longest));
        let of_tasks = tasks.fold(attempts, u64::saturating_add);
        let interruptions = interruptions.fold(0_u64, u64::saturating_add);
        let bytes = of_tasks.saturating_mul(BYTES_OF_AN_EVENT);
        let bytes = bytes.saturating_add(interruptions.saturating_mul(BYTES_OF_AN_INTERRUPTION));
        RunExtent { events: of_tasks.saturating_add(interruptions), bytes }
    }

    /// Time limit of a run: a hundred deadlines and a day; no limit with parallel jobs, whose length is not known.
    #[must_use]
    pub fn time_limit(&self) -> Time {
        match self.jobs {
            None if self.scheduler.is_some() => {
                Time::ZERO + self.setup.bag.deadline.times(100) + Span::from_secs(86_400)
            }
            _ => Time::from_micros(u64::MAX),
        }
    }

    /// Expected number of attempts at a task of this run time that loses all of its work at each hibernation: where the
    /// scheduler has a fleet of spot VMs alone and no checkpoint is taken. 0 for other experiments.
    fn count_attempts(&self, runtime: Span) -> u64 {
        let Some(scheduler) = &self.scheduler else { return 0 };
        let is_spot = |fleet: &[Fleet]| fleet.iter().all(|vms| vms.market == Market::Spot);
        let loses_all = self.setup.checkpoint.scheme == CheckpointScheme::None {}
            && scheduler.name.fleet(scheduler).is_some_and(is_spot);
        let every = self.setup.interruptions.iter().find_map(|model| match model {
            InterruptionModel::Poisson { hibernate_every, .. } => *hibernate_every,
            _ => None,
        });
        let Some(every) = every.filter(|every| loses_all && *every > Span::ZERO) else { return 0 };
        let until_limit = count_periods(self.time_limit().since(Time::ZERO), every);
        // A time without any hibernation is e^(its length / their mean distance) attempts away.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is positive, and beyond all integers becomes the largest"
        )]
        let expected = (runtime.as_secs_f64() / every.as_secs_f64()).exp() as u64;
        until_limit.min(expected)
    }
}

/// Adds a mistake if an experiment is larger than any run can be.
pub(super) fn check(experiment: &Experiment, root: &Node, found: &mut Mistakes) {
    let RunExtent { events, bytes } = experiment.extent();
    if events <= MOST_EVENTS {
        return;
    }
    let what = format!(
        "its run can have {events} events, a log of about {} GB; none may have more than {MOST_EVENTS}",
        bytes / 1_000_000_000
    );
    let remedy = "make the tasks shorter, or checkpoint and interrupt them less often";
    found.add(root.place_of("workload"), what, remedy);
}

/// Number of targets that have interruptions of their own from the beginning, or with the first VM.
fn count_targets(setup: &Setup, scope: InterruptionScope) -> u64 {
    let all = setup.catalogue.types.values();
    let spot = all.filter(|kind| kind.vm_limit(Market::Spot) > 0);
    match scope {
        InterruptionScope::Type => spot.count() as u64,
        InterruptionScope::Zone => {
            spot.filter_map(|kind| kind.name.zone()).collect::<BTreeSet<_>>().len() as u64
        }
        InterruptionScope::Vm | InterruptionScope::All => 1,
    }
}

/// Number of checkpoints of a task if nothing ever interrupts it.
fn count_checkpoints(config: &CheckpointConfig, task: &Task) -> u64 {
    let runtime = shortest_runtime(task);
    let cost = config.checkpoint_cost(task.memory);
    match &config.scheme {
        CheckpointScheme::Budget(part) | CheckpointScheme::BudgetIntervals(part) => {
            count_periods(Span::from_micros(part.scale_number(runtime.as_micros())), cost)
        }
        CheckpointScheme::Every { period, .. } => count_periods(runtime, *period),
        CheckpointScheme::Points(points) => points.len() as u64,
        CheckpointScheme::Hour {} | CheckpointScheme::Acc { .. } => count_periods(runtime, HOUR),
        CheckpointScheme::Adapt { every, .. } => count_periods(runtime, *every),
        // Schemes that follow prices, lifetimes or programs have no bound here.
        _ => 0,
    }
}

/// Run time of a task on its fastest type.
fn shortest_runtime(task: &Task) -> Span {
    task.runtime.values().copied().min().unwrap_or_default()
}

/// Number of periods that fit into a time; 0 if the period is 0.
const fn count_periods(time: Span, period: Span) -> u64 {
    match period.as_micros() {
        0 => 0,
        period => time.as_micros() / period,
    }
}

#[cfg(test)]
mod tests {
    use crate::{ExperimentSource, Override, open};

    fn with(overrides: &[&str]) -> Result<super::RunExtent, String> {
        let overrides = overrides.iter().map(|it| Override::set(it).expect("an override"));
        let source = ExperimentSource {
            experiment: Some("j60"),
            overrides: overrides.collect(),
            ..ExperimentSource::default()
        };
        open(&source).map(|it| it.experiment.extent()).map_err(|error| error.to_string())
    }

    fn of_text(text: &str) -> Result<super::RunExtent, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("long.toml");
        std::fs::write(&file, text).expect("room");
        let file = file.to_string_lossy().into_owned();
        let source = ExperimentSource { experiment: Some(&file), ..ExperimentSource::default() };
        open(&source).map(|it| it.experiment.extent()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_run_without_end_is_found_before_it_begins() {
        let usual = with(&[]).expect("it is one of ours");
        assert!((400..20_000).contains(&usual.events), "{usual:?}");
        assert!(usual.bytes <= usual.events * super::BYTES_OF_AN_EVENT, "{usual:?}");
        let endless = ["checkpoint.policy=every", "checkpoint.period=10us", "checkpoint.of=work"];
        let no = with(&endless).expect_err("it has no end");
        assert!(no.contains("events") && no.contains("checkpoint and interrupt them less"), "{no}");
    }

    /// A task of 770 years beside interruptions of each of three types of spot VMs.
    #[test]
    fn interruptions_of_each_type_count_whether_they_hit_anything_or_not() {
        let long = |every: &str| {
            let every = ["hibernate-every", "resume-every"].map(|key| format!("{key}='{every}'"));
            let text = format!(
                "name='long'\n[cloud]\ncatalogue='ec2-2020'\n[workload]\nkind='bag'\ndeadline='8000000h'\n[[workload.task]]\nruntime='6750000h'\n\
                 memory='64 MiB'\n[[interruption]]\nmodel='poisson'\n{}\n[scheduler]\nname='hads'\n\
                 [checkpoint]\npolicy='none'\n",
                every.join("\n")
            );
            of_text(&text)
        };
        let seldom = long("100h").expect("it ends");
        assert_eq!(seldom.events, super::EVENTS_OF_A_TASK + 3 * 2 * 67_500);
        let no = long("20m").expect_err("it has no end");
        assert!(no.contains("can have 121500006 events") && no.contains("18 GB"), "{no}");
    }

    /// A task that begins anew after each hibernation needs a time as long as its run time without any.
    #[test]
    fn attempts_that_lose_all_work_count_until_one_is_expected_to_end_or_the_run_is_over() {
        let task = |deadline: &str, runtime: &str| {
            of_text(&format!(
                "name='long'\n[cloud]\ncatalogue='ec2-2020'\n[workload]\nkind='bag'\ndeadline='{deadline}'\n\
                 [[workload.task]]\nruntime={{'c3.large'='{runtime}'}}\nmemory='64 MiB'\n\
                 [[interruption]]\nmodel='poisson'\nhibernate-every='1h'\nscope='vm'\n\
                 [scheduler]\nname='fifo'\nfleet=[{{type='c3.large',market='spot',count=1}}]\n\
                 [checkpoint]\npolicy='none'\n"
            ))
        };
        let events = |extent: Result<super::RunExtent, String>| extent.expect("it ends").events;
        // e^3 attempts are expected; of ten hours the run's limit of 124 hours cuts off most.
        assert_eq!(events(task("1h", "3h")), 6 * (1 + 20) + 3);
        assert_eq!(events(task("1h", "10h")), 6 * (1 + 124) + 10);
        let no = task("6745200h", "6745200h").expect_err("it has no end");
        assert!(no.contains("can have") && no.contains("make the tasks shorter"), "{no}");
    }
}
