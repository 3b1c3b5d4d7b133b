//! `dormouse workload stats` of a workflow: how wide and deep it is, and its longest chain.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use dormouse_experiment::read_workflow;
use dormouse_workload::{WorkflowFormat, WorkflowShape};
use serde_json::json;

use super::failure::Failure;
use super::print::print;

/// Number of bytes of a file that are read to detect its format.
const BEGINNING: u64 = 1 << 20;

/// Most tasks of the longest chain that are listed by name.
const NAMED: usize = 12;

/// The format of a file, if it is a workflow.
pub(super) fn format_of(path: &Path) -> Option<WorkflowFormat> {
    let mut beginning = Vec::new();
    File::open(path).ok()?.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    WorkflowFormat::detect(&String::from_utf8_lossy(&beginning))
}

/// Prints the figures of the workflow in a file.
pub(super) fn stats(path: &Path, format: WorkflowFormat, as_json: bool) -> Result<(), Failure> {
    let workflow = read_workflow(path).map_err(|error| Failure::BadInput(error.to_string()))?;
    let WorkflowShape { tasks, edges, depth, width, work, critical, path: chain, unknown } =
        workflow.shape(None);
    if as_json {
        let figures = json!({
            "format": format.name(),
            "tasks": tasks,
            "edges": edges,
            "depth": depth,
            "width": width,
            "work_s": work.as_secs_f64(),
            "critical_path_s": critical.as_secs_f64(),
            "critical_path": chain,
            "tasks_without_runtime": unknown,
            "left_out": workflow.left_out,
        });
        return print(&format!("{figures:#}"));
    }
    let named: Vec<&str> = chain.iter().take(NAMED).map(String::as_str).collect();
    let more = match chain.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let mut lines = vec![
        format!("a workflow ({})", format.name()),
        format!("tasks            {tasks}"),
        format!("pairs in order   {edges}"),
        format!("levels           {depth}, the widest of {width} tasks"),
        format!("run time         {work} in all"),
        format!("longest chain    {critical}: {}{more}", named.join(", ")),
    ];
    if unknown > 0 {
        lines.push(format!("without run time {unknown} tasks, counted as none"));
    }
    lines.extend(workflow.left_out);
    print(&lines.join("\n"))
}
