//! Reaping what was killed and is slow to die.

use std::{mem::ManuallyDrop, thread};

use super::ChildProcess;

/// Reaps a process that was killed, in a thread of its own: frozen or throttled, it may take its
/// time. What it may use until then is dropped only then.
pub(crate) fn reap_later<T: Send + 'static>(task: ChildProcess, used: T) {
    let used = ManuallyDrop::new(used);
    let reaping = thread::Builder::new().name("reaper".to_owned()).spawn(move || {
        task.reap_ended();
        drop(ManuallyDrop::into_inner(used));
    });
    if let Err(error) = reaping {
        // Rather lost than taken away from a process that may still use it.
        tracing::warn!(%error, "a killed process is not reaped before the worker's end");
    }
}
