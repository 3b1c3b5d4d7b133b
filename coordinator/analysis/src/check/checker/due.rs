//! Check that tasks start only after their submission and after the tasks that they follow.

use dormouse_model::Task;
use dormouse_units::TaskId;

use super::Checker;

impl Checker<'_> {
    /// Requires that a task that starts now is submitted and that all tasks it follows have
    /// finished.
    pub(super) fn check_due(&mut self, task: TaskId, spec: &Task) {
        let submitted = self.setup.submission_time(task);
        self.require(submitted <= self.now, || {
            format!("{task} is started before it is submitted, at {submitted}")
        });
        let is_open = |before: &&TaskId| {
            self.tasks.get(before.get() as usize).is_none_or(|before| !before.finished)
        };
        if let Some(before) = spec.after.iter().find(is_open) {
            self.report_violation(format!(
                "{task} is started before {before} is finished, which it follows"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_model::{Bag, Setup, UsageInformation};
    use dormouse_units::Span;

    use super::*;

    #[test]
    fn a_task_that_is_started_before_what_it_follows_is_found() {
        let mut setup = Setup::of_jobs(1, UsageInformation::Exact, 1);
        let second = Task { after: vec![TaskId::new(0)], ..Task::default() };
        let deadline = Span::from_secs(1);
        setup.bag = Bag { tasks: [Task::default(), second].into(), deadline };
        for is_finished in [false, true] {
            let mut checker = Checker::new(&setup, Span::ZERO);
            checker.tasks[0].finished = is_finished;
            checker.check_due(TaskId::new(1), &setup.bag.tasks[1]);
            let found: Vec<String> =
                checker.finish(false).into_iter().map(|found| found.what).collect();
            let wrong = "task1 is started before task0 is finished, which it follows".to_owned();
            assert_eq!(found, if is_finished { vec![] } else { vec![wrong] });
        }
    }
}
