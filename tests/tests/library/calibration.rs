//! The cells of a calibration, each an experiment of its own, and how its tasks are compared.

use dormouse::calibrate::{CellPlan, conditions, errors};
use dormouse::live::rehearse;
use dormouse_analysis::{RunRecord, TaskHistory};
use dormouse_coordinator::admission::vcpus_of;
use dormouse_host::calibration::load_at;
use dormouse_policies::CheckpointPlanning;
use dormouse_units::Span;

use super::runs::{played, record_of};

const CORES: u32 = 2_000;

fn record(plan: &CellPlan) -> RunRecord {
    let experiment = plan.experiment(1).unwrap();
    record_of(&experiment, &played(&experiment).0)
}

#[test]
fn a_cell_has_checkpoints_a_restore_and_the_load_it_says() {
    for (speedup, load, vcpus) in [(10.0, 1.0, 30), (30.0, 0.5, 14), (200.0, 0.25, 6)] {
        let plan = CellPlan::new(speedup, load, CORES, false).unwrap();
        assert_eq!(plan.vcpus, vcpus);
        let experiment = plan.experiment(1).unwrap();
        assert!((load_at(experiment.live.share.unwrap()) - load).abs() < 0.01 * load);
        let held = vcpus_of(CORES, experiment.live.reserve, experiment.live.share.unwrap());
        let wanted =
            rehearse(&experiment, experiment.scheduler().unwrap(), &[]).demand.busy_vcpus();
        assert!(wanted <= held && vcpus * 115 / 100 <= wanted, "{wanted} of {held}");

        let record = record(&plan);
        let tasks = record.tasks.len() as u32;
        assert_eq!(tasks, plan.vcpus * plan.each);
        assert_eq!(record.finished() as u32, tasks);
        // Of what is taken away it may come with the notice.
        assert!(record.counts.checkpoints >= tasks - 2, "{:?}", record.counts);
        assert!(record.counts.restores > 0, "{:?}", record.counts);
        assert_eq!((record.counts.preemptions, record.counts.rejected), (1, 0));
    }
}

#[test]
fn a_cell_takes_seconds_at_any_speedup() {
    for load in [0.25, 0.5, 1.0] {
        for speedup in [10.0, 20.0, 30.0, 50.0, 100.0, 200.0] {
            for (quick, least, most) in [(false, 3.5, 20.0), (true, 1.0, 20.0)] {
                let plan = CellPlan::new(speedup, load, CORES, quick).unwrap();
                let took = record(&plan).makespan().unwrap().as_secs_f64() / speedup;
                assert!((least..most).contains(&took), "{plan:?}: {took} s");
            }
        }
    }
}

#[test]
fn a_load_of_too_few_vcpus_is_refused() {
    let error = CellPlan::new(10.0, 0.05, CORES, false).unwrap_err();
    assert!(
        error.to_string().contains("at this load the host has room for 1 emulated vCPUs"),
        "{error}"
    );
    assert!(error.to_string().contains("give 0.09 or more"), "{error}");
    assert_eq!(CellPlan::new(10.0, 0.09, CORES, false).unwrap().vcpus, 2);
    // Two vCPUs leave nothing to go on elsewhere: nothing is taken away.
    assert_eq!(record(&CellPlan::new(10.0, 0.09, CORES, false).unwrap()).counts.preemptions, 0);
}

#[test]
fn what_is_said_of_the_tasks_is_so() {
    let experiment = CellPlan::new(10.0, 1.0, CORES, false).unwrap().experiment(1).unwrap();
    let conditions = conditions();
    for task in experiment.setup.bag.tasks.iter() {
        assert_eq!(task.memory, conditions.memory);
        let runtime = *task.runtime.values().min().unwrap();
        let (least, most) = conditions.task_s;
        assert!((least..=most).contains(&runtime.as_secs_f64()));
        let plan = experiment.setup.checkpoint.plan(task.memory, runtime);
        assert_eq!(plan.count(), 1);
        assert!((plan.cost.as_secs_f64() - conditions.checkpoint_s).abs() < 1e-9);
    }
    assert_eq!(experiment.live.reserve, conditions.reserve);
}

#[test]
fn only_what_was_disturbed_in_neither_is_compared() {
    // The tasks of the VM that is taken away are disturbed as it is.
    let twin = record(&CellPlan::new(50.0, 0.5, CORES, false).unwrap());
    let disturbed = twin.tasks.iter().filter(|t| t.attempts.len() > 1).count();
    let undisturbed = errors(&twin, &twin);
    assert!(disturbed > 0, "{twin:?}");
    assert_eq!(undisturbed, vec![0.0; twin.tasks.len() - disturbed]);

    let mut live = twin.clone();
    let alone: Vec<_> =
        (0..live.tasks.len()).filter(|&n| live.tasks[n].attempts.len() == 1).collect();
    let took = |task: &TaskHistory| task.finished.unwrap().since(task.attempts[0].started.unwrap());
    // One a tenth longer, one that began anew, one that came to no end.
    let first = &mut live.tasks[alone[0]];
    first.finished =
        Some(first.finished.unwrap() + Span::from_micros(took(first).as_micros() / 10));
    let again = live.tasks[alone[1]].attempts[0].clone();
    live.tasks[alone[1]].attempts.push(again);
    live.tasks[alone[2]].finished = None;
    let errors = errors(&live, &twin);
    assert_eq!(errors.len(), undisturbed.len() - 2);
    assert!((errors[0] - 0.1).abs() < 1e-6, "{errors:?}");
    assert!(errors[1..].iter().all(|e| *e == 0.0), "{errors:?}");
}
