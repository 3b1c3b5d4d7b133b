//! The changes of a run as server-sent events, for one page.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::sse::Event;
use futures_util::stream::{self, Stream};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::Followed;

/// The most changes in one message.
const BATCH: usize = 1_000;
/// The least time between two messages of a page that has all there is.
const PACE: Duration = Duration::from_millis(100);
/// The time between two messages that say how the run stands.
const SAY_NOW: Duration = Duration::from_millis(500);

/// One page that follows a run, and the index of the change that it wants next.
struct Reader {
    followed: Arc<Followed>,
    grown: watch::Receiver<u64>,
    run: String,
    next: usize,
    said: Option<Instant>,
    /// Whether who looks on may still: a token can be renewed.
    may_look: Box<dyn Fn() -> bool + Send>,
    /// The page's place among those that may be there at once.
    _place: OwnedSemaphorePermit,
}

/// The changes from this index on, and all that come for as long as whoever looks on may.
pub(super) fn changes(
    followed: Arc<Followed>,
    next: usize,
    place: OwnedSemaphorePermit,
    may_look: impl Fn() -> bool + Send + 'static,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let (grown, run) = (followed.grown(), followed.run());
    let may_look = Box::new(may_look);
    let reader = Reader { followed, grown, run, next, said: None, may_look, _place: place };
    stream::unfold(reader, |mut reader| async move {
        let event = reader.event().await?;
        Some((Ok(event), reader))
    })
}

impl Reader {
    /// The next event, when there is one; `None`: there are no more for this reader.
    async fn event(&mut self) -> Option<Event> {
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
                    // Those that come at once come together.
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
            // Whether it grew or not is seen above.
            let _ = timeout(until_now, self.grown.changed()).await;
        }
    }
}
