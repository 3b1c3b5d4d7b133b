//! Changes of a run as server-sent events, for one page.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::sse::Event;
use futures_util::stream::{self, Stream};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::FollowedRun;

/// Greatest number of changes in one message.
const BATCH: usize = 1_000;
/// Least time between two messages to a page that is up to date.
const PACE: Duration = Duration::from_millis(100);
/// Time between two messages about the run's present state.
const SAY_NOW: Duration = Duration::from_millis(500);

/// One page that follows a run, with the index of the next change that it needs.
struct ChangeReader {
    followed: Arc<FollowedRun>,
    grown: watch::Receiver<u64>,
    run: String,
    next: usize,
    said: Option<Instant>,
    /// Tells whether the page's token is still valid: a token can be renewed.
    may_look: Box<dyn Fn() -> bool + Send>,
    /// Place of the page among the pages that may follow the run at once.
    _place: OwnedSemaphorePermit,
}

/// The changes from index `next` on, and all later ones, for as long as the page may read.
pub(super) fn changes(
    followed: Arc<FollowedRun>,
    next: usize,
    place: OwnedSemaphorePermit,
    may_look: impl Fn() -> bool + Send + 'static,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let (grown, run) = (followed.grown(), followed.run());
    let may_look = Box::new(may_look);
    let reader = ChangeReader { followed, grown, run, next, said: None, may_look, _place: place };
    stream::unfold(reader, |mut reader| async move {
        let event = reader.next_event().await?;
        Some((Ok(event), reader))
    })
}

impl ChangeReader {
    /// The next message; `None` if there are no more for this page.
    async fn next_event(&mut self) -> Option<Event> {
        loop {
            let run = self.followed.run();
            if run != self.run {
                (self.next, self.said) = (0, None);
                let is_first = self.run.is_empty();
                self.run.clone_from(&run);
                if !is_first {
                    let event = Event::default().event("other-run");
                    return Some(event.data(json!({ "run": run }).to_string()));
                }
            }
            if self.said.is_none_or(|at| at.elapsed() >= SAY_NOW) {
                self.said = Some(Instant::now());
                let now = Event::default().event("now").data(self.followed.now().to_string());
                return (self.may_look)().then_some(now);
            }
            let (batch, next) = self.followed.batch(self.next, BATCH);
            if next > self.next {
                if next - self.next < BATCH {
                    // Changes that come at the same time go into one message.
                    sleep(PACE).await;
                    let (batch, next) = self.followed.batch(self.next, BATCH);
                    self.next = next;
                    return Some(Event::default().id(next.to_string()).data(batch));
                }
                self.next = next;
                return Some(Event::default().id(next.to_string()).data(batch));
            }
            let until_now =
                self.said.map_or(Duration::ZERO, |at| SAY_NOW.saturating_sub(at.elapsed()));
            // The loop above checks whether the run grew.
            let _ = timeout(until_now, self.grown.changed()).await;
        }
    }
}
