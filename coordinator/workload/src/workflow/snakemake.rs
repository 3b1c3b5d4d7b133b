//! Reader of the graph that `snakemake --dag` prints: a node for each job, and an arrow from each job to those that follow it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dormouse_documents::{Mistakes, Place};
use dormouse_units::TaskId;

use super::{Workflow, WorkflowTask};

/// True if a text begins as a graph printed by `snakemake --dag`.
pub(super) fn is_one(text: &str) -> bool {
    text.trim_start().starts_with("digraph snakemake")
}

/// A job in the graph that Snakemake prints.
struct DagJob {
    label: String,
    /// True if the node is dashed: the job's output exists, and Snakemake would not run the job again.
    is_done: bool,
}

/// Reads a graph into a workflow; mistakes are added to `found`.
pub(super) fn read(source: &str, text: &str, found: &mut Mistakes) -> Workflow {
    let (mut jobs, mut order) = (BTreeMap::<u64, DagJob>::new(), Vec::new());
    let body = text.split_once('{').map_or("", |(_, body)| body);
    let begun = 1 + text
        .len()
        .checked_sub(body.len())
        .map_or(0, |at| text.get(..at).unwrap_or_default().matches('\n').count());
    for (line, statement) in statements(body) {
        let place = || Place::line(Path::new(source), begun + line, statement);
        let head = statement.split('[').next().unwrap_or_default().trim();
        if let Some((before, after)) = head.split_once("->") {
            match (before.trim().parse::<u64>(), after.trim().parse::<u64>()) {
                (Ok(before), Ok(after)) => order.push((place(), before, after)),
                _ => found.add(&place(), "an arrow is not between two numbers", "write 1 -> 0"),
            }
        } else if let Ok(number) = head.parse::<u64>() {
            let label = attribute(statement, "label").unwrap_or_else(|| head.to_owned());
            let is_done = attribute(statement, "style").is_some_and(|it| it.contains("dashed"));
            jobs.insert(number, DagJob { label, is_done });
        }
    }
    let open: Vec<(&u64, &DagJob)> = jobs.iter().filter(|(_, job)| !job.is_done).collect();
    let ids: BTreeMap<u64, TaskId> =
        open.iter().zip((0..).map(TaskId::new)).map(|((number, _), id)| (**number, id)).collect();
    let mut after = vec![BTreeSet::new(); open.len()];
    for (place, before, job) in order {
        for number in [before, job].into_iter().filter(|number| !jobs.contains_key(number)) {
            found.add(&place, format!("there is no job {number}"), "name one that has a label");
        }
        if let (Some(before), Some(job)) = (ids.get(&before), ids.get(&job))
            && let Some(after) = after.get_mut(job.get() as usize)
        {
            after.insert(*before);
        }
    }
    let mut seen = BTreeSet::new();
    let tasks = open.iter().zip(after).map(|((number, job), after)| {
        let name = match seen.insert(job.label.as_str()) {
            true => job.label.clone(),
            false => format!("{} #{number}", job.label),
        };
        WorkflowTask { name, after: after.into_iter().collect(), ..WorkflowTask::default() }
    });
    let tasks = tasks.collect();
    let done = jobs.len() - open.len();
    let left_out = match done {
        0 => Vec::new(),
        _ => vec![format!("jobs that are dashed, and are not run again: {done}")],
    };
    Workflow { tasks, left_out, ..Workflow::default() }
}

/// Statements of a graph's body, each with the number of lines before it. A statement ends at the end of a line or at a
/// semicolon, unless inside brackets or quotation marks.
fn statements(body: &str) -> Vec<(usize, &str)> {
    let (mut all, mut begin, mut begun_at, mut line) = (Vec::new(), 0, 0, 0);
    let (mut is_text, mut is_escaped, mut depth) = (false, false, 0_u32);
    for (at, letter) in body.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' => is_text = !is_text,
            '[' if !is_text => depth += 1,
            ']' if !is_text => depth = depth.saturating_sub(1),
            '\n' | ';' | '}' if !is_text && depth == 0 => {
                all.push((begun_at, body.get(begin..at).unwrap_or_default().trim()));
                begin = at + letter.len_utf8();
                begun_at = line + usize::from(letter == '\n');
            }
            _ => {}
        }
        line += usize::from(letter == '\n');
    }
    all.retain(|(_, statement)| !statement.is_empty());
    all
}

/// Text of an attribute of a node, with line breaks as commas: `map, sample: A` for the label `map\nsample: A`.
fn attribute(statement: &str, name: &str) -> Option<String> {
    let (_, attributes) = statement.split_once('[')?;
    let mut rest = attributes;
    loop {
        let (before, behind) = rest.split_once(name)?;
        rest = behind;
        let is_begun = before.trim_end().is_empty() || before.trim_end().ends_with([',', ';']);
        if let (true, Some(value)) = (is_begun, behind.trim_start().strip_prefix('=')) {
            let value = value.trim_start();
            let text = match value.strip_prefix('"') {
                Some(inside) => inside.split('"').next().unwrap_or_default(),
                None => value.split([',', ']', ' ']).next().unwrap_or_default(),
            };
            return Some(text.replace("\\n", ", ").replace('\\', ""));
        }
    }
}
