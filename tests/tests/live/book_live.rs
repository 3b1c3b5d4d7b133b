//! Pages of the book whose commands run live: typed in order, on hosts of their own where the page has several.
//!
//! They need what the other live tests need (`whole_runs.rs`), and `ip` for hosts.

use std::path::Path;

use dormouse_tests::{
    dormouse, live_turn, nothing_is_left_but,
    page::{Need, Player},
    shared_live_turn, traces,
};

/// Pages that show how exactly time is kept.
const ALONE: [&str; 2] = ["concepts/fidelity.md", "doctor.md"];

/// Plays a page of `docs`.
fn play(name: &str) {
    let turn = if ALONE.contains(&name) { live_turn() } else { shared_live_turn() };
    let Some(_turn) = turn else { return };
    let before = traces();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let page = repository.join("docs").join(name);
    let has = vec![Need::Nothing, Need::Live];
    let player = Player { repository, dormouse: dormouse().clone(), has, folder: None };
    let played = player.play(&page).unwrap_or_else(|error| panic!("{error}"));
    println!("{name}: {}", played.said());
    assert!(played.wrong.is_empty(), "{}", played.wrong.join("\n"));
    nothing_is_left_but(&before);
}

#[test]
fn your_own_program() {
    play("own-programs.md");
}

#[test]
fn a_task() {
    play("how-to/task.md");
}

#[test]
fn the_metadata_of_a_vm() {
    play("metadata.md");
}

#[test]
fn several_hosts() {
    play("tutorials/hosts.md");
}

#[test]
fn fidelity() {
    play("concepts/fidelity.md");
}

#[test]
fn a_run_that_is_stopped() {
    play("how-to/resume.md");
}

#[test]
fn a_run_that_is_watched() {
    play("how-to/watch.md");
}

#[test]
fn a_log_of_jobs() {
    play("how-to/log.md");
}

#[test]
fn faults() {
    play("faults.md");
}

#[test]
fn a_host_that_is_proved() {
    play("doctor.md");
}
