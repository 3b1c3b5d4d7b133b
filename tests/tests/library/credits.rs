//! The credits of burstable VMs over their lives, as a run's page draws them.

use dormouse_analysis::RunRecord;
use dormouse_model::{Event, Notice, Report, Step};
use dormouse_units::{Credits, Span, Time};

use super::runs::{played, record_of, with};

const NAME: &str = "j60-sc2";

fn is_of_credits(step: &Step) -> bool {
    matches!(step.event, Event::Machine { report: Report::Credits { .. }, .. })
}

/// The times of launch and end of a VM, and its curve of credits.
type Life = (Time, Time, Vec<(Time, Credits)>);

/// The curve of credits of each burstable VM.
fn curves(record: &RunRecord, steps_of: &str) -> Vec<Life> {
    let setup = with(NAME, &[]).unwrap().setup;
    let curve = |vm: &dormouse_analysis::VmHistory| {
        let points = record.credits(vm.id, &setup.catalogue);
        let is_in_order = points.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        assert!(is_in_order, "{steps_of}: {points:?}");
        (vm.launched, vm.end_or(record.end()), points)
    };
    let all = record.vms.values().map(curve).filter(|(.., points)| !points.is_empty());
    all.collect()
}

#[test]
fn a_curve_goes_from_the_launch_to_the_end_of_its_vm() {
    let experiment = with(NAME, &[]).unwrap();
    let steps = played(&experiment).0;
    let told = curves(&record_of(&experiment, &steps), "as it was");
    assert_eq!(told.len(), 2, "two VMs are burstable");
    // A live run is told of credits late, and of an idle VM never: the curve has the same ends.
    let late: Vec<Step> = steps.iter().filter(|step| !is_of_credits(step)).cloned().collect();
    let untold = curves(&record_of(&experiment, &late), "nothing was told");
    assert_eq!(untold.len(), told.len());
    for (launched, end, points) in told.iter().chain(&untold) {
        let (first, last) = (points[0], points[points.len() - 1]);
        assert_eq!(first, (*launched, Credits::ZERO), "a T3 begins with none");
        assert_eq!(last.0, *end);
        assert!(last.1 > Credits::ZERO, "{points:?}");
    }
}

/// Reported credits lie on the line from the launch: while a VM boots, it earns 36 credits an hour, as its type says.
#[test]
fn what_is_reported_lies_on_the_line_from_the_launch() {
    let experiment = with(NAME, &[]).unwrap();
    let steps = played(&experiment).0;
    let first = steps.iter().find_map(|step| {
        let told = step.notices.iter().find_map(|notice| match notice {
            Notice::Credits { balance, .. } => Some(*balance),
            _ => None,
        });
        Some((step.at, told?))
    });
    let (at, balance) = first.unwrap();
    assert_eq!(at.since(Time::ZERO), Span::from_secs(60));
    assert_eq!(balance.as_vcpu_micros(), 36 * 60_000_000 / 60);
}
