//! The least program that simulates events: a queue ordered by time. Each event that is taken adds another one, and
//! looks at a number of things (such as tasks) without changing any.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant;

/// Number of events that wait in the queue at any time, as in a run of some dozen VMs and their tasks.
const WAITING: u64 = 256;

/// Seconds of real time that `events` events take, if `looked_at` things are read at each.
pub(crate) fn seconds(events: u64, looked_at: usize) -> f64 {
    let things: Vec<u64> = (0..looked_at as u64).collect();
    let begun = Instant::now();
    let mut chance = 1_u64;
    let mut later = |now: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        now + (chance >> 44)
    };
    let mut queue: BinaryHeap<_> = (0..WAITING).map(|n| Reverse((later(0), n, n as u32))).collect();
    for number in WAITING..WAITING + events {
        let Some(Reverse((now, _, what))) = queue.pop() else { break };
        let nearest = black_box(&things).iter().map(|thing| thing ^ number).min();
        queue.push(Reverse((later(now), number, black_box(what))));
        black_box(nearest);
    }
    black_box(&queue);
    begun.elapsed().as_secs_f64()
}
