//! Reads or draws the jobs of a run on another thread, ahead of their submission.

use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Builder, Scope};

/// Number of jobs that are handed over at a time.
const PIECE: usize = 256;
/// Greatest number of pieces of jobs that are read ahead and wait.
const WAITING: usize = 2;

/// An iterator over the items of another iterator, which a thread reads ahead.
#[derive(Debug)]
pub(crate) struct ReadAhead<T> {
    piece: std::vec::IntoIter<T>,
    from: Receiver<Vec<T>>,
}

impl<T: Send> ReadAhead<T> {
    /// Starts the thread that reads ahead. It ends with its iterator, or when the receiver is
    /// dropped.
    ///
    /// # Errors
    ///
    /// The system refuses a thread.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        read: &'scope mut (impl Iterator<Item = T> + Send),
    ) -> io::Result<Self>
    where
        T: 'scope,
    {
        let (to, from) = sync_channel(WAITING);
        let read_all = move || {
            loop {
                let piece: Vec<T> = read.take(PIECE).collect();
                if piece.is_empty() || to.send(piece).is_err() {
                    return;
                }
            }
        };
        Builder::new().name("read-ahead".to_owned()).spawn_scoped(scope, read_all)?;
        Ok(Self { piece: Vec::new().into_iter(), from })
    }
}

impl<T> Iterator for ReadAhead<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            if let Some(item) = self.piece.next() {
                return Some(item);
            }
            self.piece = self.from.recv().ok()?.into_iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::scope;

    use super::*;

    #[test]
    fn all_comes_in_order_and_whoever_wants_no_more_is_not_waited_for() {
        for (count, taken) in [(0, 5), (3, 5), (256, 999), (5_000, 9_999), (1_000_000, 300)] {
            let mut numbers = 0..count;
            scope(|scope| {
                let ahead = ReadAhead::start(scope, &mut numbers).expect("a thread");
                let all: Vec<i32> = ahead.take(taken).collect();
                assert_eq!(all, (0..count).take(taken).collect::<Vec<_>>());
            });
            let few = usize::try_from(count).expect("not negative") - numbers.len();
            assert!(few <= taken + (WAITING + 3) * PIECE, "{few} were read of {count}");
        }
    }
}
