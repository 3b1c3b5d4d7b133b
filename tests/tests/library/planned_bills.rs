//! The cost that a plan predicts, compared with the bill of a run without interruptions.

use super::runs::{played, record_of, with};

/// A run without trouble costs what was planned. In j60 VMs are kept idle to the end of the run; some tasks are moved
/// to idle VMs, so that it ends 2 % before the plan.
#[test]
fn a_run_without_trouble_costs_what_was_planned() {
    for set in [
        &[][..],
        &["cloud.bill-boot=false"],
        &["cloud.tariff=\"started-hour\""],
        &["scheduler.keep-idle=\"while-spot-works\""],
        &["scheduler.name=\"ils-on-demand\""],
    ] {
        let experiment = with("j60", set).unwrap();
        let plan = experiment.plan().unwrap().unwrap();
        let planned = experiment.planned_figures(&plan).unwrap();
        let (steps, _) = played(&experiment);
        let record = record_of(&experiment, &steps);
        let ratio = record.cost().as_usd() / planned.bill.as_usd();
        assert!((ratio - 1.0).abs() < 0.03, "{set:?}: {} of {planned:?}", record.cost());
        assert!(planned.is_whole(), "{planned:?}");
    }
}

/// The plan of a workflow is not whole: tasks that follow others have no place in it.
#[test]
fn the_plan_of_a_workflow_is_not_whole() {
    let tasks = "workload={ kind = \"bag\", deadline = \"45m\", task = [{ name = \"a\", runtime = \"60s\" }, \
                 { name = \"b\", count = 3, runtime = \"60s\", after = [\"a\"] }] }";
    let experiment = with("j60", &[tasks]).unwrap();
    let plan = experiment.plan().unwrap().unwrap();
    let planned = experiment.planned_figures(&plan).unwrap();
    assert_eq!((planned.tasks, planned.of, planned.is_whole()), (1, 4, false));
}
