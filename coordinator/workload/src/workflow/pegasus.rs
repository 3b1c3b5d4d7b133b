//! Reader of Pegasus 5's abstract workflows in YAML: jobs with the files that they use, and explicit dependencies
//! beside those that follow from the files.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_documents::{Mistakes, Place};
use dormouse_units::{Bytes, Span, TaskId};

use super::yaml::{self, YamlNode};
use super::{Workflow, WorkflowCommand, WorkflowTask};

/// True if a text begins as a workflow of Pegasus does.
pub(super) fn is_one(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.starts_with(['#', ' ', '-']));
    lines.any(|line| line.starts_with("pegasus:") || line.starts_with("x-pegasus:"))
}

/// Reads a workflow; mistakes are added to `found`.
pub(super) fn read(source: &str, text: &str, found: &mut Mistakes) -> Workflow {
    let mut workflow = Workflow::default();
    let Some(root) = found.take(yaml::parse(source, text)) else { return workflow };
    let Some(jobs) = root.get("jobs").and_then(YamlNode::list) else {
        let what = "there is no list of jobs";
        found.add(&Place::whole(source), what, "give a workflow of Pegasus 5, with jobs");
        return workflow;
    };
    let mut ids = BTreeMap::new();
    let (mut writers, mut below) = (BTreeMap::<String, Vec<TaskId>>::new(), 0_usize);
    for (job, task) in jobs.iter().zip((0_u32..).map(TaskId::new)) {
        let id = job.text("id").unwrap_or_default();
        if id.is_empty() {
            found.add(&job.place(source), "a job has no id", "give it one, such as id: ID0000001");
        } else if ids.insert(id.clone(), task).is_some() {
            let what = format!("another job is called '{id}' already");
            found.add(&job.place(source), what, "give each an id of its own");
        }
        below += usize::from(job.text("type").is_some_and(|kind| kind != "job"));
        let made = task_of(job, id);
        for file in &made.outputs {
            writers.entry(file.clone()).or_default().push(task);
        }
        workflow.tasks.push(made);
    }
    let mut after = vec![BTreeSet::new(); workflow.tasks.len()];
    for (task, (after, id)) in
        workflow.tasks.iter().zip(after.iter_mut().zip((0..).map(TaskId::new)))
    {
        let before = task.inputs.iter().filter_map(|file| writers.get(file)).flatten().copied();
        after.extend(before.filter(|before| *before != id));
    }
    let orders = root.get("jobDependencies").and_then(YamlNode::list).unwrap_or_default();
    for order in orders {
        let children = order.get("children").and_then(YamlNode::list).unwrap_or_default();
        let parent = order.text("id").unwrap_or_default();
        for child in children {
            let child = child.scalar().unwrap_or_default();
            let mut find = |name: &str| {
                let task: Option<TaskId> = ids.get(name).copied();
                if task.is_none() {
                    let what = format!("there is no job '{name}'");
                    found.add(&order.place(source), what, "name a job by its id");
                }
                task
            };
            if let (Some(parent), Some(child)) = (find(&parent), find(&child))
                && let Some(after) = after.get_mut(child.get() as usize)
            {
                after.insert(parent);
            }
        }
    }
    for (task, after) in workflow.tasks.iter_mut().zip(after) {
        task.after = after.into_iter().collect();
    }
    if below > 0 {
        let said = format!("jobs that are workflows of their own, taken for a task each: {below}");
        workflow.left_out.push(said);
    }
    workflow
}

/// Converts a job to a task; its needs come from the job's Pegasus profiles.
fn task_of(job: &YamlNode, id: String) -> WorkflowTask {
    let profile = |name: &str| job.get("profiles")?.get("pegasus")?.text(name);
    let number = |text: String| text.parse::<f64>().ok().filter(|number| *number > 0.0);
    let files = |link: &str| -> Vec<String> {
        let uses = job.get("uses").and_then(YamlNode::list).unwrap_or_default();
        let linked = uses
            .iter()
            .filter(|file| file.text("type").is_some_and(|kind| kind == link || kind == "inout"));
        linked.filter_map(|file| file.text("lfn")).collect()
    };
    let whole = |number: f64| format!("{:.0}", number.ceil()).parse::<u64>().ok();
    let memory = profile("memory").and_then(number).and_then(whole);
    let cores = profile("cores").and_then(number).and_then(whole);
    let arguments = job.get("arguments").and_then(YamlNode::list).unwrap_or_default();
    let program = job.text("name").unwrap_or_default();
    let argv = std::iter::once(program.clone());
    let argv = argv.chain(arguments.iter().filter_map(YamlNode::scalar)).collect();
    WorkflowTask {
        name: id,
        runtime: profile("runtime").and_then(number).and_then(Span::from_secs_f64),
        // In MB.
        memory: memory.and_then(|mb| mb.checked_mul(1 << 20)).map(Bytes::new),
        cores: cores.and_then(|cores| u32::try_from(cores).ok()),
        command: (!program.is_empty())
            .then(|| WorkflowCommand { argv, ..WorkflowCommand::default() }),
        inputs: files("input"),
        outputs: files("output"),
        ..WorkflowTask::default()
    }
}
