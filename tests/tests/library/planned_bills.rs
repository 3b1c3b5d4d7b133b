//! What a plan says that its run costs, beside the bill of a run in which nothing goes wrong.

use super::runs::{played, record_of, with};

/// In j60 VMs are kept idle to the end of the run; some tasks are stolen, so that it ends 2 % before the plan does.
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

/// The tasks of a workflow that follow others have no place in the plan.
#[test]
fn the_plan_of_a_workflow_is_not_whole() {
    let tasks = "workload={ kind = \"bag\", deadline = \"45m\", task = [{ name = \"a\", runtime = \"60s\" }, \
                 { name = \"b\", count = 3, runtime = \"60s\", after = [\"a\"] }] }";
    let experiment = with("j60", &[tasks]).unwrap();
    let plan = experiment.plan().unwrap().unwrap();
    let planned = experiment.planned_figures(&plan).unwrap();
    assert_eq!((planned.tasks, planned.of, planned.is_whole()), (1, 4, false));
}
