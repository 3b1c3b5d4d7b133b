//! A fault that tests want, to see that a run which has it is not called faithful. Builds for use
//! have none.

use std::time::Duration;

/// For how long a quota is to be lifted once in this process, without need: the first time this is
/// called, where the environment says `DORMOUSE_FAULT=lift-200ms`.
#[cfg(debug_assertions)]
pub(crate) fn lift_once() -> Option<Duration> {
    use std::sync::atomic::{AtomicBool, Ordering};

    static DONE: AtomicBool = AtomicBool::new(false);
    let wanted = std::env::var("DORMOUSE_FAULT").is_ok_and(|fault| fault == "lift-200ms");
    (wanted && !DONE.swap(true, Ordering::Relaxed)).then_some(Duration::from_millis(200))
}

/// No fault.
#[cfg(not(debug_assertions))]
pub(crate) const fn lift_once() -> Option<Duration> {
    None
}
