//! Faults for tests of the verdict (a run in which one happens must not be called faithful) and of
//! what is left of a VM whose owner fails.
//!
//! They exist in builds with debug assertions only, and happen once in a worker's life where the
//! environment variable `DORMOUSE_FAULT` names them: `lift-200ms`, a task's quota is lifted for
//! that long; `skip-hold`, a task or a job does not stand still after
//! its checkpoint; `panic-at-freeze`, the
//! owner of a VM that is to freeze panics.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// For how long the quota of the task that is looked at is to be lifted, if it is.
pub(crate) fn lifts_quota_for() -> Option<Duration> {
    static DONE: AtomicBool = AtomicBool::new(false);
    once("lift-200ms", &DONE).then_some(Duration::from_millis(200))
}

/// Whether the task that should stand still after its checkpoint goes on.
pub(crate) fn skips_hold() -> bool {
    static DONE: AtomicBool = AtomicBool::new(false);
    once("skip-hold", &DONE)
}

/// Panics where the owner of a VM should.
///
/// # Panics
/// That is what it is for.
pub(crate) fn panics_at_freeze() {
    static DONE: AtomicBool = AtomicBool::new(false);
    assert!(!once("panic-at-freeze", &DONE), "a fault that a test has asked for");
}

fn once(fault: &str, done: &AtomicBool) -> bool {
    cfg!(debug_assertions)
        && !done.load(Ordering::Relaxed)
        && std::env::var("DORMOUSE_FAULT").is_ok_and(|named| named == fault)
        && !done.swap(true, Ordering::Relaxed)
}
