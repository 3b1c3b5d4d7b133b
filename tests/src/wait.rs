//! Waiting for what other processes do.

use std::time::{Duration, Instant};

/// Waits until `done` gives something.
///
/// # Panics
///
/// It does not within the limit; with what it saw last.
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
