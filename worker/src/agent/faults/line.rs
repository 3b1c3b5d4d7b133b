//! Bytes in transit in one direction of a disturbed connection.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf as _, Bytes};
use tokio::time::{Instant, Sleep, sleep_until};

use super::WorkerNetwork;

/// Most bytes in transit: about what two kernels buffer for a connection.
pub(super) const MAX_UNDER_WAY: usize = 512 * 1024;

/// Bytes in transit in one direction, with the times of their arrival.
#[derive(Debug)]
pub(super) struct DelayLine {
    under_way: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    /// Instant until which bytes that were sent earlier occupy the line.
    free_at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl DelayLine {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let timer = Box::pin(sleep_until(now));
        Self { under_way: VecDeque::new(), bytes: 0, free_at: now, timer }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Returns the number of bytes that may still be sent.
    pub(super) const fn room_left(&self) -> usize {
        MAX_UNDER_WAY.saturating_sub(self.bytes)
    }

    /// Puts bytes in transit; `network` determines when they arrive.
    pub(super) fn send_bytes(&mut self, bytes: &[u8], network: &WorkerNetwork) {
        let now = Instant::now();
        let arrives = network.arrival_time(now, bytes.len(), &mut self.free_at);
        // What was sent first arrives first.
        let arrives = self.under_way.back().map_or(arrives, |(before, _)| arrives.max(*before));
        self.bytes += bytes.len();
        self.under_way.push_back((arrives, Bytes::copy_from_slice(bytes)));
    }

    /// Polls for the first bytes to arrive; ready with an empty slice if none are in transit.
    pub(super) fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<&[u8]> {
        let Some((arrives, bytes)) = self.under_way.front() else { return Poll::Ready(&[]) };
        if *arrives > Instant::now() {
            self.timer.as_mut().reset(*arrives);
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(bytes)
    }

    /// Removes this many arrived bytes, which the receiver has read.
    pub(super) fn bytes_taken(&mut self, count: usize) {
        self.bytes -= count;
        if let Some((_, bytes)) = self.under_way.front_mut() {
            bytes.advance(count);
            if bytes.is_empty() {
                self.under_way.pop_front();
            }
        }
    }
}
