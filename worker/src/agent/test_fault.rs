//! Faults for tests of the verdict (a run in which one happens must not be called faithful) and of
//! what is left of a VM whose owner fails.
//!
//! They exist in builds with debug assertions only, and all but the last happen once in a worker's process, if the
//! environment variable `DORMOUSE_FAULT` names them: `lift-200ms`, a task's quota is lifted for that long; `skip-hold`,
//! a task or a job is not stopped after its checkpoint; `panic-at-freeze`, the owner of a VM that is to freeze panics;
//! `forged-trails`, answers have trails that nobody computed.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use dormouse_tasks::result::TaskResult;

/// Returns for how long a task's quota is to be lifted; `None`: a test hasn't requested this fault, or it was injected
/// already.
pub(crate) fn lifts_quota_for() -> Option<Duration> {
    static DONE: AtomicBool = AtomicBool::new(false);
    once("lift-200ms", &DONE).then_some(Duration::from_millis(200))
}

/// Returns whether the task is to run on that should be stopped after its checkpoint.
pub(crate) fn skips_hold() -> bool {
    static DONE: AtomicBool = AtomicBool::new(false);
    once("skip-hold", &DONE)
}

/// Panics in the owner of a VM that is to freeze, if a test has requested that.
///
/// # Panics
/// If a test has requested this fault.
pub(crate) fn panics_at_freeze() {
    static DONE: AtomicBool = AtomicBool::new(false);
    assert!(!once("panic-at-freeze", &DONE), "a fault that a test has asked for");
}

/// Returns the answer with a false trail, as of a worker that did no pass and only waited, if a test has requested
/// that.
pub(crate) fn forges_trail(answer: String) -> String {
    if !is_named("forged-trails") {
        return answer;
    }
    let Ok(mut forged) = serde_json::from_str::<TaskResult>(&answer) else { return answer };
    let points = forged.trail.iter_mut().flat_map(|trail| &mut trail.points);
    for point in points.chain(&mut forged.trails) {
        *point = !*point;
    }
    serde_json::to_string(&forged).unwrap_or(answer)
}

fn once(fault: &str, done: &AtomicBool) -> bool {
    !done.load(Ordering::Relaxed) && is_named(fault) && !done.swap(true, Ordering::Relaxed)
}

fn is_named(fault: &str) -> bool {
    cfg!(debug_assertions) && std::env::var("DORMOUSE_FAULT").is_ok_and(|named| named == fault)
}
