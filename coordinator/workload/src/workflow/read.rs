//! Workflows, independent of the format of their file.

use std::collections::BTreeMap;

use dormouse_documents::{InputError, Mistakes, Place, from_json};
use dormouse_model::{Task, check_precedence};
use dormouse_units::{Bytes, Span, TaskId, TypeName};

use super::{dagman, nextflow, pegasus, snakemake, wfcommons};

/// Shortest run time of a task, used where a file has 0 for a time too short to be measured.
const SHORTEST: Span = Span::from_micros(1_000);

/// Tasks, some of which must run after others. The id of a task is its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workflow {
    /// The tasks in the order of the file.
    pub tasks: Vec<WorkflowTask>,
    /// Parts of the file that were ignored, in sentences.
    pub left_out: Vec<String>,
    /// Length of the run that the file is a record of; `None`: the file does not say.
    pub makespan: Option<Span>,
}

/// A task of a workflow, as far as its file describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowTask {
    /// The name of the task, which no other task of the workflow has.
    pub name: String,
    /// Ids of the tasks that this one follows, ascending.
    pub after: Vec<TaskId>,
    /// The time for which the task computes; `None`: the file does not say.
    pub runtime: Option<Span>,
    /// Memory that the task needs; `None` if the file does not say.
    pub memory: Option<Bytes>,
    /// The number of cores that the task uses; `None`: the file does not say.
    pub cores: Option<u32>,
    /// Command of the task; `None`: the file does not have it.
    pub command: Option<WorkflowCommand>,
    /// Files that the task reads.
    pub inputs: Vec<String>,
    /// Files that the task writes.
    pub outputs: Vec<String>,
    /// True if the task leaves all files that it makes, whether `outputs` names them or not.
    pub leaves_all: bool,
    /// How often the task is run again, and which scripts run before and after it.
    pub rules: NodeRules,
}

/// Rules of DAGMan by which a node succeeds or fails.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRules {
    /// How often the node is run again after it failed.
    pub retries: u32,
    /// Exit status after which the node is not run again; `None`: each failure counts alike.
    pub unless_exit: Option<i32>,
    /// Program that runs before the node, with its arguments; the node fails without a run if it fails. Empty: none.
    pub pre: Vec<String>,
    /// Exit status of `pre` with which the node succeeds without a run; `None`: there is none.
    pub pre_skip: Option<i32>,
    /// Program that runs after the node, with its arguments; its exit status is that of the node. Empty: none.
    pub post: Vec<String>,
}

impl NodeRules {
    /// True if the node runs once, without scripts.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.retries == 0 && self.pre.is_empty() && self.post.is_empty()
    }
}

/// The command of a task, as its file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables of the command's environment, by name.
    pub env: BTreeMap<String, String>,
    /// Working directory relative to the workflow's file; `None`: that file's own folder.
    pub directory: Option<String>,
}

/// The format of a workflow's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowFormat {
    /// The lines of HTCondor's DAGMan.
    DagMan,
    /// The JSON of WfCommons (WfFormat).
    WfCommons,
    /// The YAML of Pegasus 5.
    Pegasus,
    /// The graph that `snakemake --dag` prints.
    Snakemake,
    /// The trace of a run of Nextflow.
    Nextflow,
}

impl WorkflowFormat {
    /// The format of a file with this text, or its beginning; `None`: it is not a workflow.
    #[must_use]
    pub fn detect(text: &str) -> Option<Self> {
        if text.trim_start().starts_with('{') {
            return text.contains("\"workflow\"").then_some(Self::WfCommons);
        }
        let others = [
            (Self::Snakemake, snakemake::is_one(text)),
            (Self::Nextflow, nextflow::is_one(text)),
            (Self::DagMan, dagman::is_one(text)),
            (Self::Pegasus, pegasus::is_one(text)),
        ];
        others.into_iter().find(|(_, is_one)| *is_one).map(|(format, _)| format)
    }

    /// The name of the format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DagMan => "DAGMan",
            Self::WfCommons => "WfCommons",
            Self::Pegasus => "Pegasus",
            Self::Snakemake => "Snakemake",
            Self::Nextflow => "Nextflow",
        }
    }
}

impl Workflow {
    /// Reads a workflow from the text of the file that is called `source`. `open` returns the text of a submit file by
    /// its path relative to the workflow's file.
    ///
    /// # Errors
    ///
    /// All that is wrong with the file, or a submit file that can't be read.
    pub fn read(
        source: &str,
        text: &str,
        open: &mut dyn FnMut(&str) -> Result<String, InputError>,
    ) -> Result<Self, InputError> {
        let whole = Place::whole(source);
        let mut found = Mistakes::default();
        let workflow = match WorkflowFormat::detect(text) {
            Some(WorkflowFormat::WfCommons) => {
                wfcommons::read(&from_json(source, text)?, &mut found)
            }
            Some(WorkflowFormat::DagMan) => dagman::read(source, text, open, &mut found),
            Some(WorkflowFormat::Pegasus) => pegasus::read(source, text, &mut found),
            Some(WorkflowFormat::Snakemake) => snakemake::read(source, text, &mut found),
            Some(WorkflowFormat::Nextflow) => nextflow::read(source, text, &mut found),
            None => {
                let what =
                    "it is not a workflow of DAGMan, WfCommons, Pegasus, Snakemake or Nextflow";
                let remedy = "begin it with JOB lines, or give an instance of WfFormat 1.0 to 1.5";
                return Err(InputError::new(&whole, what, remedy));
            }
        };
        let mut workflow = found.or(Some(workflow))?;
        if workflow.tasks.is_empty() {
            return Err(InputError::new(
                &whole,
                "it has no tasks",
                "give a workflow with at least one",
            ));
        }
        let tasks = workflow.in_order();
        check_precedence(&tasks)
            .map_err(|error| InputError::new(&whole, error.in_words(&tasks), error.remedy()))?;
        workflow.left_out.extend(workflow.lack_of_order());
        Ok(workflow)
    }

    /// Returns a remark if no task follows another, since a workflow without dependencies runs as a bag; `None` if
    /// any task follows another.
    fn lack_of_order(&self) -> Option<String> {
        if self.tasks.len() < 2 || self.tasks.iter().any(|task| !task.after.is_empty()) {
            return None;
        }
        let mut said = format!("no task follows another: all {} can run at once", self.tasks.len());
        if let Some(longest) = self.tasks.iter().filter_map(|task| task.runtime).max() {
            said.push_str(&format!(", the longest takes {longest}"));
        }
        if let Some(makespan) = self.makespan {
            said.push_str(&format!("; the run that the file records took {makespan}"));
        }
        Some(said)
    }

    /// The tasks of the workflow with only their names and dependencies.
    pub(super) fn in_order(&self) -> Vec<Task> {
        let task = |task: &WorkflowTask| Task {
            name: task.name.clone(),
            after: task.after.clone(),
            ..Task::default()
        };
        self.tasks.iter().map(task).collect()
    }

    /// The tasks as a bag that takes equally long on each of these types, with `runtime` and
    /// `memory` as defaults where the file has none.
    ///
    /// # Errors
    ///
    /// The name of the first task without a run time, and the number of such tasks.
    pub fn bag<'a>(
        &self,
        types: impl Iterator<Item = &'a TypeName>,
        (runtime, memory): (Option<Span>, Option<Bytes>),
    ) -> Result<Vec<Task>, (String, usize)> {
        let types: Vec<&TypeName> = types.collect();
        let is_unknown = |task: &&WorkflowTask| task.runtime.or(runtime).is_none();
        let unknown: Vec<&WorkflowTask> = self.tasks.iter().filter(is_unknown).collect();
        if let Some(first) = unknown.first() {
            return Err((first.name.clone(), unknown.len()));
        }
        let everywhere = |length: Span| -> BTreeMap<TypeName, Span> {
            types.iter().map(|&kind| (kind.clone(), length.max(SHORTEST))).collect()
        };
        let task = |task: &WorkflowTask| Task {
            name: task.name.clone(),
            memory: task.memory.or(memory).unwrap_or_default(),
            runtime: everywhere(task.runtime.or(runtime).unwrap_or_default()),
            submitted: Span::ZERO,
            after: task.after.clone(),
        };
        Ok(self.tasks.iter().map(task).collect())
    }
}
