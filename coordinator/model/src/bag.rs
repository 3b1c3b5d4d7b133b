//! A bag of tasks: single-core, of known length on every type, each independent or after others.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_units::{Bytes, Span, TaskId, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One task of a bag. Its id is its index in the bag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Name of the task, for people.
    pub name: String,
    /// Memory that the task needs while it runs (rm_i).
    pub memory: Bytes,
    /// Time that the task takes alone on one vCPU of each type at full speed (e_ij).
    pub runtime: BTreeMap<TypeName, Span>,
    /// When the task is submitted, from the beginning of the run: it can't start before.
    #[serde(default, skip_serializing_if = "is_from_the_beginning")]
    pub submitted: Span,
    /// The tasks that it follows, by id: it is due, and can start, once all of them are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<TaskId>,
}

impl Task {
    /// True if the task can start as soon as the run begins.
    #[must_use]
    pub const fn is_due_at_once(&self) -> bool {
        self.submitted.as_micros() == 0 && self.after.is_empty()
    }
}

fn is_from_the_beginning(submitted: &Span) -> bool {
    *submitted == Span::ZERO
}

/// Tasks with one deadline; a workflow where some of them follow others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bag {
    /// The tasks, by id; shared by all runs of the bag.
    pub tasks: Arc<[Task]>,
    /// By when all tasks must be done, from the beginning of the run (D).
    pub deadline: Span,
}

impl Bag {
    /// True if any task of the bag follows others.
    #[must_use]
    pub fn is_workflow(&self) -> bool {
        self.tasks.iter().any(|task| !task.after.is_empty())
    }
}
