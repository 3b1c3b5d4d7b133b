//! Commands of a workflow's tasks.

use std::collections::BTreeMap;

/// The command of a task, as its file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables of its environment, by name.
    pub env: BTreeMap<String, String>,
    /// Working directory relative to the workflow's file; `None`: that file's own folder.
    pub directory: Option<String>,
}
