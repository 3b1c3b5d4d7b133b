//! A bag of tasks: independent, single-core, of known length on every type.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_units::{Bytes, Span, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One task of a bag. Its id is its index in the bag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Name of the task, for people.
    pub name: String,
    /// Memory that the task needs while it runs (rm_i).
    pub memory: Bytes,
    /// Time it takes alone on one vCPU of each type at full speed (e_ij).
    pub runtime: BTreeMap<TypeName, Span>,
    /// When the task is submitted, from the beginning of the run: it can't start before.
    #[serde(default, skip_serializing_if = "is_from_the_beginning")]
    pub submitted: Span,
}

fn is_from_the_beginning(submitted: &Span) -> bool {
    *submitted == Span::ZERO
}

/// Independent tasks with one deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bag {
    /// The tasks, by id; shared by all runs of the bag.
    pub tasks: Arc<[Task]>,
    /// By when all tasks must be done, from the beginning of the run (D).
    pub deadline: Span,
}
