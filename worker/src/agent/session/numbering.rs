//! Numbers of what goes each way, so that a reconnect neither loses nor repeats anything.

use std::collections::VecDeque;

/// What was put out and is not yet acknowledged, numbered from 1.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    /// Number of the first that is kept.
    first: u64,
    kept: VecDeque<T>,
    /// How many of the kept ones were sent on this connection.
    sent: usize,
}

impl<T: Clone> Outbox<T> {
    pub(crate) fn new() -> Self {
        Self { first: 1, kept: VecDeque::new(), sent: 0 }
    }

    pub(crate) fn push(&mut self, item: T) {
        self.kept.push_back(item);
    }

    /// Whether something waits to be sent.
    pub(crate) fn has_news(&self) -> bool {
        self.sent < self.kept.len()
    }

    /// The next at most `limit` to send and the number of the first of them.
    pub(crate) fn send(&mut self, limit: usize) -> (u64, Vec<T>) {
        let first = self.first + self.sent as u64;
        let batch: Vec<T> = self.kept.iter().skip(self.sent).take(limit).cloned().collect();
        self.sent += batch.len();
        (first, batch)
    }

    /// All up to number `ack` have arrived for good.
    pub(crate) fn acknowledged(&mut self, ack: u64) {
        while self.first <= ack && self.kept.pop_front().is_some() {
            self.first += 1;
            self.sent = self.sent.saturating_sub(1);
        }
    }

    /// A new connection: everything unacknowledged is sent again.
    pub(crate) fn rewind(&mut self) {
        self.sent = 0;
    }
}

/// Something is missing between what has come and what came before.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("command {came} came after command {taken}: those between are missing")]
pub(crate) struct Gap {
    taken: u64,
    came: u64,
}

/// What has been taken of the other side's numbers.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    taken: u64,
}

impl Inbox {
    /// The number to acknowledge.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Those of a batch that have not been taken before.
    pub(crate) fn take<T>(&mut self, first: u64, batch: Vec<T>) -> Result<Vec<T>, Gap> {
        if first > self.taken + 1 {
            return Err(Gap { taken: self.taken, came: first });
        }
        let known = usize::try_from(self.taken + 1 - first).unwrap_or(usize::MAX);
        let news: Vec<T> = batch.into_iter().skip(known).collect();
        self.taken += news.len() as u64;
        Ok(news)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_unacknowledged_is_sent_again_after_a_reconnect() {
        let mut out = Outbox::new();
        for letter in ["a", "b", "c", "d"] {
            out.push(letter);
        }
        assert_eq!(out.send(3), (1, vec!["a", "b", "c"]));
        assert!(out.has_news());
        out.acknowledged(2);
        assert_eq!(out.send(9), (4, vec!["d"]));
        assert!(!out.has_news());
        out.rewind();
        assert_eq!(out.send(9), (3, vec!["c", "d"]));
        out.acknowledged(4);
        out.rewind();
        assert!(!out.has_news());
        out.push("e");
        assert_eq!(out.send(9), (5, vec!["e"]));
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_does_no_harm() {
        let mut out = Outbox::new();
        out.push("a");
        out.acknowledged(7);
        out.push("b");
        assert_eq!(out.send(9), (2, vec!["b"]));
    }

    #[test]
    fn duplicates_are_dropped_and_gaps_are_refused() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.take(1, vec!["a", "b"]).unwrap(), ["a", "b"]);
        assert_eq!(inbox.take(1, vec!["a", "b"]).unwrap(), Vec::<&str>::new());
        assert_eq!(inbox.take(2, vec!["b", "c"]).unwrap(), ["c"]);
        assert_eq!(inbox.taken(), 3);
        assert_eq!(inbox.take(5, vec!["e"]), Err(Gap { taken: 3, came: 5 }));
        assert_eq!(inbox.taken(), 3);
        assert_eq!(inbox.take(4, Vec::<&str>::new()).unwrap(), Vec::<&str>::new());
    }
}
