//! What is known of the tasks that run programs of the user's own, beside the programs.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_model::CheckpointConfig;
use dormouse_tasks::own::{OwnProgram, Saves};
use dormouse_units::{Speedup, TaskId};
use serde::{Deserialize, Serialize};

use crate::Experiment;

/// The tasks that run programs of the user's own: of which kind each is, and how it is known how long it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OwnTasks {
    /// Commands as they are written, with their braces: tasks of one command are of a kind.
    pub kinds: Vec<Vec<String>>,
    /// The kind of each task, and how its runtime is known.
    pub tasks: BTreeMap<TaskId, OwnTask>,
    /// The checkpoints that the experiment names, where the programs' own ways to save their work stand in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_checkpoint: Option<CheckpointConfig>,
}

/// The kind of a task, and how it is known how long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct OwnTask {
    /// Index of its kind.
    pub kind: u32,
    /// How its runtime is known.
    #[serde(default, skip_serializing_if = "RuntimeSaid::is_said")]
    pub runtime: RuntimeSaid,
}

/// How it is known how long a task takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeSaid {
    /// The experiment says it.
    #[default]
    Said,
    /// The program was measured.
    Measured,
    /// Nobody knows: what its task has is a guess that nothing should rest on.
    Unknown,
}

impl RuntimeSaid {
    /// Whether the experiment says it.
    #[must_use]
    pub fn is_said(&self) -> bool {
        *self == Self::Said
    }
}

impl OwnTasks {
    /// Whether no task runs a program of the user's own.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The first task of which nobody knows how long it takes.
    #[must_use]
    pub fn first_unknown(&self) -> Option<TaskId> {
        let mut tasks = self.tasks.iter();
        tasks.find(|(_, task)| task.runtime == RuntimeSaid::Unknown).map(|(id, _)| *id)
    }

    /// Whether the runtime of any was measured.
    pub(crate) fn has_measured(&self) -> bool {
        self.tasks.values().any(|task| task.runtime == RuntimeSaid::Measured)
    }

    /// The kind that a command is, which is new if no other task has it.
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
    /// The tasks of each kind of program of the user's own, in the order of their ids.
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

    /// Whether every task of its bag saves its work by other means than CRIU.
    pub(crate) fn saves_without_criu(&self) -> bool {
        let count = self.setup.bag.tasks.len();
        let is_without = |program: &Arc<OwnProgram>| program.saves != Saves::Criu;
        count > 0 && self.own_programs.len() == count && self.own_programs.values().all(is_without)
    }
}

/// Programs of the user's own as tasks of a bag are gathered.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) programs: BTreeMap<TaskId, Arc<OwnProgram>>,
    pub(crate) tasks: OwnTasks,
    /// Emulated seconds for which a second of a core counts in runtimes that were measured; `None`: none was, or
    /// nobody said.
    pub(crate) pace: Option<Speedup>,
    last: Option<Arc<OwnProgram>>,
}

impl Collected {
    /// Adds what a task runs.
    pub(crate) fn add(
        &mut self,
        id: TaskId,
        command: &[String],
        program: OwnProgram,
        runtime: RuntimeSaid,
    ) {
        let kind = self.tasks.kind(command);
        // Tasks that are alike stand together, and share their program.
        let last = self.last.take().filter(|last| **last == program);
        let program = last.unwrap_or_else(|| Arc::new(program));
        self.last = Some(Arc::clone(&program));
        self.programs.insert(id, program);
        self.tasks.tasks.insert(id, OwnTask { kind, runtime });
    }
}
