//! Tasks of a workflow as parallel jobs: with as many processors as they have cores, and in their order.

use dormouse_model::TaskFollowers;
use dormouse_units::{Span, TaskId};

use super::{Workflow, WorkflowTask};
use crate::SwfJob;

impl Workflow {
    /// The tasks as jobs of a log, each below those that it follows and submitted at the end of the last of them. Run
    /// times are rounded up to whole seconds.
    ///
    /// # Errors
    ///
    /// The name of the first task without a run time, and the number of such tasks.
    pub fn jobs(&self) -> Result<Vec<SwfJob>, (String, usize)> {
        let unknown = || self.tasks.iter().filter(|task| task.runtime.is_none());
        if let Some(first) = unknown().next() {
            return Err((first.name.clone(), unknown().count()));
        }
        let mut order = TaskFollowers::new(&self.in_order()).topological_order();
        if order.is_empty() {
            order = (0..).map(TaskId::new).take(self.tasks.len()).collect();
        }
        let mut numbers = vec![0_i64; self.tasks.len()];
        let mut jobs = Vec::with_capacity(order.len());
        for (number, id) in (1..).zip(order) {
            let place = id.get() as usize;
            let Some(task) = self.tasks.get(place) else { continue };
            if let Some(known) = numbers.get_mut(place) {
                *known = number;
            }
            let before = task.after.iter().filter_map(|id| numbers.get(id.get() as usize).copied());
            jobs.push(job_of(number, task, &before.collect::<Vec<_>>()));
        }
        Ok(jobs)
    }
}

fn job_of(number: i64, task: &WorkflowTask, before: &[i64]) -> SwfJob {
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let cores = task.cores.unwrap_or(1).max(1);
    let micros = task.runtime.unwrap_or(Span::ZERO).as_micros();
    let run_time = whole(micros.div_ceil(1_000_000).max(1));
    let memory = task.memory.map_or(-1, |it| whole(it.get().div_ceil(1024 * u64::from(cores))));
    let (preceding, others) = match before {
        [] => (-1, &[][..]),
        [first, others @ ..] => (*first, others),
    };
    SwfJob {
        number,
        submitted: 0,
        run_time,
        allocated: cores.into(),
        requested: cores.into(),
        requested_time: run_time,
        requested_memory: memory,
        status: 1,
        preceding,
        preceding_others: others.into(),
        think_time: if before.is_empty() { -1 } else { 0 },
        ..SwfJob::unknown()
    }
}
