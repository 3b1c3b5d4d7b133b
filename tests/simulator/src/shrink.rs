//! Shrinks a failing plan, as long as it breaks the same invariant.

use dormouse_cloud::ProviderTerms;
use dormouse_coordinator::SessionLimits;
use dormouse_model::{Bag, Task};
use dormouse_units::TaskId;

use crate::invariant::Invariant;
use crate::plan::Plan;
use crate::run::Playground;
use crate::worker::Rates;

/// The most runs that are spent on shrinking one plan.
const TRIES: u32 = 2_000;

/// A plan that was made smaller.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The smallest plan that was found.
    pub plan: Plan,
    /// Number of runs that the shrinking took.
    pub tries: u32,
}

/// Shrinks a plan that breaks an invariant.
#[must_use]
pub fn shrink(plan: &Plan, invariant: Invariant, playground: &Playground) -> Shrunk {
    let mut shrinking = Shrinking { best: plan.clone(), invariant, playground, tries: 0 };
    loop {
        let before = shrinking.best.clone();
        shrinking.drop_faults();
        shrinking.drop_tasks();
        shrinking.drop_workers();
        shrinking.make_plainer();
        if shrinking.best == before || shrinking.tries >= TRIES {
            return Shrunk { plan: shrinking.best, tries: shrinking.tries };
        }
    }
}

struct Shrinking<'a> {
    best: Plan,
    invariant: Invariant,
    playground: &'a Playground,
    tries: u32,
}

impl Shrinking<'_> {
    /// Makes a smaller plan the best one if it breaks the same invariant; returns whether it does.
    fn take(&mut self, smaller: Plan) -> bool {
        if smaller == self.best || self.tries >= TRIES {
            return false;
        }
        // A bag that its scheduler can't plan any more makes no run.
        if smaller.schedulers.policies(&smaller.setup).is_err() {
            return false;
        }
        self.tries += 1;
        let outcome = self.playground.play(&smaller);
        let is_same = outcome.violation.is_some_and(|it| it.invariant == self.invariant);
        if is_same {
            self.best = smaller;
        }
        is_same
    }

    /// Drops faults: halves of them first, then ever smaller pieces (delta debugging).
    fn drop_faults(&mut self) {
        let mut piece = self.best.faults.len();
        while piece > 0 {
            let mut from = 0;
            while from < self.best.faults.len() {
                let mut smaller = self.best.clone();
                let to = (from + piece).min(smaller.faults.len());
                smaller.faults.drain(from..to);
                if !self.take(smaller) {
                    from += piece;
                }
            }
            piece /= 2;
        }
    }

    fn drop_tasks(&mut self) {
        for place in (0..self.best.setup.bag.tasks.len()).rev() {
            if self.best.setup.bag.tasks.len() == 1 {
                break;
            }
            let mut smaller = self.best.clone();
            let mut tasks = smaller.setup.bag.tasks.to_vec();
            tasks.remove(place);
            follow_fewer(&mut tasks, place);
            let deadline = smaller.setup.bag.deadline;
            smaller.setup.bag = Bag { tasks: tasks.into(), deadline };
            self.take(smaller);
        }
        for place in (0..self.best.requests.len()).rev() {
            let mut smaller = self.best.clone();
            smaller.requests.remove(place);
            self.take(smaller);
        }
        for place in (0..self.best.submissions.len()).rev() {
            if self.best.submissions.len() == 1 {
                break;
            }
            let mut smaller = self.best.clone();
            let gone = smaller.submissions.remove(place).number;
            for job in &mut smaller.submissions {
                if job.after.as_ref().is_some_and(|after| after.jobs.contains(&gone)) {
                    job.after = None;
                }
            }
            self.take(smaller);
        }
    }

    /// Drops workers, together with their faults.
    fn drop_workers(&mut self) {
        for place in (0..self.best.workers.len()).rev() {
            if self.best.workers.len() == 1 {
                return;
            }
            let mut smaller = self.best.clone();
            smaller.workers.remove(place);
            smaller.faults.retain_mut(|it| match it.fault.worker_mut() {
                Some(worker) if *worker == place => false,
                Some(worker) if *worker > place => {
                    *worker -= 1;
                    true
                }
                _ => true,
            });
            self.take(smaller);
        }
    }

    /// Drops settings that a simpler run would not have: interruptions, slowness, failing machines.
    fn make_plainer(&mut self) {
        let plainer: [fn(&mut Plan); 12] = [
            |plan| plan.setup.interruptions.clear(),
            |plan| plan.slow_sync = 0,
            |plan| plan.slow_upload = 0,
            |plan| plan.setup.noise = None,
            |plan| plan.workers.iter_mut().for_each(|it| it.worker.rates = Rates::default()),
            |plan| plan.workers.iter_mut().for_each(|it| it.comes = 0),
            |plan| {
                if let Some(config) = &mut plan.schedulers.bag {
                    config.name = dormouse_policies::BagSchedulerName::Fifo;
                }
            },
            |plan| plan.schedulers.are_programs = false,
            |plan| plan.setup.terms = ProviderTerms::default(),
            |plan| plan.experiment_faults.clear(),
            |plan| plan.limits = SessionLimits::default(),
            |plan| plan.callers = None,
        ];
        for change in plainer {
            let mut smaller = self.best.clone();
            change(&mut smaller);
            self.take(smaller);
        }
    }
}

/// Adapts the tasks to the removal of the one at `place`: no task follows it any more, and later tasks have other ids.
fn follow_fewer(tasks: &mut [Task], place: usize) {
    let place = u32::try_from(place).unwrap_or(u32::MAX);
    for task in tasks {
        task.after.retain(|before| before.get() != place);
        for before in &mut task.after {
            if before.get() > place {
                *before = TaskId::new(before.get() - 1);
            }
        }
    }
}
