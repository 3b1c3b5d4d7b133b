//! A second connection for a link that has gone silent, before the first is given up.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::transport::SessionTransport;

/// The part of the time after which a side is lost, after which a silent link is dialled again.
const SILENT: u32 = 3;
/// The part of it that one attempt may take: the next one begins anew, where the system would go on
/// waiting ever longer for an answer to what was lost.
const ATTEMPT: u32 = 6;

/// Dials again once nothing has been heard since then for a third of the time after which a side is
/// lost, until a connection stands on which the coordinator has proved itself.
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
