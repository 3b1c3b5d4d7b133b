//! Shape of a workflow: its width, depth and least duration.

use dormouse_model::TaskFollowers;
use dormouse_units::{Span, TaskId};

use super::Workflow;

/// Figures of a workflow's graph. Tasks without a run time count as zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowShape {
    /// The number of the workflow's tasks.
    pub tasks: usize,
    /// The number of dependencies, each from one task to another.
    pub edges: usize,
    /// The number of tasks of the longest chain.
    pub depth: u32,
    /// The number of tasks of the widest level; a task's level is the length of the longest chain
    /// before it.
    pub width: usize,
    /// The run time of all tasks together.
    pub work: Span,
    /// The run time of the chain of tasks that takes longest: no makespan is shorter.
    pub critical: Span,
    /// The names of the critical chain's tasks, in order.
    pub path: Vec<String>,
    /// The number of tasks whose file does not say how long they take.
    pub unknown: usize,
}

impl Workflow {
    /// The shape of the workflow; `runtime` stands for unknown run times.
    #[must_use]
    pub fn shape(&self, runtime: Option<Span>) -> WorkflowShape {
        let length = |task: TaskId| {
            let task = self.tasks.get(task.get() as usize);
            task.and_then(|task| task.runtime).or(runtime).unwrap_or_default()
        };
        let ids = || (0_u32..).map(TaskId::new).take(self.tasks.len());
        let followers = TaskFollowers::new(&self.in_order());
        let mut path = followers.critical_path(length);
        if path.is_empty() {
            path.extend(ids().max_by_key(|&task| (length(task), std::cmp::Reverse(task))));
        }
        let mut levels = followers.task_levels();
        levels.resize(self.tasks.len(), 0);
        let mut widths = std::collections::BTreeMap::<u32, usize>::new();
        for level in levels {
            *widths.entry(level).or_default() += 1;
        }
        let name = |task: &TaskId| Some(self.tasks.get(task.get() as usize)?.name.clone());
        WorkflowShape {
            tasks: self.tasks.len(),
            edges: self.tasks.iter().map(|task| task.after.len()).sum(),
            depth: widths.last_key_value().map_or(0, |(&level, _)| level.saturating_add(1)),
            width: widths.values().copied().max().unwrap_or_default(),
            work: ids().map(length).sum(),
            critical: path.iter().map(|&task| length(task)).sum(),
            path: path.iter().filter_map(name).collect(),
            unknown: self.tasks.iter().filter(|task| task.runtime.or(runtime).is_none()).count(),
        }
    }
}
