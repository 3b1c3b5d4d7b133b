//! Events that come to a run from outside, in order of time.

use dormouse_model::{Event, VmRequest};
use dormouse_units::{RequestId, Time};

/// Turns a stream of VM requests into events: one for each request, and a last one that says that there are no more.
#[derive(Debug)]
pub struct RequestEvents<I> {
    requests: I,
    next: RequestId,
    last: Time,
    is_over: bool,
}

impl<I> RequestEvents<I> {
    /// Makes the events of `requests`, which must be in order of time; `first` is the id of the first request.
    #[must_use]
    pub const fn from(requests: I, first: RequestId) -> Self {
        Self { requests, next: first, last: Time::ZERO, is_over: false }
    }
}

impl<E, I: Iterator<Item = Result<(Time, VmRequest), E>>> Iterator for RequestEvents<I> {
    type Item = Result<(Time, Event), E>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.requests.next() {
            Some(Ok((at, asks))) => {
                let request = self.next;
                (self.next, self.last) = (request.next(), at);
                Some(Ok((at, Event::Requested { request, asks })))
            }
            Some(Err(error)) => Some(Err(error)),
            None if self.is_over => None,
            None => {
                self.is_over = true;
                Some(Ok((self.last, Event::AllRequested)))
            }
        }
    }
}

/// Merges two streams of events, each in order of time, into one in order of time; of equal times those of `first`
/// come first. Errors come out at once.
pub fn in_order<E>(
    first: impl Iterator<Item = Result<(Time, Event), E>>,
    second: impl Iterator<Item = Result<(Time, Event), E>>,
) -> impl Iterator<Item = Result<(Time, Event), E>> {
    let (mut first, mut second) = (first.peekable(), second.peekable());
    std::iter::from_fn(move || match (first.peek(), second.peek()) {
        (Some(Ok((one, _))), Some(Ok((other, _)))) if other < one => second.next(),
        (None | Some(Ok(_)), Some(Err(_))) | (None, Some(_)) => second.next(),
        _ => first.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(at: &[u64]) -> impl Iterator<Item = Result<(Time, Event), &'static str>> {
        at.iter().map(|at| Ok((Time::from_secs(*at), Event::Tick)))
    }

    fn begins(at: &[u64]) -> impl Iterator<Item = Result<(Time, Event), &'static str>> {
        at.iter().map(|at| Ok((Time::from_secs(*at), Event::Begin)))
    }

    #[test]
    fn two_streams_are_one_in_order_of_time() {
        let both: Result<Vec<_>, _> = in_order(ticks(&[1, 3, 5]), begins(&[0, 3, 9])).collect();
        let both = both.expect("nothing fails");
        let times: Vec<_> = both.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [0, 1, 3, 3, 5, 9].map(Time::from_secs));
        assert_eq!((&both[2].1, &both[3].1), (&Event::Tick, &Event::Begin), "of equals");
        let fails = ticks(&[1]).chain([Err("no")]);
        assert_eq!(in_order(begins(&[0, 2]), fails).find_map(Result::err), Some("no"));
    }
}
