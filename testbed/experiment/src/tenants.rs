//! Work of an experiment: parallel jobs alone, a bag of tasks, requests for VMs, or `[[tenant]]`s
//! that share its provider.
//!
//! Each tenant has a workload and, except for requests, a scheduler of its own; the cloud, the
//! interruptions, the seed and the live settings are the experiment's. No two tenants have the same
//! kind of work.

use dormouse_documents::{Mistakes, Node, Value, missing};
use dormouse_units::Span;

/// Sections of an experiment's work, one for each kind of work.
#[derive(Debug, Default)]
pub(crate) struct WorkSections {
    /// Sections that describe the bag of tasks, together with the experiment's sections that apply to all tenants; `None`:
    /// the experiment has no bag.
    pub(crate) bag: Option<Node>,
    /// Sections that describe the parallel jobs, without the experiment's other sections if a tenant has the jobs; `None`:
    /// there are no jobs.
    pub(crate) jobs: Option<Node>,
    /// Sections that describe the requests for VMs, together with the experiment's sections that apply to all tenants;
    /// `None`: there are no requests.
    pub(crate) requests: Option<Node>,
    /// Deadline of a bag whose tasks are left out, since expected numbers of interruptions are given per deadline.
    pub(crate) deadline: Option<Span>,
}

/// A kind of a tenant's work: a bag, parallel jobs, or requests for VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TenantKind {
    Bag,
    Jobs,
    Requests,
}

impl TenantKind {
    /// The kind of work as a noun in a sentence.
    const fn words(self) -> &'static str {
        match self {
            Self::Bag => "a bag of tasks",
            Self::Jobs => "parallel jobs",
            Self::Requests => "requests for VMs",
        }
    }

    /// Keys that can't be combined with the kind, and the reason.
    const fn without(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Bag => {
                (&["sharing"], "a bag of tasks has no machine whose processors are shared")
            }
            Self::Jobs => (&[], ""),
            Self::Requests => (
                &["scheduler", "checkpoint", "sharing"],
                "VMs that are requested are placed by cloud.placement, and nothing is run on them",
            ),
        }
    }
}

/// Keys of an experiment file that belong to a `[[tenant]]` if the experiment has tenants.
const OWN: [&str; 4] = ["workload", "scheduler", "checkpoint", "sharing"];

/// Adds defaults to an experiment: the kind of a workload is a bag, and a bag's scheduler is the first of the built-in
/// ones.
pub(crate) fn complete(root: &mut Node) {
    let Value::Table(table) = &mut root.value else { return };
    if let Some(Node { value: Value::List(tenants), .. }) = table.get_mut("tenant") {
        tenants.iter_mut().for_each(complete);
    }
    let Some(workload) = table.get_mut("workload") else { return };
    set_default_name(workload, "kind", "bag");
    if workload.text("kind") == Some("bag")
        && let Some(scheduler) = table.get_mut("scheduler")
    {
        let first = dormouse_policies::BagSchedulerName::default();
        set_default_name(scheduler, "name", first.as_str());
    }
}

fn set_default_name(section: &mut Node, key: &str, word: &str) {
    let place = section.place.key(key);
    let Value::Table(table) = &mut section.value else { return };
    let word = || Node { place, value: Value::Text(word.to_owned()) };
    table.entry(key.to_owned()).or_insert_with(word);
}

/// Whether the key at a path describes the work of an experiment, and not its cloud.
pub(crate) fn is_of_work(path: &str) -> bool {
    let section = path.split(['.', '[']).next().unwrap_or_default();
    section == "tenant" || OWN.contains(&section)
}

/// Removes all sections that describe work; the cloud, its interruptions and the seed are left.
pub(crate) fn drop_work(root: &mut Node) {
    let Value::Table(table) = &mut root.value else { return };
    table.retain(|key, _| key != "tenant" && !OWN.contains(&key.as_str()));
}

/// Splits an experiment into the sections of each kind of work.
pub(crate) fn work(root: &Node, found: &mut Mistakes) -> Option<WorkSections> {
    let Value::Table(table) = &root.value else { return None };
    let Some(list) = table.get("tenant") else { return work_without_tenants(root, found) };
    let Value::List(tenants) = &list.value else { return None };
    for (key, node) in table.iter().filter(|(key, _)| OWN.contains(&key.as_str())) {
        let what = format!("whose {key} is this? The experiment has tenants");
        found.add(&node.place, what, "move it into its [[tenant]]");
    }
    let mut own: Vec<(TenantKind, &Node)> = Vec::new();
    for tenant in tenants {
        let kind = kind_of_work(tenant)?;
        if own.iter().any(|(other, _)| *other == kind) {
            let what = format!("a second tenant has {}", kind.words());
            let remedy = "put both workloads into one tenant: an experiment has one of each kind";
            found.add(&tenant.place, what, remedy);
        }
        let (keys, why) = kind.without();
        not_with(tenant, keys, why, found);
        own.push((kind, tenant));
    }
    if let [_] = own[..] {
        let what = "there is a tenant for one kind of work only";
        let remedy = "write a [[tenant]] with another workload.kind (\"bag\"; \"jobs\", \"swf\" or \
                      \"model\"; \"requests\"), or leave [[tenant]] out";
        found.add(&list.place, what, remedy);
        return None;
    }
    let of = |kind| own.iter().find(|(of, _)| *of == kind).map(|(_, tenant)| *tenant);
    let jobs = of(TenantKind::Jobs);
    // Listed jobs need the key in any case.
    if let Some(jobs) = jobs
        && jobs.get("workload").is_some_and(|workload| {
            workload.get("processors").is_none() && workload.text("kind") != Some("jobs")
        })
    {
        let what = "the number of processors of the jobs' machine is not given";
        let remedy = "add processors to the tenant's workload, such as: processors = 16";
        found.add(&jobs.place, what, remedy);
    }
    // A tenant's sections with all of the experiment's.
    let whole = |tenant: &Node| {
        let Value::Table(own) = &tenant.value else { return tenant.clone() };
        let of_all = table.iter().filter(|(key, _)| key.as_str() != "tenant");
        let all = of_all.chain(own).map(|(key, node)| (key.clone(), node.clone())).collect();
        Node { place: root.place.clone(), value: Value::Table(all) }
    };
    let (bag, requests) = (of(TenantKind::Bag).map(whole), of(TenantKind::Requests).map(whole));
    Some(WorkSections { bag, jobs: jobs.cloned(), requests, deadline: None })
}

/// Sections of the work of an experiment that has no tenants.
fn work_without_tenants(root: &Node, found: &mut Mistakes) -> Option<WorkSections> {
    if root.get("workload").is_none() {
        missing(root, "workload", "{ kind = \"bag\", name = \"j60\" }", found);
        return None;
    }
    let kind = kind_of_work(root)?;
    let (keys, why) = kind.without();
    not_with(root, keys, why, found);
    let is = |of| (kind == of).then(|| root.clone());
    let work = WorkSections {
        bag: is(TenantKind::Bag),
        jobs: is(TenantKind::Jobs),
        requests: is(TenantKind::Requests),
        deadline: None,
    };
    if work.jobs.is_some() {
        let why = "this applies to VMs, but parallel jobs alone have a machine of their own, which is never interrupted";
        not_with(root, &["cloud", "interruption"], why, found);
    }
    Some(work)
}

/// Adds a mistake with the reason `why` for each of the keys `keys` that the table at `node` has.
fn not_with(node: &Node, keys: &[&str], why: &str, found: &mut Mistakes) {
    for given in keys.iter().filter_map(|key| node.get(key)) {
        found.add(&given.place, why, "take it out");
    }
}

/// Kind of a tenant's work, from `workload.kind`; `None` if there is no kind of that name.
fn kind_of_work(node: &Node) -> Option<TenantKind> {
    match node.get("workload")?.text("kind")? {
        "bag" => Some(TenantKind::Bag),
        "swf" | "model" | "jobs" => Some(TenantKind::Jobs),
        "requests" => Some(TenantKind::Requests),
        _ => None,
    }
}
