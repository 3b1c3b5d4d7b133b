//! `job.json`: the tasks of a bag.

use std::collections::BTreeMap;

use dormouse_documents::{InputError, Mistakes, Node, read_whole};
use dormouse_model::Task;
use dormouse_units::{Span, TypeName};
use schemars::JsonSchema;
use serde::Deserialize;

use super::round_bytes;

#[derive(Deserialize, JsonSchema)]
struct JobFile {
    tasks: BTreeMap<String, JobTask>,
}

#[derive(Deserialize, JsonSchema)]
struct JobTask {
    /// Memory of the task, in 10^6 bytes.
    #[schemars(range(min = 0.0, max = 1e9), example = 10.06)]
    memory: f64,
    command: Option<String>,
    /// Run times of the task in seconds, by instance type.
    runtime: BTreeMap<TypeName, ArtifactSeconds>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, transparent)]
#[schemars(rename = "Seconds")]
struct ArtifactSeconds(
    #[schemars(range(max = 1e9), extend("exclusiveMinimum" = 0.0), example = 349.0)] f64,
);

/// The tasks of a `job.json`: memory in 10^6 bytes, run times in seconds.
///
/// # Errors
///
/// All that is wrong with the file.
pub fn tasks(root: &Node) -> Result<Vec<Task>, InputError> {
    let file: JobFile = read_whole(root)?;
    let mut found = Mistakes::default();
    let place = |key: &str| &root.inside(["tasks", key]).place;
    let mut numbered = BTreeMap::new();
    for (key, task) in &file.tasks {
        match key.parse::<usize>() {
            Ok(number) => drop(numbered.insert(number, (key, task))),
            Err(_) => {
                let what = format!("'{key}' is not the number of a task");
                found.add(place(key), what, "number the tasks from 0");
            }
        }
    }
    if file.tasks.is_empty() {
        found.add(root.place_of("tasks"), "there are no tasks", "give at least one");
    }
    for (expected, (number, (key, _))) in numbered.iter().enumerate() {
        if expected != *number {
            let what = format!("task {expected} is missing before task {number}");
            found.add(place(key), what, "number the tasks from 0 without gaps");
            break;
        }
    }
    let tasks = numbered.iter().map(|(number, (_, task))| task_of(*number, task)).collect();
    found.or(Some(tasks))
}

fn task_of(number: usize, task: &JobTask) -> Task {
    let words = task.command.as_deref().unwrap_or_default().split_whitespace();
    let size = words.into_iter().nth(2).unwrap_or("task");
    let seconds = |(kind, ArtifactSeconds(s)): (&TypeName, &ArtifactSeconds)| {
        (kind.clone(), Span::from_secs_f64(*s).unwrap_or_default())
    };
    let runtime = task.runtime.iter().map(seconds).collect();
    Task {
        name: format!("{size}-{number}"),
        memory: round_bytes(task.memory * 1e6),
        runtime,
        submitted: Span::ZERO,
        after: Vec::new(),
    }
}
