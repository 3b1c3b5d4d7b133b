//! `map.json`: the plans that are stored with the artifact.

use std::collections::BTreeMap;

use dormouse_cloud::Market;
use dormouse_documents::{InputError, Node, instead, read_whole};
use dormouse_model::{PlannedTask, PlannedVm};
use dormouse_units::{Mode, Span, TaskId, Time, TypeName};
use schemars::JsonSchema;
use serde::Deserialize;

/// A plan as the artifact stores it: instances by id, each a map of vCPUs to tasks.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Stored")]
struct ArtifactPlan {
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

/// Beginning and end of a task in a stored plan, in seconds from the plan's beginning.
#[derive(Deserialize, JsonSchema)]
struct StoredTask {
    #[schemars(range(min = 0.0, max = 1e9), example = 0.0)]
    start: f64,
    #[schemars(range(min = 0.0, max = 1e9), example = 0.0)]
    end: f64,
}

/// The VMs of a plan that is stored with the artifact, its `map.json`. The plan's time and cost are
/// left out: the file's header is often that of another plan.
///
/// # Errors
///
/// All that is wrong with the file.
pub fn planned_vms(root: &Node) -> Result<Vec<PlannedVm>, InputError> {
    let file: ArtifactPlan = read_whole(root)?;
    let at = |s: f64| Time::ZERO + Span::from_secs_f64(s).unwrap_or_default();
    let mut vms = Vec::new();
    for (id, vm) in &file.instances {
        let lanes = root.inside(["instances", id.as_str(), "map"]);
        let mut vcpus = BTreeMap::new();
        for (lane, of_lane) in &vm.map {
            let number = lane.strip_prefix("vcpu_").and_then(|n| n.parse::<u32>().ok());
            let number = number.ok_or_else(|| {
                let what = format!("'{lane}' is not the name of a vCPU");
                InputError::new(
                    &lanes.inside([lane.as_str()]).place,
                    what,
                    instead(lane, &["vcpu_0"]),
                )
            })?;
            let mut tasks = Vec::new();
            for (task, times) in of_lane {
                let id = task.parse().map_err(|_| {
                    let what = format!("'{task}' is not the number of a task");
                    InputError::new(
                        &lanes.inside([lane, task].map(String::as_str)).place,
                        what,
                        "write the task's number, counted from 0",
                    )
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
    Ok(vms)
}
