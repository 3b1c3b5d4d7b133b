//! Kinds and run times of the tasks with users' own programs.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_model::CheckpointConfig;
use dormouse_tasks::own::{OwnProgram, Saves};
use dormouse_units::{Speedup, TaskId};
use serde::{Deserialize, Serialize};

use crate::Experiment;

/// Tasks with users' own programs: the kind of each, and the source of its run time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OwnTasks {
    /// Commands as written, with placeholders: tasks with the same command are of one kind.
    pub kinds: Vec<Vec<String>>,
    /// Kind of each task, and source of its run time.
    pub tasks: BTreeMap<TaskId, OwnTask>,
    /// Checkpoints that the experiment gives, if the programs' own ways to save their work replace
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_checkpoint: Option<CheckpointConfig>,
}

/// Kind of a task, and source of its run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OwnTask {
    /// Index of the task's kind.
    pub kind: u32,
    /// Source of the task's run time.
    #[serde(default, skip_serializing_if = "RuntimeSaid::is_said")]
    pub runtime: RuntimeSaid,
}

/// Source of a task's run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeSaid {
    /// The experiment gives the run time.
    #[default]
    Said,
    /// The run time was measured.
    Measured,
    /// The run time is not known: the task's run time is a guess that nothing should rely on.
    Unknown,
}

impl RuntimeSaid {
    /// Whether the experiment gives the run time.
    #[must_use]
    pub fn is_said(&self) -> bool {
        *self == Self::Said
    }
}

impl OwnTasks {
    /// Whether no task of the bag runs a user's own program.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The first task with an unknown run time.
    #[must_use]
    pub fn first_unknown(&self) -> Option<TaskId> {
        let mut tasks = self.tasks.iter();
        tasks.find(|(_, task)| task.runtime == RuntimeSaid::Unknown).map(|(id, _)| *id)
    }

    /// Whether any run time was measured.
    pub(crate) fn has_measured(&self) -> bool {
        self.tasks.values().any(|task| task.runtime == RuntimeSaid::Measured)
    }

    /// Index of a command's kind, which is added if it is new.
    fn kind(&mut self, command: &[String]) -> u32 {
        let known = self.kinds.iter().position(|kind| kind == command);
        let place = known.unwrap_or_else(|| {
            self.kinds.push(command.to_vec());
            self.kinds.len() - 1
        });
        // A bag has fewer tasks than that.
        u32::try_from(place).unwrap_or(u32::MAX)
    }
}

impl Experiment {
    /// Tasks of each kind of user's own program, ordered by id.
    #[must_use]
    pub fn tasks_of_kinds(&self) -> Vec<Vec<TaskId>> {
        let mut kinds = vec![Vec::new(); self.own_tasks.kinds.len()];
        for (id, task) in &self.own_tasks.tasks {
            if let Some(kind) = kinds.get_mut(task.kind as usize) {
                kind.push(*id);
            }
        }
        kinds.retain(|tasks: &Vec<TaskId>| !tasks.is_empty());
        kinds
    }

    /// Whether every task of the experiment's bag saves its work without CRIU.
    pub(crate) fn saves_without_criu(&self) -> bool {
        let count = self.setup.bag.tasks.len();
        let is_without = |program: &Arc<OwnProgram>| program.saves != Saves::Criu;
        count > 0 && self.own_programs.len() == count && self.own_programs.values().all(is_without)
    }
}

/// Users' own programs of a bag's tasks, as they are collected.
#[derive(Debug, Default)]
pub(crate) struct CollectedPrograms {
    pub(crate) programs: BTreeMap<TaskId, Arc<OwnProgram>>,
    pub(crate) tasks: OwnTasks,
    /// Emulated seconds for one second of a core in measured run times; `None` if none was
    /// measured, or the file does not report it.
    pub(crate) pace: Option<Speedup>,
    last: Option<Arc<OwnProgram>>,
}

impl CollectedPrograms {
    /// Adds a task's program.
    pub(crate) fn add(
        &mut self,
        id: TaskId,
        command: &[String],
        program: OwnProgram,
        runtime: RuntimeSaid,
    ) {
        let kind = self.tasks.kind(command);
        // Equal tasks follow each other, and share their program.
        let last = self.last.take().filter(|last| **last == program);
        let program = last.unwrap_or_else(|| Arc::new(program));
        self.last = Some(Arc::clone(&program));
        self.programs.insert(id, program);
        self.tasks.tasks.insert(id, OwnTask { kind, runtime });
    }
}
