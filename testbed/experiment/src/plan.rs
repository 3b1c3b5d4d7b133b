//! Plans to run: ours, or those stored with the Burst-HADS artifact.

use std::path::Path;

use dormouse_cloud::Catalogue;
use dormouse_documents::{InputError, Place, from_json, place_of};
use dormouse_model::{Bag, CheckpointConfig};
use dormouse_policies::{BagSchedulerConfig, Plan, PlanError};
use dormouse_workload::artifact;

use super::files;

/// Reads a plan from a JSON file, and checks that it fits. Oddities are added to `notes`.
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
        let what = "its times contradict the bag's run times and were made again from these";
        notes.push(format!("{place}: {what}"));
    }
    let (end, deadline) = (plan.makespan, bag.deadline);
    if end > deadline {
        notes.push(format!("{place}: this plan ends at {end}, after the deadline {deadline}"));
    }
    Ok(plan)
}
