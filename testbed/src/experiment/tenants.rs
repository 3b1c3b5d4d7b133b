//! What work an experiment has: parallel jobs alone, a bag of tasks, or `[[tenant]]`s who share
//! its provider.
//!
//! Each tenant has a workload and a scheduler of its own; the cloud, what it takes away, the seed and how
//! it is run live are the experiment's. One tenant has a bag of tasks and one has parallel jobs.

use dormouse_documents::{Mistakes, Node, Value, missing};

/// The sections of each work of an experiment.
#[derive(Debug)]
pub(crate) struct Work {
    /// Of the bag, with all that is the experiment's.
    pub(crate) bag: Option<Node>,
    /// Of the parallel jobs, and nothing else where they have a tenant of their own.
    pub(crate) jobs: Option<Node>,
}

/// The keys that belong to a tenant where there are some.
const OWN: [&str; 4] = ["workload", "scheduler", "checkpoint", "sharing"];

/// What is not said of an experiment and goes without saying: a workload is a bag, and its scheduler
/// the first of the list.
pub(crate) fn complete(root: &mut Node) {
    let Value::Table(table) = &mut root.value else { return };
    if let Some(Node { value: Value::List(tenants), .. }) = table.get_mut("tenant") {
        tenants.iter_mut().for_each(complete);
    }
    let Some(workload) = table.get_mut("workload") else { return };
    name(workload, "kind", "bag");
    if workload.text("kind") == Some("bag")
        && let Some(scheduler) = table.get_mut("scheduler")
    {
        let first = dormouse_policies::BagSchedulerName::default();
        name(scheduler, "name", first.as_str());
    }
}

fn name(section: &mut Node, key: &str, word: &str) {
    let place = section.place.key(key);
    let Value::Table(table) = &mut section.value else { return };
    let word = || Node { place, value: Value::Text(word.to_owned()) };
    table.entry(key.to_owned()).or_insert_with(word);
}

/// Takes an experiment apart.
pub(crate) fn work(root: &Node, found: &mut Mistakes) -> Option<Work> {
    let Value::Table(table) = &root.value else { return None };
    let Some(list) = table.get("tenant") else { return alone(root, found) };
    let Value::List(tenants) = &list.value else { return None };
    for (key, node) in table.iter().filter(|(key, _)| OWN.contains(&key.as_str())) {
        let what = format!("whose {key} is this? The experiment has tenants");
        found.add(&node.place, what, "move it into its [[tenant]]");
    }
    let (mut bag, mut jobs) = (None, None);
    for tenant in tenants {
        let Value::Table(own) = &tenant.value else { return None };
        let is_jobs = has_jobs(tenant)?;
        let slot = if is_jobs { &mut jobs } else { &mut bag };
        if slot.replace((tenant, own)).is_some() {
            let which = if is_jobs { "parallel jobs" } else { "a bag of tasks" };
            let what = format!("a second tenant has {which}");
            let remedy = "put both workloads into one tenant: an experiment has one of each kind";
            found.add(&tenant.place, what, remedy);
        }
    }
    let (Some((bag, of_bag)), Some((jobs, _))) = (bag, jobs) else {
        let what = "there is a tenant for one kind of work only";
        let remedy = "write one [[tenant]] with workload.kind = \"bag\" and one with \"jobs\", \
                      \"swf\" or \"model\"; or leave [[tenant]] out";
        found.add(&list.place, what, remedy);
        return None;
    };
    not_with(bag, &["sharing"], "a bag of tasks has no machine whose processors are shared", found);
    // Jobs that are written down need it anyway.
    if jobs.get("workload").is_some_and(|workload| {
        workload.get("processors").is_none() && workload.text("kind") != Some("jobs")
    }) {
        let what = "nobody says how many processors the jobs' machine has";
        let remedy = "add processors to the tenant's workload, such as: processors = 16";
        found.add(&jobs.place, what, remedy);
    }
    let of_all = table.iter().filter(|(key, _)| key.as_str() != "tenant");
    let all = of_all.chain(of_bag).map(|(key, node)| (key.clone(), node.clone())).collect();
    let bag = Node { place: root.place.clone(), value: Value::Table(all) };
    Some(Work { bag: Some(bag), jobs: Some(jobs.clone()) })
}

/// An experiment that has one kind of work.
fn alone(root: &Node, found: &mut Mistakes) -> Option<Work> {
    if root.get("workload").is_none() {
        missing(root, "workload", "{ kind = \"bag\", name = \"j60\" }", found);
        return None;
    }
    if has_jobs(root)? {
        let why = "parallel jobs alone have a machine of their own, which nobody takes away";
        not_with(root, &["cloud", "interruption"], why, found);
        return Some(Work { bag: None, jobs: Some(root.clone()) });
    }
    let why = "a bag of tasks has no machine whose processors are shared";
    not_with(root, &["sharing"], why, found);
    Some(Work { bag: Some(root.clone()), jobs: None })
}

/// Says of each of these keys that is given why it can't be.
fn not_with(node: &Node, keys: &[&str], why: &str, found: &mut Mistakes) {
    for given in keys.iter().filter_map(|key| node.get(key)) {
        found.add(&given.place, why, "take it out");
    }
}

/// Whether it has parallel jobs, by its `workload.kind`; `None` if there is no such kind.
fn has_jobs(node: &Node) -> Option<bool> {
    match node.get("workload")?.text("kind")? {
        "bag" => Some(false),
        "swf" | "model" | "jobs" => Some(true),
        _ => None,
    }
}
