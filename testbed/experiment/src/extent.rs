//! Lower bound of a run's size from its experiment: a run that would never end, or fill the disk,
//! is refused before it begins.

use dormouse_cloud::InterruptionModel;
use dormouse_documents::{Mistakes, Node};
use dormouse_model::{CheckpointConfig, CheckpointScheme, Task};
use dormouse_units::Span;

use super::Experiment;

/// Events of a task without checkpoints: its VM comes and goes, it starts, and it finishes.
const EVENTS_OF_A_TASK: u64 = 6;
/// Size of an event in a log, in bytes; in `j60-sc2` it is 330.
const BYTES_OF_AN_EVENT: u64 = 300;
/// Greatest number of events of a run: its log would have tens of gigabytes.
const MOST_EVENTS: u64 = 100_000_000;
/// Schemes that look at a VM's hours do so once per hour.
const HOUR: Span = Span::from_secs(3_600);

/// Lower bound of a run's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunExtent {
    /// Number of events.
    pub events: u64,
    /// Size of the log, in bytes.
    pub bytes: u64,
}

impl Experiment {
    /// A lower bound from what is known before the run: the tasks of its bag with their
    /// checkpoints, and the interruptions while its longest task runs. Parallel jobs and requests
    /// are counted when they come.
    #[must_use]
    pub fn extent(&self) -> RunExtent {
        let setup = &self.setup;
        let tasks = setup.bag.tasks.iter().map(|task| {
            EVENTS_OF_A_TASK.saturating_add(count_checkpoints(&setup.checkpoint, task))
        });
        let longest = setup.bag.tasks.iter().map(shortest_runtime).max().unwrap_or_default();
        let interruptions = setup.interruptions.iter().map(|model| match model {
            InterruptionModel::Poisson { hibernate_every, resume_every, .. } => {
                [hibernate_every, resume_every]
                    .into_iter()
                    .flatten()
                    .fold(0_u64, |sum, every| sum.saturating_add(count_periods(longest, *every)))
            }
            InterruptionModel::Schedule { acts } => acts.len() as u64,
            InterruptionModel::Lifetime { .. } | InterruptionModel::Replay { .. } => 0,
        });
        let events = tasks.chain(interruptions).fold(0_u64, u64::saturating_add);
        RunExtent { events, bytes: events.saturating_mul(BYTES_OF_AN_EVENT) }
    }
}

/// Adds a mistake if an experiment is larger than any run can be.
pub(super) fn check(experiment: &Experiment, root: &Node, found: &mut Mistakes) {
    let RunExtent { events, bytes } = experiment.extent();
    if events <= MOST_EVENTS {
        return;
    }
    let what = format!(
        "its run has at least {events} events, a log of {} GB; none may have more than {MOST_EVENTS}",
        bytes / 1_000_000_000
    );
    let remedy = "make the tasks shorter, or checkpoint and interrupt them less often";
    found.add(root.place_of("workload"), what, remedy);
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

    #[test]
    fn a_run_without_end_is_found_before_it_begins() {
        let usual = with(&[]).expect("it is one of ours");
        assert!((400..20_000).contains(&usual.events), "{usual:?}");
        assert_eq!(usual.bytes, usual.events * super::BYTES_OF_AN_EVENT);
        let endless = ["checkpoint.policy=every", "checkpoint.period=10us", "checkpoint.of=work"];
        let no = with(&endless).expect_err("it has no end");
        assert!(no.contains("events") && no.contains("checkpoint and interrupt them less"), "{no}");
    }
}
