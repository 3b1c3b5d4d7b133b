//! Whole runs through real gRPC and TLS over a simulated network, by seed: the coordinator's actors and server, and
//! workers' sessions, are the real code. Each is on a host of turmoil, whose own clock advances only when nothing can
//! be done. Coordinators and workers are killed and started again; links are cut, held back and slowed.
//!
//! A seed fixes when each action happens, and how long each message takes. What TLS draws (keys, and with them the
//! lengths of messages) comes from the system: a seed that fails usually fails again, but not always.

mod coordinator;
mod network;
mod played;
mod scenario;
mod spread;
mod witness;
mod worker;

use played::{Played, play};
use scenario::{Action, Scenario};

/// Number of seeds, unless `TURMOIL_SEEDS` sets another.
const SEEDS: u64 = 12;

#[test]
fn runs_keep_their_promises_through_crashes_partitions_and_delays() {
    let seeds = std::env::var("TURMOIL_SEEDS").map_or(SEEDS, |text| text.parse().unwrap());
    let first = std::env::var("TURMOIL_FIRST").map_or(1, |text| text.parse().unwrap());
    let mut all = Played::default();
    let mut broken = Vec::new();
    for seed in first..first + seeds {
        match play(&Scenario::draw(seed)) {
            Ok(played) => all.add(&played),
            Err(why) => broken.push(format!("seed {seed}: {why}")),
        }
    }
    println!("{seeds} seeds: {all:?}");
    assert!(broken.is_empty(), "{} of {seeds}:\n{}", broken.len(), broken.join("\n"));
    // Otherwise nothing of it was tried.
    assert!(all.coordinators > seeds && all.hosts_lost > 0 && all.reconnects > 0, "{all:?}");
}

#[test]
fn a_run_without_faults_loses_nobody() {
    let calm = Scenario { actions: Vec::new(), ..Scenario::draw(1) };
    let played = play(&calm).unwrap();
    assert_eq!(
        (played.coordinators, played.hosts_lost, played.reconnects),
        (1, 0, 0),
        "{played:?}"
    );
}

/// The checks can fail: a run whose workers are never reached again is found to lose tasks.
#[test]
fn a_run_whose_workers_are_never_reached_again_is_found_to_lose_tasks() {
    let cut = |worker| (std::time::Duration::from_millis(500), Action::Partition { worker });
    let mut scenario = Scenario::draw(2);
    scenario.actions = (0..scenario.workers).map(cut).collect();
    scenario.repaired = false;
    let why = play(&scenario).unwrap_err();
    assert!(why.contains("tasks are lost"), "{why}");
}
