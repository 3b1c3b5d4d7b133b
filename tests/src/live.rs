//! Tests that run live.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::dormouse;

/// Live runs share the processors: one at a time.
static ONE: Mutex<()> = Mutex::new(());

/// The turn of a live test, or `None`, having said why, where this host can't run one.
///
/// # Panics
///
/// With `CI=true`, where the host can't: there it must.
#[must_use]
pub fn live_turn() -> Option<MutexGuard<'static, ()>> {
    let turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let doctor = Command::new(dormouse()).arg("doctor").output();
    let (can, why) = match &doctor {
        Ok(said) => (said.status.success(), String::from_utf8_lossy(&said.stdout).into_owned()),
        Err(error) => (false, error.to_string()),
    };
    if can {
        return Some(turn);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "this host can't run live:\n{why}");
    println!("skipped: this host can't run live, as `dormouse doctor` says");
    None
}
