//! Plans to be run: ours, or those stored with the Burst-HADS artifact.

use std::collections::BTreeMap;
use std::path::Path;

use dormouse_cloud::{Catalogue, Market};
use dormouse_policies::{Bag, BagSchedulerConfig, BagSchedulerName, Plan, PlannedTask, PlannedVm};
use dormouse_units::Mode;
use dormouse_units::{Money, Span, TaskId, Time};

use super::document::{self, Node};
use super::reader::Section;
use super::suggest::instead;
use super::{InputError, Place};

/// Reads a plan from a JSON file, and checks that it fits.
pub(crate) fn read(
    path: &Path,
    scheduler: &BagSchedulerConfig,
    catalogue: &Catalogue,
    bag: &Bag,
) -> Result<Plan, InputError> {
    let place = Place::of(&path.display().to_string());
    let root = document::from_json(path)?;
    let theirs = Section::of(&root)?.has("instances");
    let plan = if theirs {
        stored(&root, scheduler.name)?
    } else {
        let text = document::read(path)?;
        serde_json::from_str(&text).map_err(|error| {
            let what = format!("not a plan: {error}");
            InputError::new(
                &place,
                what,
                "give a plan.json of a run, or a stored plan of the artifact",
            )
        })?
    };
    plan.check(catalogue, bag).map_err(|error| {
        InputError::new(&place, error.to_string(), "give a plan made for this experiment")
    })?;
    Ok(plan)
}

/// A plan as the artifact stores it: instances by id, each a map of vCPUs to tasks.
fn stored(root: &Node, scheduler: BagSchedulerName) -> Result<Plan, InputError> {
    let mut section = Section::of(root)?;
    let cost = section.number("expected_cost", 0.0..=1e9)?.unwrap_or(0.0);
    let makespan = section.number("expected_makespan", 0.0..=1e9)?.unwrap_or(0.0);
    let instances = section.section("instances")?;
    let instances = section.need("instances", instances, "{ … }")?;
    let mut vms = Vec::new();
    for node in instances.entries().values() {
        vms.push(stored_vm(node)?);
    }
    #[expect(clippy::cast_possible_truncation, reason = "its range is checked above")]
    let cost = Money::from_nanos((cost * 1e9).round() as i64);
    let makespan = Span::from_secs_f64(makespan).unwrap_or_default();
    Ok(Plan { scheduler, spot_limit: makespan, makespan, cost, evaluations: 0, vms })
}

fn stored_vm(node: &Node) -> Result<PlannedVm, InputError> {
    let mut section = Section::of(node)?;
    let kind = section.text("type")?;
    let kind = section.need("type", kind, "\"c3.large\"")?;
    let markets = [("preemptible", Market::Spot), ("on-demand", Market::OnDemand)];
    let market = section.choice("market", &markets)?;
    let market = section.need("market", market, "\"preemptible\"")?;
    let map = section.section("map")?;
    let map = section.need("map", map, "{ \"vcpu_0\": { … } }")?;
    let mut vcpus = BTreeMap::new();
    for (lane, node) in map.entries() {
        let number: u32 =
            lane.strip_prefix("vcpu_").and_then(|n| n.parse().ok()).ok_or_else(|| {
                let what = format!("'{lane}' is no vCPU");
                InputError::new(&node.place, what, instead(lane, &["vcpu_0"]))
            })?;
        let mut tasks = Vec::new();
        for (task, node) in Section::of(node)?.entries() {
            tasks.push(stored_task(task, node)?);
        }
        tasks.sort_by_key(|t| (t.start, t.task));
        vcpus.insert(number, tasks);
    }
    Ok(PlannedVm { kind: kind.into(), market, vcpus: vcpus.into_values().collect() })
}

fn stored_task(task: &str, node: &Node) -> Result<PlannedTask, InputError> {
    let id = task.parse().map_err(|_| {
        let what = format!("'{task}' is no number of a task");
        InputError::new(&node.place, what, "number the tasks from 0")
    })?;
    let mut section = Section::of(node)?;
    let mut time = |key| -> Result<Time, InputError> {
        let s = section.number(key, 0.0..=1e9)?;
        let s = section.need(key, s, "0.0")?;
        Ok(Time::ZERO + Span::from_secs_f64(s).unwrap_or_default())
    };
    let (start, end) = (time("start")?, time("end")?);
    Ok(PlannedTask { task: TaskId::new(id), start, end, mode: Mode::Burst })
}
