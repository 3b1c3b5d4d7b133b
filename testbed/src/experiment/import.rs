//! The two JSON files of the Burst-HADS artifact, as they are.

use std::collections::BTreeMap;
use std::path::Path;

use dormouse_cloud::{Burstable, InstanceType, Limits};
use dormouse_policies::Task;
use dormouse_units::{Bytes, Credits, Ppm, Price, Span, TypeName};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::cloud::Types;
use super::conform::{conform, read};
use super::document::{self, Node};
use super::error::Mistakes;
use super::{InputError, catalogue, schema};

/// Reads a JSON file as a `T`: what is in it besides is for others.
pub(crate) fn file<T: JsonSchema + DeserializeOwned>(path: &Path) -> Result<(T, Node), InputError> {
    let root = document::from_json(path)?;
    let mut found = Mistakes::default();
    conform(&schema::of::<T>(), &root, &mut found);
    let value = read(&root, &mut found);
    Ok((found.or(value)?, root))
}

#[derive(Deserialize, JsonSchema)]
struct JobFile {
    tasks: BTreeMap<String, JobTask>,
}

#[derive(Deserialize, JsonSchema)]
struct JobTask {
    /// 10^6 bytes.
    #[schemars(range(min = 0.0, max = 1e9), example = 10.06)]
    memory: f64,
    command: Option<String>,
    /// Seconds, by instance type.
    runtime: BTreeMap<TypeName, Seconds>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, transparent)]
struct Seconds(
    #[schemars(range(max = 1e9), extend("exclusiveMinimum" = 0.0), example = 349.0)] f64,
);

/// The tasks of a `job.json`: memory in 10^6 bytes, run times in seconds.
pub(crate) fn job(path: &Path) -> Result<Vec<Task>, InputError> {
    let (file, root) = file::<JobFile>(path)?;
    let mut found = Mistakes::default();
    let place = |key: &str| root.place_of("tasks").key(key);
    let mut numbered = BTreeMap::new();
    for (key, task) in &file.tasks {
        match key.parse::<usize>() {
            Ok(number) => drop(numbered.insert(number, (key, task))),
            Err(_) => {
                let what = format!("'{key}' is no number of a task");
                found.add(&place(key), what, "number the tasks from 0");
            }
        }
    }
    if file.tasks.is_empty() {
        found.add(root.place_of("tasks"), "there are no tasks", "give at least one");
    }
    for (expected, (number, (key, _))) in numbered.iter().enumerate() {
        if expected != *number {
            let what = format!("task {expected} is missing before task {number}");
            found.add(&place(key), what, "number the tasks from 0 without gaps");
            break;
        }
    }
    let tasks = numbered.iter().map(|(number, (_, task))| task_of(*number, task)).collect();
    found.or(Some(tasks))
}

fn task_of(number: usize, task: &JobTask) -> Task {
    let words = task.command.as_deref().unwrap_or_default().split_whitespace();
    let size = words.into_iter().nth(2).unwrap_or("task");
    let seconds = |(kind, Seconds(s)): (&TypeName, &Seconds)| {
        (kind.clone(), Span::from_secs_f64(*s).unwrap_or_default())
    };
    let runtime = task.runtime.iter().map(seconds).collect();
    Task { name: format!("{size}-{number}"), memory: rounded(task.memory * 1e6), runtime }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the schemas have their ranges"
)]
fn rounded(bytes: f64) -> Bytes {
    Bytes::new(bytes.round() as u64)
}

#[derive(Deserialize, JsonSchema)]
struct EnvFile {
    instances: BTreeMap<TypeName, EnvType>,
}

#[derive(Deserialize, JsonSchema)]
struct EnvType {
    #[schemars(range(min = 0.001, max = 1e9), example = 22.09)]
    gflops: f64,
    /// GiB.
    #[schemars(range(min = 0.001, max = 1e6), example = 3.75)]
    memory: f64,
    #[schemars(range(min = 1, max = 4096), example = 2)]
    vcpu: u32,
    prices: EnvPrices,
    restrictions: EnvRestrictions,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct EnvPrices {
    on_demand: Option<Price>,
    preemptible: Option<Price>,
}

#[derive(Deserialize, JsonSchema)]
struct EnvRestrictions {
    limits: EnvLimits,
    markets: EnvMarkets,
    burstable: Option<EnvBurstable>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct EnvLimits {
    #[schemars(range(max = 100_000))]
    on_demand: Option<u32>,
    #[schemars(range(max = 100_000))]
    preemptible: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct EnvMarkets {
    on_demand: Option<YesNo>,
    preemptible: Option<YesNo>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum YesNo {
    Yes,
    No,
}

#[derive(Deserialize, JsonSchema)]
struct EnvBurstable {
    burstable: Option<YesNo>,
    /// 0 where it isn't burstable.
    #[schemars(range(max = 100_000), example = 36)]
    cpu_credit_rate: Option<u64>,
    /// Per cent; 0 where it isn't burstable.
    #[schemars(range(min = 0.0, max = 100.0), example = 20)]
    baseline: Option<f64>,
}

/// The instance types of an `env.json`: those on offer in at least one market.
pub(crate) fn env(path: &Path) -> Result<Types, InputError> {
    let (file, root) = file::<EnvFile>(path)?;
    let mut types = Types::new();
    for (name, kind) in &file.instances {
        let burstable = burstable_of(kind).map_err(|key| {
            let place = root.place_of("instances").key(name.as_str()).key("restrictions.burstable");
            let what = format!("'{key}' is missing or 0, and the type is burstable");
            InputError::new(&place, what, "give cpu_credit_rate and baseline, both above 0")
        })?;
        types.extend(instance_type(name, kind, burstable).map(|kind| (name.clone(), kind)));
    }
    if types.is_empty() {
        let what = "no instance type is offered in any market";
        let remedy = "set a market to \"yes\" and its limit above 0";
        return Err(InputError::new(root.place_of("instances"), what, remedy));
    }
    Ok(types)
}

fn instance_type(
    name: &TypeName,
    kind: &EnvType,
    burstable: Option<Burstable>,
) -> Option<InstanceType> {
    let EnvRestrictions { limits, markets, .. } = &kind.restrictions;
    let offer = |open: Option<YesNo>, price: Option<Price>, limit: Option<u32>| {
        let price = price.filter(|_| open == Some(YesNo::Yes));
        (price, price.and(limit).unwrap_or(0))
    };
    let (on_demand, on_demand_limit) =
        offer(markets.on_demand, kind.prices.on_demand, limits.on_demand);
    let (spot, spot_limit) =
        offer(markets.preemptible, kind.prices.preemptible, limits.preemptible);
    if on_demand_limit + spot_limit == 0 {
        return None;
    }
    Some(InstanceType {
        name: name.clone(),
        vcpus: kind.vcpu,
        memory: rounded(kind.memory * f64::from(1 << 30)),
        disk: Bytes::ZERO,
        mflops: rounded(kind.gflops * 1e3).get(),
        on_demand,
        spot,
        limits: Limits { spot: spot_limit, on_demand: on_demand_limit },
        burstable,
    })
}

/// How it earns credits, if it does.
///
/// # Errors
///
/// The key that is missing or 0.
fn burstable_of(kind: &EnvType) -> Result<Option<Burstable>, &'static str> {
    let said = kind.restrictions.burstable.as_ref();
    let Some(said) = said.filter(|said| said.burstable == Some(YesNo::Yes)) else {
        return Ok(None);
    };
    let rate = said.cpu_credit_rate.filter(|rate| *rate > 0).ok_or("cpu_credit_rate")?;
    let percent = said.baseline.filter(|percent| *percent > 0.0).ok_or("baseline")?;
    let baseline = Ppm::from_f64(percent / 100.0).unwrap_or(Ppm::ONE);
    Ok(Some(catalogue::burstable(baseline, Credits::whole(rate))))
}
