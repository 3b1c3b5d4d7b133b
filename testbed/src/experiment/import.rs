//! The two JSON files of the Burst-HADS artifact, as they are.

use std::collections::BTreeMap;

use dormouse_cloud::{InstanceType, Limits};
use dormouse_policies::Task;
use dormouse_units::{Bytes, Credits, Ppm, TypeName};

use super::document::{self, Node};
use super::reader::{Section, seconds, text};
use super::{InputError, catalogue};
use std::path::{Path, PathBuf};

/// The file that `node` names: relative to the experiment file that names it.
pub(crate) fn path_of(node: &Node) -> Result<PathBuf, InputError> {
    let path = Path::new(text(node)?);
    let source = Path::new(&*node.place.source);
    // Options of the command line name paths from where one stands.
    let folder = if node.place.at.is_some() { document::folder_of(source) } else { PathBuf::new() };
    Ok(folder.join(path))
}

/// The tasks of a `job.json`: memory in 10^6 bytes, run times in seconds.
pub(crate) fn job(node: &Node) -> Result<Vec<Task>, InputError> {
    let root = document::from_json(&path_of(node)?)?;
    let mut section = Section::of(&root)?;
    let tasks = section.section("tasks")?;
    let tasks = section.need("tasks", tasks, "{ \"0\": { … } }")?;
    let mut numbered = BTreeMap::new();
    for (key, node) in tasks.entries() {
        let number: usize = key.parse().map_err(|_| {
            let what = format!("'{key}' is no number of a task");
            InputError::new(&node.place, what, "number the tasks from 0")
        })?;
        numbered.insert(number, node);
    }
    if numbered.is_empty() {
        return Err(InputError::new(tasks.place(), "there are no tasks", "give at least one"));
    }
    numbered
        .into_iter()
        .enumerate()
        .map(|(expected, (number, node))| {
            if expected == number {
                return task(number, node);
            }
            let what = format!("task {expected} is missing before task {number}");
            Err(InputError::new(&node.place, what, "number the tasks from 0 without gaps"))
        })
        .collect()
}

fn task(number: usize, node: &Node) -> Result<Task, InputError> {
    let mut section = Section::of(node)?;
    let memory = section.number("memory", 0.0..=1e9)?;
    let memory = section.need("memory", memory, "10.06")?;
    let size = section.text("command")?.and_then(|c| c.split_whitespace().nth(2)).unwrap_or("task");
    let given = section.section("runtime")?;
    let given = section.need("runtime", given, "{ \"c3.large\": 167.0 }")?;
    let mut runtime = BTreeMap::new();
    for (kind, node) in given.entries() {
        runtime.insert(TypeName::from(kind.as_str()), seconds(node)?);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "its range is checked above"
    )]
    let memory = Bytes::new((memory * 1e6).round() as u64);
    Ok(Task { name: format!("{size}-{number}"), memory, runtime })
}

/// The instance types of an `env.json`: those on offer in at least one market.
pub(crate) fn env(node: &Node) -> Result<BTreeMap<TypeName, InstanceType>, InputError> {
    let root = document::from_json(&path_of(node)?)?;
    let mut section = Section::of(&root)?;
    let instances = section.section("instances")?;
    let instances = section.need("instances", instances, "{ \"c3.large\": { … } }")?;
    let mut types = BTreeMap::new();
    for (name, node) in instances.entries() {
        if let Some(kind) = instance_type(name, node)? {
            types.insert(kind.name.clone(), kind);
        }
    }
    if types.is_empty() {
        let what = "no instance type is offered in any market";
        return Err(InputError::new(
            instances.place(),
            what,
            "set a market to \"yes\" and its limit above 0",
        ));
    }
    Ok(types)
}

fn instance_type(name: &str, node: &Node) -> Result<Option<InstanceType>, InputError> {
    let mut section = Section::of(node)?;
    let gflops = section.number("gflops", 0.001..=1e9)?;
    let gflops = section.need("gflops", gflops, "22.09")?;
    let memory = section.number("memory", 0.001..=1e6)?;
    let memory = section.need("memory", memory, "3.75")?;
    let vcpus = section.count("vcpu", 1..=4096)?;
    let vcpus = section.need("vcpu", vcpus, "2")?;
    let prices = section.section("prices")?;
    let mut prices = section.need("prices", prices, "{ \"on-demand\": 0.105 }")?;
    let restrictions = section.section("restrictions")?;
    let mut restrictions = section.need("restrictions", restrictions, "{ \"limits\": { … } }")?;
    let limits = restrictions.section("limits")?;
    let mut limits = restrictions.need("limits", limits, "{ \"on-demand\": 3 }")?;
    let markets = restrictions.section("markets")?;
    let mut markets = restrictions.need("markets", markets, "{ \"on-demand\": \"yes\" }")?;

    let mut offer = |market: &'static str| -> Result<_, InputError> {
        let open = markets.choice(market, &[("yes", true), ("no", false)])?.unwrap_or(false);
        let price = prices.price(market)?.filter(|_| open);
        let limit = limits.count(market, 0..=100_000)?.unwrap_or(0);
        Ok((price, if price.is_some() { limit } else { 0 }))
    };
    let ((on_demand, on_demand_limit), (spot, spot_limit)) =
        (offer("on-demand")?, offer("preemptible")?);
    if on_demand_limit + spot_limit == 0 {
        return Ok(None);
    }
    let burstable = match restrictions.section("burstable")? {
        Some(burstable) => read_burstable(burstable)?,
        None => None,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranges are checked above"
    )]
    let (memory, mflops) =
        (Bytes::new((memory * f64::from(1 << 30)).round() as u64), (gflops * 1e3).round() as u64);
    let limits = Limits { spot: spot_limit, on_demand: on_demand_limit };
    Ok(Some(InstanceType {
        name: name.into(),
        vcpus,
        memory,
        disk: Bytes::ZERO,
        mflops,
        on_demand,
        spot,
        limits,
        burstable,
    }))
}

fn read_burstable(
    mut section: Section<'_>,
) -> Result<Option<dormouse_cloud::Burstable>, InputError> {
    if !section.choice("burstable", &[("yes", true), ("no", false)])?.unwrap_or(false) {
        return Ok(None);
    }
    let rate = section.whole("cpu_credit_rate", 1..=100_000)?;
    let rate = section.need("cpu_credit_rate", rate, "36")?;
    let percent = section.number("baseline", 1.0..=100.0)?;
    let percent = section.need("baseline", percent, "20")?;
    let baseline = Ppm::from_f64(percent / 100.0).unwrap_or(Ppm::ONE);
    Ok(Some(catalogue::burstable(baseline, Credits::whole(rate))))
}
