//! The least program that is a provider: a queue of requests that begin and end, hosts with counted vCPUs of which the
//! fullest with room is used, and a CSV line for each request; no memory, no preemption, no bills.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use dormouse_units::{RandomStream, Span};

const HOSTS: u32 = 100_000;
const VCPUS: usize = 8;
const REQUESTS: u64 = 1_000_000;

/// Places the requests of `provider-region-100k` and writes a line for each into `to`; returns how many got a host.
pub(crate) fn provider(to: &Path) -> Result<u64, Box<dyn Error>> {
    let mut out = BufWriter::with_capacity(1 << 16, File::create(to)?);
    let mut chance = RandomStream::new(1, "floor", 0);
    // Hosts by how many vCPUs are free: entries of hosts that have another number by now are stale.
    let mut free = vec![VCPUS; HOSTS as usize];
    let mut with_free: Vec<Vec<u32>> = vec![Vec::new(); VCPUS + 1];
    with_free[VCPUS] = (0..HOSTS).rev().collect();
    let mut ends: BinaryHeap<Reverse<(u64, u32, usize)>> = BinaryHeap::new();
    let (mut now, mut granted) = (0, 0);
    for number in 0..REQUESTS {
        now += chance.draw_exponential(Span::from_micros(15_000)).as_micros();
        while let Some(Reverse((at, host, size))) = ends.peek().copied() {
            if at > now {
                break;
            }
            ends.pop();
            free[host as usize] += size;
            with_free[free[host as usize]].push(host);
        }
        let size = [1, 2, 4][chance.draw_below(3)];
        let duration = chance.draw_exponential(Span::from_secs(6_000)).as_micros();
        let host = (size..=VCPUS).find_map(|room| {
            while let Some(host) = with_free[room].pop() {
                if free[host as usize] == room {
                    return Some(host);
                }
            }
            None
        });
        let Some(host) = host else {
            writeln!(out, "{number},{now},{size},,")?;
            continue;
        };
        granted += 1;
        free[host as usize] -= size;
        with_free[free[host as usize]].push(host);
        ends.push(Reverse((now + duration, host, size)));
        writeln!(out, "{number},{now},{size},{host},{}", now + duration)?;
    }
    out.flush()?;
    Ok(granted)
}
