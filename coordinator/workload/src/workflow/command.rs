//! What a task of a workflow runs.

use std::collections::BTreeMap;

/// The command of a task, as its file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables of its environment, by name.
    pub env: BTreeMap<String, String>,
    /// The folder that it is run in, relative to the workflow's file; `None`: that of the file.
    pub directory: Option<String>,
}
