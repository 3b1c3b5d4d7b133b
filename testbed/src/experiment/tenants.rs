//! What work an experiment has: parallel jobs alone, a bag of tasks, or `[[tenant]]`s who share
//! its provider.
//!
//! Each tenant has a workload and a scheduler of its own; the cloud, what it takes away, the seed and how
//! it is run live are the experiment's. One tenant has a bag of tasks and one has parallel jobs.

use std::collections::BTreeMap;

use super::InputError;
use super::batch::KINDS;
use super::document::{Node, Value};
use super::reader::text;
use super::suggest::instead;

/// An experiment of tenants as one of a bag, and the parallel jobs.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The bag's, with the cloud.
    pub(crate) bag: Node,
    /// What stands of the jobs, and nothing else.
    pub(crate) jobs: Node,
}

/// The keys that belong to a tenant where there are some.
const OWN: [&str; 4] = ["workload", "scheduler", "checkpoint", "sharing"];

/// Takes an experiment with tenants apart; `None` if it has none.
///
/// # Errors
///
/// There are others than a bag and parallel jobs, or a key stands outside of its tenant.
pub(crate) fn apart(root: &Node) -> Result<Option<Shared>, InputError> {
    let Value::Table(table) = &root.value else { return Ok(None) };
    let Some(list) = table.get("tenant") else { return Ok(None) };
    let Value::List(tenants) = &list.value else {
        let what = format!("{} is no list of tenants", list.value.what());
        return Err(InputError::new(&list.place, what, "write each as a [[tenant]]"));
    };
    if let Some((key, node)) = table.iter().find(|(key, _)| OWN.contains(&key.as_str())) {
        let what = format!("whose {key} is this? The experiment has tenants");
        return Err(InputError::new(&node.place, what, "move it into its [[tenant]]"));
    }
    let (mut bag, mut jobs) = (None, None);
    for tenant in tenants {
        let Value::Table(own) = &tenant.value else {
            let what = format!("{} is no tenant", tenant.value.what());
            return Err(InputError::new(&tenant.place, what, "write it as a [[tenant]]"));
        };
        if let Some((key, node)) = own.iter().find(|(key, _)| !OWN.contains(&key.as_str())) {
            let what = format!("a tenant has no '{key}'");
            let remedy = format!("it has {}; all else is the experiment's", OWN.join(", "));
            return Err(InputError::new(&node.place, what, remedy));
        }
        let (place, is_jobs) = (&tenant.place, has_jobs(own)?);
        let slot = if is_jobs { &mut jobs } else { &mut bag };
        if slot.replace(own).is_some() {
            let which = if is_jobs { "parallel jobs" } else { "a bag of tasks" };
            let what = format!("a second tenant has {which}");
            let remedy = "put both workloads into one tenant: an experiment has one of each kind";
            return Err(InputError::new(place, what, remedy));
        }
    }
    let (Some(bag), Some(jobs)) = (bag, jobs) else {
        let what = "there is a tenant for one kind of work only";
        let remedy = "write one [[tenant]] with workload.kind = \"bag\" and one with \"jobs\", \
                      \"swf\" or \"model\"; or leave [[tenant]] out";
        return Err(InputError::new(&list.place, what, remedy));
    };
    let node = |table| Node { place: root.place.clone(), value: Value::Table(table) };
    let of_all = table.iter().filter(|(key, _)| key.as_str() != "tenant");
    let of_bag = of_all.chain(bag).map(|(key, node)| (key.clone(), node.clone()));
    Ok(Some(Shared { bag: node(of_bag.collect()), jobs: node(jobs.clone()) }))
}

/// Whether an experiment is one of parallel jobs alone, by its `workload.kind`: where nothing is
/// said, or there are tenants, it has a bag.
///
/// # Errors
///
/// There is no such kind.
pub(crate) fn are_jobs_alone(root: &Node) -> Result<bool, InputError> {
    let inside = |node: &'_ Node, key: &str| match &node.value {
        Value::Table(table) => table.get(key).cloned(),
        _ => None,
    };
    let Some(kind) = inside(root, "workload").and_then(|w| inside(&w, "kind")) else {
        return Ok(false);
    };
    match text(&kind)? {
        "bag" => Ok(false),
        word if KINDS.contains(&word) => Ok(true),
        word => {
            let what = format!("there is no kind '{word}'");
            let known: Vec<_> = ["bag"].into_iter().chain(KINDS).collect();
            Err(InputError::new(&kind.place, what, instead(word, &known)))
        }
    }
}

/// Whether a tenant has parallel jobs, by its `workload.kind`.
fn has_jobs(tenant: &BTreeMap<String, Node>) -> Result<bool, InputError> {
    let Some(Node { value: Value::Table(workload), .. }) = tenant.get("workload") else {
        return Ok(false);
    };
    let kind = workload.get("kind").map(text).transpose()?;
    Ok(kind.is_some_and(|kind| KINDS.contains(&kind)))
}
