//! The numbers of what goes one way over a session, commands or reports, so that a connection that breaks neither loses
//! nor repeats any: either side numbers what it says from 1, keeps it until the other has acknowledged it, and says the
//! rest again over the next connection.

use std::collections::VecDeque;

/// An acknowledgement of a message that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it acknowledged {ack}, but only {said} were ever sent")]
pub struct FalseAck {
    /// Number of the message that was acknowledged, though it was never sent.
    pub ack: u64,
    /// The number of the last message that was sent.
    pub said: u64,
}

/// A gap between the messages received before and a new batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("number {came} came after number {taken}: those between are missing")]
pub struct Gap {
    /// Number of the last message that was received.
    pub taken: u64,
    /// The number of the first message of the new batch.
    pub came: u64,
}

/// Messages that one side has sent and the other has not acknowledged yet.
#[derive(Debug)]
pub struct Outbox<T> {
    /// Number up to which all messages are acknowledged; the first kept message has the next number.
    acknowledged: u64,
    kept: VecDeque<T>,
    /// Number of the kept messages that were sent on the present connection.
    sent: usize,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self { acknowledged: 0, kept: VecDeque::new(), sent: 0 }
    }
}

impl<T> Extend<T> for Outbox<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.kept.extend(items);
    }
}

impl<T> Outbox<T> {
    /// The number of the last message that is acknowledged; 0: none is.
    #[must_use]
    pub const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Whether a message waits to be sent on the present connection.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.sent < self.kept.len()
    }

    /// Returns the messages to be sent next on the present connection, at most `most`, with the number of the first
    /// one.
    pub fn next(&mut self, most: usize) -> (u64, impl ExactSizeIterator<Item = &T>) {
        let from = self.sent;
        self.sent = from.saturating_add(most).min(self.kept.len());
        (self.acknowledged + from as u64 + 1, self.kept.range(from..self.sent))
    }

    /// Handles an acknowledgement: the other side has received all messages up to `ack` for good.
    ///
    /// # Errors
    ///
    /// No message has the number `ack` yet; nothing is dropped.
    pub fn take_ack(&mut self, ack: u64) -> Result<(), FalseAck> {
        let said = self.acknowledged + self.kept.len() as u64;
        if ack > said {
            return Err(FalseAck { ack, said });
        }
        while self.acknowledged < ack && self.kept.pop_front().is_some() {
            self.acknowledged += 1;
            self.sent = self.sent.saturating_sub(1);
        }
        Ok(())
    }

    /// Handles a new connection: all messages that are not acknowledged are sent again.
    pub const fn rewind(&mut self) {
        self.sent = 0;
    }
}

/// The numbers of the messages that one side has received from the other. A message, such as a report, that comes
/// twice, since it was sent again over a new connection, is dropped by its number; a missing message is an error.
#[derive(Debug, Default)]
pub struct Inbox {
    taken: u64,
}

impl Inbox {
    /// State after all messages up to this number were received.
    #[must_use]
    pub const fn after(taken: u64) -> Self {
        Self { taken }
    }

    /// The number of the last message that was received.
    #[must_use]
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns those messages of a batch that were not received before; the first of the batch has the number `first`.
    ///
    /// # Errors
    ///
    /// Messages before the batch are missing, or numbers would overflow: no message is taken.
    pub fn take<T>(&mut self, first: u64, batch: Vec<T>) -> Result<Vec<T>, Gap> {
        let gap = Gap { taken: self.taken, came: first };
        let last = first.checked_add(batch.len() as u64).ok_or(gap)?;
        let before = first.checked_sub(1).filter(|before| *before <= self.taken);
        let before = before.filter(|_| last < u64::MAX).ok_or(gap)?;
        let known = usize::try_from(self.taken - before).unwrap_or(usize::MAX);
        let new: Vec<T> = batch.into_iter().skip(known).collect();
        self.taken += new.len() as u64;
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(out: &mut Outbox<char>, most: usize) -> (u64, String) {
        let (first, batch) = out.next(most);
        (first, batch.collect())
    }

    #[test]
    fn the_unacknowledged_is_said_again_over_the_next_connection() {
        let mut out = Outbox::default();
        out.extend("abcd".chars());
        assert_eq!(next(&mut out, 3), (1, "abc".to_owned()));
        assert!(out.has_news());
        assert_eq!(out.take_ack(2), Ok(()));
        assert_eq!(next(&mut out, 9), (4, "d".to_owned()));
        assert!(!out.has_news());
        out.rewind();
        assert_eq!(next(&mut out, usize::MAX), (3, "cd".to_owned()));
        assert_eq!((out.take_ack(4), out.acknowledged()), (Ok(()), 4));
        out.rewind();
        assert!(!out.has_news());
        out.extend(['e']);
        assert_eq!(next(&mut out, 9), (5, "e".to_owned()));
    }

    #[test]
    fn what_is_acknowledged_before_it_was_put_on_a_connection_is_not_sent() {
        let mut out = Outbox::default();
        out.extend("abc".chars());
        assert_eq!(out.take_ack(2), Ok(()));
        assert_eq!(next(&mut out, 9), (3, "c".to_owned()));
    }

    #[test]
    fn a_number_that_was_never_said_can_not_be_acknowledged() {
        let mut out = Outbox::default();
        out.extend(['a']);
        assert_eq!(out.take_ack(2), Err(FalseAck { ack: 2, said: 1 }));
        assert_eq!(next(&mut out, 9), (1, "a".to_owned()), "it is kept");
        assert_eq!((out.take_ack(1), out.take_ack(0)), (Ok(()), Ok(())), "an older one is no news");
    }

    #[test]
    fn duplicates_are_dropped_and_gaps_are_refused() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.take(1, vec!['a', 'b']), Ok(vec!['a', 'b']));
        assert_eq!(inbox.take(1, vec!['a', 'b']), Ok(vec![]));
        assert_eq!(inbox.take(2, vec!['b', 'c']), Ok(vec!['c']));
        assert_eq!(inbox.taken(), 3);
        for came in [0, 5, u64::MAX - 1, u64::MAX] {
            assert_eq!(inbox.take(came, vec!['e']), Err(Gap { taken: 3, came }));
        }
        assert_eq!(inbox.take(4, Vec::<char>::new()), Ok(vec![]));
        assert_eq!(inbox.taken(), 3);
        let mut restored = Inbox::after(u64::MAX - 3);
        assert!(restored.take(u64::MAX - 2, vec!['a', 'b']).is_err(), "numbers would run over");
    }
}
