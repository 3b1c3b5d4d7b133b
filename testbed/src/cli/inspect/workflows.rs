//! Inspects workflows: tasks of which some follow others.

use dormouse_experiment::read_workflow;
use dormouse_workload::{WorkflowFormat, WorkflowShape};

use super::args::InspectArgs;
use super::found::Found;
use super::head::Head;
use crate::cli::failure::Failure;

/// The format of a file with this beginning; `None`: the file is not a workflow.
pub(super) fn format_of(head: &Head) -> Option<WorkflowFormat> {
    WorkflowFormat::detect(&String::from_utf8_lossy(head.bytes()))
}

/// Reads a whole workflow, with the submit files beside it.
pub(super) fn inspect(args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
    if !args.column.is_empty() {
        return Err(args.refused("a workflow has no columns", "leave --column out"));
    }
    if head.packing.to_string() != "plain" {
        return Err(args.refused(
            "it is a compressed workflow",
            "unpack it, with its submit files in the same folder",
        ));
    }
    let workflow = read_workflow(&args.file)?;
    let format = format_of(head).map_or("workflow", WorkflowFormat::name);
    let mut found = Found::new(args, head, ("a workflow", format));
    // What separates words of its lines separates no cells.
    found.separator = None;
    let WorkflowShape { tasks, edges, depth, width, work, critical, unknown, .. } =
        workflow.shape(None);
    found.fact("tasks", tasks);
    found.fact("pairs in order", edges);
    found.fact("levels", format!("{depth}, the widest of {width} tasks"));
    found.fact("run time", format!("{work} in all, {critical} of the longest chain"));
    let mut runtime = "";
    if unknown > 0 {
        found.oddities.push(format!("{unknown} tasks say no run time"));
        runtime = "runtime = \"2m\" # of tasks that say none\n";
    }
    found.oddities.extend(workflow.left_out);
    let file = args.quoted();
    found.experiment =
        format!("[workload]\nkind = \"bag\"\nworkflow = {file}\ndeadline = \"45m\"\n{runtime}");
    Ok(found)
}
