//! Tests that faults hit their targets, and count only if they were carried out.

use dormouse_simulator::faults::{CrashPoint, Fault, Millis, PlannedFault};
use dormouse_simulator::outcome::Outcome;
use dormouse_simulator::plan::{Plan, Rates};
use dormouse_simulator::run::Playground;
use dormouse_simulator::trace::Lines;

/// The outcome of a run that has only these faults. Its workers come after a tenth of a second, and each operation on
/// the disk takes `slow_sync`.
fn played(slow_sync: Millis, faults: &[(Millis, Fault)]) -> Outcome {
    let mut rates = Rates::default();
    rates.set("calm", 1.0).expect("it is there");
    let faults = faults.iter().map(|(at, fault)| PlannedFault { at: *at, fault: fault.clone() });
    let mut plan = Plan { slow_sync, faults: faults.collect(), ..Plan::draw(1, &rates) };
    plan.workers.iter_mut().for_each(|worker| worker.comes = 100);
    let playground = Playground { lines: Lines::Kept, ..Playground::new() };
    let outcome = playground.play(&plan);
    assert_eq!(outcome.violation, None, "{}", outcome.trace);
    outcome
}

const fn kill(point: CrashPoint) -> Fault {
    Fault::CoordinatorKill { point, down: 50 }
}

fn count(outcome: &Outcome, name: &str) -> u64 {
    outcome.faults.get(name).copied().unwrap_or(0)
}

#[test]
fn a_coordinator_is_killed_while_it_begins() {
    let outcome = played(100, &[(1, kill(CrashPoint::Now))]);
    assert_eq!((outcome.coordinators, count(&outcome, "kill")), (2, 1));
    let trace = &outcome.trace;
    assert!(trace.contains("\n0.001000 coordinator 1 is killed: kill\n"), "{trace}");
    assert!(trace.contains("\n0.051000 coordinator 2 starts\n"), "{trace}");
}

#[test]
fn a_coordinator_that_goes_on_is_killed_as_it_cuts_its_log() {
    for point in [CrashPoint::BeforeWrite, CrashPoint::AfterWrite, CrashPoint::AfterSync] {
        // The first is away when the second is to die.
        let outcome = played(0, &[(600, kill(CrashPoint::Now)), (610, kill(point))]);
        assert_eq!((outcome.coordinators, count(&outcome, "kill-at")), (3, 1), "{point:?}");
        let died = "\n0.650000 coordinator 2 is killed: kill-at\n";
        assert!(outcome.trace.contains(died), "{point:?}: {}", outcome.trace);
    }
}

#[test]
fn each_death_comes_at_its_own_point_and_is_followed_by_its_own_outage() {
    let slow = Fault::CoordinatorKill { point: CrashPoint::AfterMessages(3), down: 700 };
    let outcome = played(0, &[(200, slow), (200, kill(CrashPoint::BeforeWrite))]);
    assert_eq!((outcome.coordinators, count(&outcome, "kill-at")), (3, 2));
    let at = |what: &str| {
        let line = outcome.trace.lines().find(|line| line.ends_with(what)).expect("it is there");
        let (seconds, _) = line.split_once(' ').expect("it begins with its time");
        seconds.replace('.', "").parse::<Millis>().expect("a number") / 1_000
    };
    let down = |n: u32| {
        at(&format!("coordinator {} starts", n + 1))
            - at(&format!("coordinator {n} is killed: kill-at"))
    };
    let mut downs = [down(1), down(2)];
    downs.sort_unstable();
    assert_eq!(downs, [50, 700]);
}

#[test]
fn a_coordinator_that_stands_still_hears_nothing_and_stores_nothing() {
    let during = |outcome: &Outcome, what: &str| {
        let is_then = |line: &&str| {
            line.split('.').next() == Some("0") && *line >= "0.602" && *line < "0.900"
        };
        outcome.trace.lines().filter(is_then).filter(|line| line.contains(what)).count()
    };
    let pause = Fault::CoordinatorPause { lasts: 300 };
    let (without, with) = (played(0, &[]), played(0, &[(600, pause)]));
    for what in ["is heard", "durable: "] {
        assert!(during(&without, what) > 0, "{what}: {}", without.trace);
        assert_eq!(during(&with, what), 0, "{what}: {}", with.trace);
    }
    assert_eq!((with.coordinators, count(&with, "coordinator-pause")), (1, 1));
}

/// The disk blocks for longer than the time after which somebody is warned of that; the run still waits for its last
/// steps.
#[test]
fn the_last_steps_of_a_run_are_waited_for_however_long_its_disk_stands_still() {
    let without = played(100, &[]);
    let is_end = |line: &&str| line.ends_with("coordinator 1 ends: the run is over");
    let line = without.trace.lines().find(is_end).expect("it ends");
    let (seconds, _) = line.split_once(' ').expect("it begins with its time");
    let over = seconds.replace('.', "").parse::<Millis>().expect("a number") / 1_000;
    let mut longest = 0;
    for before in [20, 60, 100] {
        let pause = Fault::CoordinatorPause { lasts: 24_000 };
        let outcome = played(100, &[(over - before, pause)]);
        assert_eq!((outcome.coordinators, outcome.ending.word()), (1, "complete"), "{before} ms");
        longest = longest.max(outcome.simulated_ms);
    }
    assert!(longest >= over + 20_000, "none of them stood still: {longest}, {over}");
}

#[test]
fn what_hits_nobody_does_not_count() {
    let worker_kill = Fault::WorkerKill { worker: 0, down: Some(10), has_certificate: true };
    let nobody = Fault::WorkerPause { worker: 77, lasts: 10 };
    let broken = Fault::Break { worker: 0, hears: dormouse_simulator::faults::Hears::Both };
    let late = Fault::LateMessages { worker: 0, by: 5 };
    // No worker has come yet, and there is no coordinator a moment after it was killed.
    let again = kill(CrashPoint::Now);
    let faults =
        [(1, worker_kill), (1, nobody), (1, broken), (1, late), (2, again.clone()), (3, again)];
    let outcome = played(0, &faults);
    let counted: Vec<_> = outcome.faults.into_iter().collect();
    assert_eq!(counted, [("kill", 1)]);
}
