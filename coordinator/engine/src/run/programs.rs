//! Schedulers of a run that are separate programs: they are asked, or their answers are taken from a record.

use dormouse_model::{Command, Decision, Notice, Step};
use dormouse_units::{TaskId, Time};

use super::Run;

impl Run {
    /// Handles the event of a recorded step without asking programs: their answers are taken from it. A run without
    /// programs decides as in [`Run::handle_event`].
    pub fn handle_again(&mut self, recorded: &Step) -> (Step, Vec<Command>) {
        if self.has_programs() {
            self.answers.take_recorded(recorded);
        }
        self.handle_event(recorded.at, recorded.event.clone())
    }

    /// Makes the run reproduce these recorded steps before programs are asked for new answers; programs get the
    /// recorded notices and decisions. A step that is not reproduced is a failure.
    pub fn follow_steps(&mut self, steps: Vec<Step>) {
        self.answers.follow_steps(steps);
    }

    /// Returns why the run can't continue: a program that it needs has failed, or a recorded step was not reproduced. The last step
    /// must not be recorded then, and the run can't be used any more.
    #[must_use]
    pub fn failure_reason(&self) -> Option<&str> {
        let mut programs = self.tenants.iter().filter(|tenant| tenant.is_outside());
        let of_program = || programs.find_map(|program| program.failure_reason());
        self.answers.failure_reason().or_else(of_program)
    }

    /// Returns whether a scheduler of this run is a program.
    #[must_use]
    pub fn has_programs(&self) -> bool {
        self.tenants.iter().any(|tenant| tenant.is_outside())
    }

    /// Compares a followed step that has ended with the recorded one.
    pub(super) fn end_followed(&mut self, followed: &Step, step: &Step) {
        // What a program says against its former answers is known better.
        if followed != step && self.failure_reason().is_none() {
            self.answers.came_out_otherwise(followed);
        }
    }

    /// Explains why a program may not make a decision that is about a task or VM of another tenant; `None`: it may.
    /// Built-in policies never do.
    pub(super) fn is_anothers(&self, tenant: usize, decision: &Decision) -> Option<String> {
        let (work, asks) = (self.tenants[tenant].work(), &self.tenants[tenant]);
        let is_of_bag = |task: TaskId| (task.get() as usize) < self.setup.bag.tasks.len();
        let has = |task| if is_of_bag(task) { work.has_bag() } else { work.has_jobs() };
        match (decision.task().filter(|task| !has(*task)), decision) {
            _ if !asks.is_outside() => None,
            (Some(task), _) => Some(format!("there is no {task} in this scheduler's work")),
            (None, Decision::Launch { kind, .. })
                if self.setup.is_two_tier(kind) && !work.has_jobs() =>
            {
                Some(format!("{kind} is the machine of another scheduler's jobs"))
            }
            _ => None,
        }
    }

    /// Asks a tenant's policy for decisions; `made` is the number of decisions of the step so far.
    pub(super) fn ask_policy(
        &mut self,
        now: Time,
        tenant: usize,
        heard: &[Notice],
        made: usize,
        wanted: &mut Vec<Decision>,
    ) {
        let asked = &mut self.tenants[tenant];
        if !asked.is_outside() {
            return asked.tell_policy(now, heard, wanted);
        }
        match self.answers.next_known(made) {
            Some(known) => {
                wanted.extend_from_slice(known);
                asked.tell_again(now, heard, wanted);
            }
            None => asked.tell_policy(now, heard, wanted),
        }
        self.answers.record_answer(now, heard, wanted.len());
    }
}
