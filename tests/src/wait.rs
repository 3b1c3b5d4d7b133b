//! Waiting for other processes.

use std::time::{Duration, Instant};

/// Waits until `done` returns a value, and returns that.
///
/// # Panics
///
/// `done` returns no value within the limit; the message has its last error.
pub fn wait_for<T>(what: &str, limit: Duration, mut done: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match done() {
            Ok(value) => return value,
            Err(last) if begun.elapsed() > limit => panic!("{what}: not within {limit:?}; {last}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
