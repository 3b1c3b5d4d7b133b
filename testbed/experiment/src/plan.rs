//! Plans to run, in the format of Dormouse or of the Burst-HADS artifact, and the plans' figures,
//! to compare with the run.

use std::path::Path;

use dormouse_cloud::Catalogue;
use dormouse_documents::{InputError, Place, from_json, place_of};
use dormouse_model::{Bag, CheckpointConfig};
use dormouse_policies::{BagSchedulerConfig, Plan, PlanError, planned_bill};
use dormouse_units::{Money, Span};
use dormouse_workload::artifact;

use super::{Experiment, files};

/// Reads a plan from a JSON file, and checks that the plan fits the experiment. Oddities are added
/// to `notes`.
pub(crate) fn read(
    path: &Path,
    scheduler: &BagSchedulerConfig,
    (catalogue, bag, checkpoint): (&Catalogue, &Bag, &CheckpointConfig),
    notes: &mut Vec<String>,
) -> Result<Plan, InputError> {
    let (source, text) = (path.display().to_string(), files::read_text(path)?);
    let place = Place::whole(&source);
    let root = from_json(&source, &text)?;
    let plan = if root.get("instances").is_some() {
        Plan::unreckoned(scheduler.name, artifact::planned_vms(&root)?)
    } else {
        serde_json::from_str(&text).map_err(|error| {
            let what = format!("not a plan: {error}");
            let remedy = "give a plan.json of a run, or a stored plan of the artifact";
            InputError::new(&place_of(&source, &text, &error), what, remedy)
        })?
    };
    let unfit = |error: PlanError| {
        InputError::new(&place, error.to_string(), "give a plan made for this experiment")
    };
    plan.check(catalogue, bag).map_err(unfit)?;
    let (plan, again) = plan.reckoned(scheduler, catalogue, bag, checkpoint);
    if again {
        let what =
            "its times contradict the bag's run times, and were computed again from the run times";
        notes.push(format!("{place}: {what}"));
    }
    let (end, deadline) = (plan.makespan, bag.deadline);
    if end > deadline {
        notes.push(format!("{place}: this plan ends at {end}, after the deadline {deadline}"));
    }
    Ok(plan)
}

/// Figures of the plan of a bag, to compare with those of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFigures {
    /// Time from the beginning of the run to the planned end of the last task, boot included.
    pub makespan: Span,
    /// Cost of a run that goes as planned, by the provider's tariff.
    pub bill: Money,
    /// Number of tasks in the plan.
    pub tasks: usize,
    /// Number of tasks in the bag.
    pub of: usize,
}

impl PlannedFigures {
    /// Whether all tasks are in the plan. Tasks that follow others in a workflow are never in the
    /// plan.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.tasks == self.of
    }
}

impl Experiment {
    /// Figures of a plan of this experiment's bag; `None` if it has no bag.
    #[must_use]
    pub fn planned_figures(&self, plan: &Plan) -> Option<PlannedFigures> {
        let config = self.scheduler.as_ref()?;
        Some(PlannedFigures {
            makespan: plan.makespan,
            bill: planned_bill(plan, config, &self.setup),
            tasks: plan.vms.iter().flat_map(|vm| vm.vcpus.iter().flatten()).count(),
            of: self.setup.bag.tasks.len(),
        })
    }
}
