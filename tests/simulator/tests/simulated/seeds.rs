//! Tests of a few hundred seeds: no invariant is broken, and a seed's run is the same whenever it is played.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use dormouse_simulator::campaign::Campaign;
use dormouse_simulator::plan::{Plan, Rates};
use dormouse_simulator::run::Playground;
use dormouse_simulator::trace::Lines;

#[test]
fn no_seed_breaks_an_invariant() {
    let rates = Rates::default();
    let campaign =
        Campaign { seeds: 0..300, threads: 2, rates, lasts: None, first: false, says_every: 0 };
    let tally = campaign.run(&Playground::new(), &AtomicBool::new(false));
    let found: Vec<_> = tally
        .violations
        .iter()
        .filter_map(|it| Some((it.seed, it.violation.as_ref()?.to_string())))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(tally.runs, 300);
    let complete = tally.endings.get("complete").copied().unwrap_or(0);
    assert!(complete > 150, "most runs should come to their end: {tally}");
    assert!(tally.restored > 0 && tally.coordinators > 450, "{tally}");
}

/// A coordinator is killed before it has logged its welcome to a worker, which then gets another host number in the
/// same session; the worker seals its checkpoints as before.
#[test]
fn a_worker_that_is_another_host_seals_as_before() {
    let outcome = Playground::new().play(&Plan::draw(17_721, &Rates::default()));
    assert!(outcome.violation.is_none(), "{:?}", outcome.violation);
}

/// A job is restored on a host that has just joined: what it had computed elsewhere is no CPU time of that host.
#[test]
fn the_account_of_a_restored_job_is_of_its_own_start() {
    let outcome = Playground::new().play(&Plan::draw(80_002_845, &Rates::default()));
    assert!(outcome.violation.is_none(), "{:?}", outcome.violation);
}

/// A job is given up for which another one waits: nothing is left that could happen, and the run says so.
#[test]
fn a_run_ends_whose_last_job_waits_for_one_that_was_given_up() {
    let outcome = Playground::new().play(&Plan::draw(80_009_297, &Rates::default()));
    assert!(outcome.violation.is_none(), "{:?}", outcome.violation);
}

#[test]
fn the_same_seed_is_the_same_run() {
    let playground = Playground { lines: Lines::Kept, ..Playground::new() };
    for seed in 0..40 {
        let plan = Plan::draw(seed, &Rates::default());
        let (first, second) = (playground.play(&plan), playground.play(&plan));
        if first.digest != second.digest {
            let (first, second) = (first.trace, second.trace);
            let differs = first.lines().zip(second.lines()).enumerate().find(|(_, (a, b))| a != b);
            panic!("seed {seed} differs from line on: {differs:#?}");
        }
    }
}

#[test]
fn a_seed_is_the_same_run_in_another_process() {
    let playground = Playground::new();
    for seed in [3_u64, 14, 15] {
        let here = playground.play(&Plan::draw(seed, &Rates::default())).digest;
        let simulate = Command::new(env!("CARGO_BIN_EXE_simulate"))
            .args(["--trace", "--seeds", &seed.to_string()])
            .output()
            .expect("it is built beside the tests");
        let printed = String::from_utf8(simulate.stdout).expect("text");
        let ended = format!("trace {here}");
        assert!(printed.lines().any(|line| line.ends_with(&ended)), "seed {seed}: {ended}");
    }
}
