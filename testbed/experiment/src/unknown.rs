//! Restrictions for tasks with an unknown run time.

use dormouse_documents::{Mistakes, Node};
use dormouse_model::{CheckpointScheme, PeriodUnit};
use dormouse_policies::BagSchedulerName;
use dormouse_tasks::own::Saves;
use dormouse_units::TaskId;

use super::Experiment;

/// Remedy for an unknown run time where one is needed.
const REMEDY: &str = "give one (runtime = \"150s\", --runtime 150s), or measure it with `dormouse measure` (runtime = \
                      \"measured\")";

impl Experiment {
    /// Reason for which the experiment can't be run in virtual time, which needs all run times; `None` if it
    /// can.
    #[must_use]
    pub fn unknown_runtime(&self) -> Option<String> {
        let task = self.own_tasks.first_unknown()?;
        let name = self.name_of_task(task);
        Some(format!(
            "task {name} has no run time, and in virtual time nothing really runs; {REMEDY}, or run it with --live"
        ))
    }

    fn name_of_task(&self, task: TaskId) -> &str {
        let task = self.setup.bag.tasks.get(task.get() as usize);
        task.map(|task| task.name.as_str()).unwrap_or_default()
    }
}

/// Adds a mistake for each part of an experiment that needs a run time which is unknown.
pub(crate) fn check(experiment: &Experiment, root: &Node, found: &mut Mistakes) {
    let Some(task) = experiment.own_tasks.first_unknown() else { return };
    let name = experiment.name_of_task(task);
    if let Some(scheduler) = &experiment.scheduler
        && !does_without(scheduler.name)
    {
        let what = format!(
            "{} plans by how long tasks take, and task {name} has no run time",
            scheduler.name.as_str()
        );
        let remedy = format!("{REMEDY}, or take the scheduler fifo, with a fleet");
        found.add(root.place_of("scheduler"), what, remedy);
    }
    let is_saved = |program: &&std::sync::Arc<dormouse_tasks::own::OwnProgram>| {
        matches!(program.saves, Saves::Criu | Saves::Own)
    };
    let needs = match &experiment.setup.checkpoint.scheme {
        CheckpointScheme::Budget(part) | CheckpointScheme::BudgetIntervals(part)
            if part.get() > 0 =>
        {
            Some("budget")
        }
        CheckpointScheme::Points(_) => Some("points"),
        CheckpointScheme::Every { of: PeriodUnit::Work, .. } => Some("every, of work,"),
        CheckpointScheme::YoungDaly { .. } => Some("young-daly"),
        CheckpointScheme::Dp(_) => Some("dp"),
        _ => None,
    };
    if let Some(policy) = needs
        && experiment.own_programs.get(&task).as_ref().is_some_and(is_saved)
    {
        let what = format!(
            "checkpoints of policy {policy} are spaced over the work of a task, and task {name} has no run time"
        );
        let remedy =
            format!("{REMEDY}, or take them by the clock: policy = \"every\", period = \"10m\"");
        found.add(root.place_of("checkpoint"), what, remedy);
    }
}

/// Whether a scheduler makes its decisions without run times; always true for scheduler programs,
/// because only a program knows whether it needs them.
fn does_without(name: BagSchedulerName) -> bool {
    matches!(name, BagSchedulerName::Fifo | BagSchedulerName::Program)
}
