//! Reaping killed processes that are slow to die.

use std::{mem::ManuallyDrop, thread};

use super::ChildProcess;

/// Reaps a killed process in a thread of its own: if it is frozen or throttled, its death takes long. `used`, which
/// the process may use until then, is dropped afterwards.
pub(crate) fn reap_later<T: Send + 'static>(task: ChildProcess, used: T) {
    let used = ManuallyDrop::new(used);
    let reaping = thread::Builder::new().name("reaper".to_owned()).spawn(move || {
        task.reap_ended();
        drop(ManuallyDrop::into_inner(used));
    });
    if let Err(error) = reaping {
        // Rather lost than taken away from a process that may still use it.
        tracing::warn!(%error, "a killed process still exists at the worker's end");
    }
}
