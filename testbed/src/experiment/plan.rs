//! Plans to be run: ours, or those stored with the Burst-HADS artifact.

use std::collections::BTreeMap;
use std::path::Path;

use dormouse_cloud::{Catalogue, Market};
use dormouse_policies::{
    Bag, BagSchedulerConfig, BagSchedulerName, CheckpointConfig, Plan, PlanError, PlannedTask,
    PlannedVm,
};
use dormouse_units::{Mode, Money, Span, TaskId, Time, TypeName};
use schemars::JsonSchema;
use serde::Deserialize;

use super::document;
use super::import::file;
use super::suggest::instead;
use super::{InputError, Place};

/// What a plan is run on.
pub(crate) struct Given<'a> {
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) bag: &'a Bag,
    pub(crate) checkpoint: &'a CheckpointConfig,
}

/// Reads a plan from a JSON file, and checks that it fits. What is odd about it is told in `notes`.
pub(crate) fn read(
    path: &Path,
    scheduler: &BagSchedulerConfig,
    given: &Given<'_>,
    notes: &mut Vec<String>,
) -> Result<Plan, InputError> {
    let place = Place::of(&path.display().to_string());
    let plan = if document::from_json(path)?.get("instances").is_some() {
        stored(path, scheduler.name)?
    } else {
        let text = document::read(path)?;
        serde_json::from_str(&text).map_err(|error| {
            let what = format!("not a plan: {error}");
            let remedy = "give a plan.json of a run, or a stored plan of the artifact";
            InputError::new(&place, what, remedy)
        })?
    };
    let unfit = |error: PlanError| {
        InputError::new(&place, error.to_string(), "give a plan made for this experiment")
    };
    plan.check(given.catalogue, given.bag).map_err(unfit)?;
    let (plan, again) = plan.reckoned(scheduler, given.catalogue, given.bag, given.checkpoint);
    if again {
        let what = "its times contradict the bag's run times and were made again from these";
        notes.push(format!("{place}: {what}"));
    }
    let (end, deadline) = (plan.makespan, given.bag.deadline);
    if end > deadline {
        notes.push(format!("{place}: this plan ends at {end}, after the deadline {deadline}"));
    }
    Ok(plan)
}

/// A plan as the artifact stores it: instances by id, each a map of vCPUs to tasks.
#[derive(Deserialize, JsonSchema)]
struct Stored {
    instances: BTreeMap<String, StoredVm>,
}

#[derive(Deserialize, JsonSchema)]
struct StoredVm {
    #[serde(rename = "type")]
    kind: TypeName,
    market: StoredMarket,
    map: BTreeMap<String, BTreeMap<String, StoredTask>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum StoredMarket {
    Preemptible,
    OnDemand,
}

/// Seconds from the beginning.
#[derive(Deserialize, JsonSchema)]
struct StoredTask {
    #[schemars(range(min = 0.0, max = 1e9), example = 0.0)]
    start: f64,
    #[schemars(range(min = 0.0, max = 1e9), example = 0.0)]
    end: f64,
}

fn stored(path: &Path, scheduler: BagSchedulerName) -> Result<Plan, InputError> {
    let (file, root) = file::<Stored>(path)?;
    let at = |s: f64| Time::ZERO + Span::from_secs_f64(s).unwrap_or_default();
    let mut vms = Vec::new();
    for (id, vm) in &file.instances {
        let place = root.place_of("instances").key(id).key("map");
        let mut vcpus = BTreeMap::new();
        for (lane, of_lane) in &vm.map {
            let number = lane.strip_prefix("vcpu_").and_then(|n| n.parse::<u32>().ok());
            let number = number.ok_or_else(|| {
                let what = format!("'{lane}' is no vCPU");
                InputError::new(&place.key(lane), what, instead(lane, &["vcpu_0"]))
            })?;
            let mut tasks = Vec::new();
            for (task, times) in of_lane {
                let id = task.parse().map_err(|_| {
                    let what = format!("'{task}' is no number of a task");
                    InputError::new(&place.key(lane).key(task), what, "number the tasks from 0")
                })?;
                let (start, end) = (at(times.start), at(times.end));
                tasks.push(PlannedTask { task: TaskId::new(id), start, end, mode: Mode::Burst });
            }
            tasks.sort_by_key(|t| (t.start, t.task));
            vcpus.insert(number, tasks);
        }
        let market = match vm.market {
            StoredMarket::Preemptible => Market::Spot,
            StoredMarket::OnDemand => Market::OnDemand,
        };
        let kind = vm.kind.clone();
        vms.push(PlannedVm { kind, market, vcpus: vcpus.into_values().collect() });
    }
    // Its header is often of another plan: what it takes and costs is reckoned from the tasks.
    let (makespan, cost) = (Span::ZERO, Money::ZERO);
    Ok(Plan { scheduler, spot_limit: makespan, makespan, cost, evaluations: 0, vms })
}
