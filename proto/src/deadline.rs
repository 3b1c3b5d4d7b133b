//! Deadline of a checkpoint's transfer, as both sides reckon it.

use std::time::Duration;

use tokio::time::Instant;

/// Time that every transfer is granted in addition to the time for its bytes.
const LEAST: Duration = Duration::from_secs(60);
/// The slowest mean rate at which a transfer may continue, in bytes per second.
const SLOWEST: u64 = 1 << 20;

/// The deadline of a transfer: a minute plus the time for its bytes at 1 MiB a second. Without a deadline, a transfer
/// that is very slow but never stops could delay a task for hours.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    begun: Instant,
    least: Duration,
}

impl Deadline {
    /// The deadline of a transfer that begins now.
    #[must_use]
    pub fn begin() -> Self {
        Self { begun: Instant::now(), least: LEAST }
    }

    /// The deadline of a transfer that begins now and may take `least` in addition to the time for its bytes.
    #[must_use]
    pub fn within(least: Duration) -> Self {
        Self { begun: Instant::now(), least }
    }

    /// Time that a transfer of `bytes` bytes has left.
    #[must_use]
    pub fn left(&self, bytes: u64) -> Duration {
        let copying = Duration::from_micros(bytes.saturating_mul(1_000_000) / SLOWEST);
        (self.least + copying).saturating_sub(self.begun.elapsed())
    }

    /// Error message for a transfer whose time is up.
    #[must_use]
    pub fn missed(&self, bytes: u64) -> String {
        let s = self.begun.elapsed().as_secs_f64();
        format!(
            "{bytes} bytes of it moved in {s:.1} s, more slowly than {} KiB a second; see that the \
             network and the disks on either side keep up",
            SLOWEST >> 10
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_has_longer_the_more_there_is_of_it() {
        let deadline = Deadline::begin();
        let (small, large) = (deadline.left(0), deadline.left(600 << 20));
        assert!(small <= Duration::from_secs(60) && small > Duration::from_secs(50), "{small:?}");
        assert!(large > Duration::from_secs(650) && large <= Duration::from_secs(660), "{large:?}");
        assert_eq!(Deadline::within(Duration::ZERO).left(0), Duration::ZERO);
    }
}
