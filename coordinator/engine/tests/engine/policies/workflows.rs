//! For random workflows: no task starts before its predecessors are done, and all tasks that can finish do.

use std::collections::BTreeSet;

use dormouse_cloud::InterruptionModel;
use dormouse_model::{Effect, Notice, Step, TaskFollowers};
use dormouse_policies::{BagSchedulerName, build};
use dormouse_units::{Span, TaskId, Time};
use proptest::prelude::*;

use super::played::{played, setup};
use super::properties::{Case, case, config};
use super::trouble::Trouble;

/// Makes the tasks of a case follow one another by these pairs of task numbers, taken modulo the number of tasks.
fn linked(mut case: Case, pairs: &[(usize, usize)]) -> Case {
    let mut tasks = case.bag.tasks.to_vec();
    for (a, b) in pairs {
        let (a, b) = (a % tasks.len(), b % tasks.len());
        let before = TaskId::new(u32::try_from(a.min(b)).expect("few tasks"));
        let after = &mut tasks[a.max(b)].after;
        if a != b && !after.contains(&before) {
            after.push(before);
        }
    }
    case.bag.tasks = tasks.into();
    case
}

fn pairs() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((0_usize..40, 0_usize..40), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn order_is_kept_whatever_happens(case in case(), pairs in pairs()) {
        let case = linked(case, &pairs);
        let config = config(&case);
        let Case { bag, catalogue, checkpoint, trouble, seed, .. } = &case;
        let Ok(scheduler) = build(&config, catalogue, bag, checkpoint, *seed) else { return Ok(()) };
        let models = [InterruptionModel::Schedule { acts: case.acts.clone() }];
        let setup = setup(bag, catalogue, checkpoint, &models, *seed);
        let is_careless = case.name == BagSchedulerName::Fifo;
        let mut done = BTreeSet::new();
        let mut early = None;
        let outcome = played(setup, scheduler, trouble, is_careless, |step: &Step| {
            done.extend(step.notices.iter().filter_map(|notice| match notice {
                Notice::TaskFinished { task, .. } => Some(*task),
                _ => None,
            }));
            for effect in &step.effects {
                if let Effect::TaskSent { task, .. } = effect {
                    let after = &bag.tasks[task.get() as usize].after;
                    early = early.or(after.iter().find(|before| !done.contains(*before)).copied());
                }
            }
        });
        prop_assert_eq!(early, None);
        if !trouble.can_be_fatal() {
            prop_assert_eq!(outcome.finished, bag.tasks.len());
        }
    }

    #[test]
    fn no_makespan_is_below_the_critical_path(mut case in case(), pairs in pairs()) {
        case.acts.clear();
        let case = linked(case, &pairs);
        let config = config(&case);
        let Case { bag, catalogue, checkpoint, seed, .. } = &case;
        let Ok(scheduler) = build(&config, catalogue, bag, checkpoint, *seed) else { return Ok(()) };
        let fastest = |task: TaskId| {
            bag.tasks[task.get() as usize].runtime.values().min().copied().unwrap_or_default()
        };
        let path = TaskFollowers::new(&bag.tasks).critical_path(fastest);
        let critical: Span = path.into_iter().map(fastest).sum();
        let setup = setup(bag, catalogue, checkpoint, &[], *seed);
        let is_careless = case.name == BagSchedulerName::Fifo;
        let outcome = played(setup, scheduler, &Trouble::default(), is_careless, |_| {});
        prop_assert_eq!(outcome.finished, bag.tasks.len());
        let end = outcome.makespan.since(Time::ZERO);
        prop_assert!(end >= critical + catalogue.boot, "{} ends at {end}", case.name);
    }
}
