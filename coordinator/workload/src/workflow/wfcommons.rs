//! Reader of WfCommons' JSON: WfFormat 1.0 to 1.4, where a task has all its properties in one
//! entry, and 1.5, where specification and execution are apart. Until 1.3 run times and memory have
//! other keys, and 1.0 calls tasks jobs.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_documents::{Mistakes, Node, Value, conform, schema_of};
use dormouse_units::{Bytes, Span, TaskId};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Workflow, WorkflowCommand, WorkflowTask};

/// The fields of a task that are read, of either version of the format.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "Entry")]
struct WfTask {
    name: Option<String>,
    id: Option<String>,
    parents: Vec<String>,
    children: Vec<String>,
    files: Vec<WfFile>,
    input_files: Vec<String>,
    output_files: Vec<String>,
    runtime_in_seconds: Option<f64>,
    /// Run time of the task in seconds, in versions of the format up to 1.3.
    runtime: Option<f64>,
    memory_in_bytes: Option<f64>,
    /// Memory of the task in kilobytes, in versions of the format up to 1.3.
    memory: Option<f64>,
    cores: Option<f64>,
    core_count: Option<f64>,
    command: Option<CommandEntry>,
}

/// A file of a task (1.4).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "FileEntry")]
struct WfFile {
    name: Option<String>,
    id: Option<String>,
    link: String,
}

/// The command that a task ran.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CommandEntry {
    program: String,
    arguments: Vec<String>,
}

/// Reads an instance into a workflow; mistakes are added to `found`.
pub(super) fn read(root: &Node, found: &mut Mistakes) -> Workflow {
    let of_1_5 = root.inside(["workflow", "specification"]);
    let is_1_5 = root.get("workflow").is_some_and(|inside| inside.get("specification").is_some());
    let (tasks, executed) = match (is_1_5, root.get("workflow")) {
        (true, Some(inside)) => {
            (of_1_5.get("tasks"), inside.get("execution").and_then(|ran| ran.get("tasks")))
        }
        (_, inside) => {
            (inside.and_then(|inside| inside.get("tasks").or_else(|| inside.get("jobs"))), None)
        }
    };
    let Some(tasks) = tasks else {
        let what = "there is no list of tasks in 'workflow'";
        found.add(&root.place, what, "give workflow.tasks, or workflow.specification.tasks of 1.5");
        return Workflow::default();
    };
    let entries = task_entries(tasks, found);
    let mut ran: BTreeMap<String, WfTask> = BTreeMap::new();
    for (_, entry) in executed.map(|node| self::task_entries(node, found)).unwrap_or_default() {
        if let Some(id) = entry.id.clone().or_else(|| entry.name.clone()) {
            ran.insert(id, entry);
        }
    }
    let named = TaskNames::new(&entries, found);
    let after = predecessors_of_tasks(&entries, &named, found);
    let task = |((node, entry), after): ((&Node, WfTask), BTreeSet<TaskId>)| {
        let name = task_name(&entry);
        let ran = entry.id.as_ref().and_then(|id| ran.get(id)).or_else(|| ran.get(&name));
        task_of(node, (name, entry), ran, after, found)
    };
    let tasks = entries.into_iter().zip(after).map(task).collect();
    let left_out = unknown_version(root).into_iter().collect();
    Workflow { tasks, left_out, makespan: recorded_makespan(root) }
}

/// Length of the run that was recorded: the key `makespan` until 1.3, `makespanInSeconds` since; version 1.5 has the
/// key in the part `execution`.
fn recorded_makespan(root: &Node) -> Option<Span> {
    let inside = root.get("workflow")?;
    let places = [inside.get("execution"), Some(inside)];
    let found = places
        .into_iter()
        .flatten()
        .find_map(|place| place.get("makespanInSeconds").or_else(|| place.get("makespan")));
    match found?.value {
        Value::Float(seconds) => Span::from_secs_f64(seconds),
        Value::Integer(seconds) => u64::try_from(seconds).ok().map(Span::from_secs),
        _ => None,
    }
}

/// A remark if the file names a version of the format that is not known.
fn unknown_version(root: &Node) -> Option<String> {
    let Value::Text(version) = &root.get("schemaVersion")?.value else { return None };
    let is_known = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"].contains(&version.as_str());
    let shown: String = version.chars().filter(|c| !c.is_control()).take(20).collect();
    (!is_known).then(|| format!("its WfFormat {shown} is not known, and was read as 1.5 is"))
}

/// Entries of a list of tasks, each with its node.
fn task_entries<'a>(list: &'a Node, found: &mut Mistakes) -> Vec<(&'a Node, WfTask)> {
    let Value::List(all) = &list.value else {
        let what = format!("a list of tasks is wanted, and this is {}", list.value.what());
        found.add(&list.place, what, "write it in [ ]");
        return Vec::new();
    };
    let schema = schema_of::<WfTask>();
    let entry = |node| {
        conform(&schema, node, found);
        Some((node, dormouse_documents::read(node, found)?))
    };
    all.iter().filter_map(entry).collect()
}

/// Unique name of a task: its id, or its name if it has no id.
fn task_name(entry: &WfTask) -> String {
    entry.id.clone().or_else(|| entry.name.clone()).unwrap_or_default()
}

/// Tasks by id, and by name if the name is unique.
struct TaskNames {
    ids: BTreeMap<String, TaskId>,
    names: BTreeMap<String, Option<TaskId>>,
}

impl TaskNames {
    fn new(entries: &[(&Node, WfTask)], found: &mut Mistakes) -> Self {
        let (mut ids, mut names) = (BTreeMap::new(), BTreeMap::new());
        for ((node, entry), task) in entries.iter().zip((0_u32..).map(TaskId::new)) {
            let id = task_name(entry);
            if id.is_empty() {
                let what = "a task has neither an id nor a name";
                found.add(&node.place, what, "give it an \"id\"");
            } else if ids.insert(id.clone(), task).is_some() {
                let what = format!("another task is called '{id}' already");
                found.add(node.place_of("id"), what, "give each an id of its own");
            }
            if let Some(name) = entry.name.clone() {
                names.entry(name).and_modify(|of| *of = None).or_insert(Some(task));
            }
        }
        Self { ids, names }
    }

    fn find_task(&self, name: &str) -> Option<TaskId> {
        self.ids.get(name).copied().or_else(|| self.names.get(name).copied().flatten())
    }
}

/// Predecessors of each task: from its parents and children, or, if no task has any, from the files
/// that tasks write and read.
fn predecessors_of_tasks(
    entries: &[(&Node, WfTask)],
    named: &TaskNames,
    found: &mut Mistakes,
) -> Vec<BTreeSet<TaskId>> {
    let mut after = vec![BTreeSet::new(); entries.len()];
    let ids = || (0_u32..).map(TaskId::new);
    let is_said = entries.iter().any(|(_, e)| !(e.parents.is_empty() && e.children.is_empty()));
    if !is_said {
        let mut writers: BTreeMap<String, Vec<TaskId>> = BTreeMap::new();
        for ((_, entry), task) in entries.iter().zip(ids()) {
            for file in linked_files(entry, "output") {
                writers.entry(file).or_default().push(task);
            }
        }
        for (((_, entry), task), after) in entries.iter().zip(ids()).zip(&mut after) {
            let read = linked_files(entry, "input").into_iter();
            let before = read.filter_map(|file| writers.get(&file)).flatten().copied();
            // One that writes over what it has read does not follow itself.
            after.extend(before.filter(|before| *before != task));
        }
        return after;
    }
    for ((node, entry), task) in entries.iter().zip(ids()) {
        for (key, names) in [("parents", &entry.parents), ("children", &entry.children)] {
            for name in names {
                let Some(other) = named.find_task(name) else {
                    let what = format!("there is no task '{name}'");
                    let remedy = "name a task by its id, or by a name that only one has";
                    found.add(node.place_of(key), what, remedy);
                    continue;
                };
                let (follower, before) =
                    if key == "parents" { (task, other) } else { (other, task) };
                if let Some(after) = after.get_mut(follower.get() as usize) {
                    after.insert(before);
                }
            }
        }
    }
    after
}

/// Names of a task's files with this link, `input` or `output`.
fn linked_files(entry: &WfTask, link: &str) -> Vec<String> {
    let named = if link == "input" { &entry.input_files } else { &entry.output_files };
    let linked = entry.files.iter().filter(|file| file.link == link);
    let linked = linked.filter_map(|file| file.name.clone().or_else(|| file.id.clone()));
    named.iter().cloned().chain(linked).collect()
}

/// Builds a task from its entry and, if separate, its execution entry.
fn task_of(
    node: &Node,
    (name, entry): (String, WfTask),
    ran: Option<&WfTask>,
    after: BTreeSet<TaskId>,
    found: &mut Mistakes,
) -> WorkflowTask {
    let of = |value: fn(&WfTask) -> Option<f64>| value(&entry).or_else(|| ran.and_then(value));
    let seconds = of(|entry| entry.runtime_in_seconds.or(entry.runtime));
    let runtime = seconds.and_then(Span::from_secs_f64);
    if let (Some(seconds), None) = (seconds, runtime) {
        let what = format!("'{name}' took {seconds} s, which is not a length of time");
        found.add(&node.place, what, "give a number of seconds that is 0 or more");
    }
    let whole = |value: f64| format!("{:.0}", value.max(0.0)).parse::<u64>().ok();
    let memory = of(|entry| entry.memory_in_bytes.or_else(|| Some(1_000.0 * entry.memory?)));
    let memory = memory.and_then(whole).map(Bytes::new);
    let cores = of(|entry| entry.cores.or(entry.core_count)).and_then(whole);
    let command = entry.command.as_ref().or_else(|| ran.and_then(|ran| ran.command.as_ref()));
    let command = command.filter(|command| !command.program.is_empty()).map(|command| {
        let program = std::iter::once(&command.program);
        let argv = program.chain(&command.arguments).cloned().collect();
        WorkflowCommand { argv, ..WorkflowCommand::default() }
    });
    WorkflowTask {
        inputs: linked_files(&entry, "input"),
        outputs: linked_files(&entry, "output"),
        name,
        after: after.into_iter().collect(),
        runtime,
        memory: memory.filter(|memory| *memory > Bytes::ZERO),
        cores: cores.and_then(|cores| u32::try_from(cores).ok()).filter(|cores| *cores > 0),
        command,
        ..WorkflowTask::default()
    }
}
