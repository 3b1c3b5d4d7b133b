//! A second connection for a link that has gone silent, before the first is given up.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::transport::SessionTransport;

/// A silent connection is replaced after 1/n of the time after which a side counts as lost; this is n.
const SILENT: u32 = 3;
/// A single attempt to connect takes at most 1/n of the time after which a side is lost. Then a new one begins, as the
/// system would wait ever longer for an answer.
const ATTEMPT: u32 = 6;

/// Connects again if nothing was received for a third of the time after which a side is lost, and repeats that until
/// a verified connection is established.
pub(super) async fn redial_silent<T: SessionTransport>(
    whom: T,
    heard: Instant,
    lost_after: Duration,
) -> T::Connection {
    let mut next = heard + lost_after / SILENT;
    loop {
        sleep_until(next).await;
        next = Instant::now() + lost_after / ATTEMPT;
        if let Ok(Ok(connection)) = timeout(lost_after / ATTEMPT, whom.dial_coordinator()).await {
            return connection;
        }
    }
}
