//! Connections between instances that security groups have allowed: their packets pass in both directions until they end.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use super::packet::{ConnectionSigns, PacketEnds, TCP};

/// Greatest number of connections that an instance began and that are remembered at the same time.
const FLOWS: usize = 4096;
/// Time without a packet after which a connection of TCP is forgotten, as on EC2.
const TCP_IDLE: Duration = Duration::from_secs(350);
/// Time without a packet after which an exchange of UDP datagrams is forgotten.
const UDP_IDLE: Duration = Duration::from_secs(180);
/// Time without a packet after which a connection of TCP is forgotten once both sides have ended it, or one has broken it off.
const ENDING: Duration = Duration::from_secs(10);

/// Connections that were allowed, by the ends of their first packet.
#[derive(Debug, Default)]
pub(super) struct FlowTable {
    flows: BTreeMap<PacketEnds, TrackedFlow>,
    /// Number of connections in `flows` that each instance has made.
    counts: BTreeMap<Ipv4Addr, usize>,
}

#[derive(Debug)]
struct TrackedFlow {
    until: Instant,
    /// True if the instance that made the connection has ended its own direction, and true if the other one has.
    finished: (bool, bool),
    /// True if one of them has broken the connection off.
    is_reset: bool,
    /// Groups of which the other instance has to be one, by the rules of the one that called; empty: any instance may be called.
    wanted: Vec<String>,
}

impl TrackedFlow {
    const fn ends_soon(&self) -> bool {
        self.is_reset || self.finished.0 && self.finished.1
    }
}

impl FlowTable {
    /// Returns whether a packet with these ends belongs to a connection that was allowed, in either direction, and keeps that
    /// connection alive.
    pub(super) fn pass(&mut self, ends: PacketEnds, signs: ConnectionSigns, now: Instant) -> bool {
        for (ends, is_of_caller) in [(ends, true), (ends.reversed(), false)] {
            let Some(flow) = self.flows.get_mut(&ends).filter(|flow| flow.until > now) else {
                continue;
            };
            if flow.ends_soon() && signs.begins {
                // The ports are used for another connection, which has to be allowed itself.
                self.remove(ends);
                continue;
            }
            let finished = if is_of_caller { &mut flow.finished.0 } else { &mut flow.finished.1 };
            *finished |= signs.finishes;
            flow.is_reset |= signs.resets;
            flow.until = now + idle_time(ends.protocol, flow.ends_soon());
            return true;
        }
        false
    }

    /// Returns the groups of which the instance at the other end has to be one, for a packet of the instance that called.
    pub(super) fn wanted_groups(&self, ends: PacketEnds) -> Vec<String> {
        self.flows.get(&ends).map(|flow| flow.wanted.clone()).unwrap_or_default()
    }

    /// Returns whether a packet with these ends belongs to a connection that was allowed, in either direction.
    pub(super) fn knows(&self, ends: PacketEnds, now: Instant) -> bool {
        let is_there = |ends| self.flows.get(&ends).is_some_and(|flow| flow.until > now);
        is_there(ends) || is_there(ends.reversed())
    }

    /// Adds a connection that is allowed to an instance of the `wanted` groups; returns false if its first instance has too many.
    /// Connections that are over count until [`Self::sweep`] has removed them, so that a flood makes nobody look through the table.
    pub(super) fn add(&mut self, ends: PacketEnds, wanted: Vec<String>, now: Instant) -> bool {
        let until = now + idle_time(ends.protocol, false);
        let flow = TrackedFlow { until, finished: (false, false), is_reset: false, wanted };
        if let Some(over) = self.flows.get_mut(&ends) {
            *over = flow;
            return true;
        }
        let count = self.counts.entry(ends.source.0).or_default();
        if *count >= FLOWS {
            return false;
        }
        *count += 1;
        self.flows.insert(ends, flow);
        true
    }

    /// Returns the addresses of the instances that have made connections.
    pub(super) fn callers(&self) -> Vec<Ipv4Addr> {
        self.counts.keys().copied().collect()
    }

    /// Removes those connections that the instance at an address has made and that are over.
    pub(super) fn sweep(&mut self, caller: Ipv4Addr, now: Instant) {
        let own = first_of(caller)..=last_of(caller);
        for _ in self.flows.extract_if(own, |_, flow| flow.until <= now) {
            count_down(&mut self.counts, caller);
        }
    }

    /// Forgets all connections of the instance at an address, which has gone.
    pub(super) fn forget(&mut self, address: Ipv4Addr) {
        let is_its = |ends: &PacketEnds| ends.source.0 == address || ends.destination.0 == address;
        for (ends, _) in self.flows.extract_if(.., |ends, _| is_its(ends)) {
            count_down(&mut self.counts, ends.source.0);
        }
    }

    fn remove(&mut self, ends: PacketEnds) {
        if self.flows.remove(&ends).is_some() {
            count_down(&mut self.counts, ends.source.0);
        }
    }
}

/// Returns the ends before those of all connections that the instance at an address can make.
const fn first_of(address: Ipv4Addr) -> PacketEnds {
    PacketEnds { source: (address, 0), destination: (Ipv4Addr::UNSPECIFIED, 0), protocol: 0 }
}

/// Returns the ends after those of all connections that the instance at an address can make.
const fn last_of(address: Ipv4Addr) -> PacketEnds {
    PacketEnds {
        source: (address, u16::MAX),
        destination: (Ipv4Addr::BROADCAST, u16::MAX),
        protocol: u8::MAX,
    }
}

fn count_down(counts: &mut BTreeMap<Ipv4Addr, usize>, address: Ipv4Addr) {
    if let Some(count) = counts.get_mut(&address) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(&address);
        }
    }
}

const fn idle_time(protocol: u8, ends_soon: bool) -> Duration {
    match (protocol, ends_soon) {
        (TCP, true) => ENDING,
        (TCP, false) => TCP_IDLE,
        _ => UDP_IDLE,
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::ends;
    use super::*;

    const PLAIN: ConnectionSigns =
        ConnectionSigns { begins: false, finishes: false, resets: false };
    const BEGIN: ConnectionSigns = ConnectionSigns { begins: true, ..PLAIN };
    const FIN: ConnectionSigns = ConnectionSigns { finishes: true, ..PLAIN };
    const RST: ConnectionSigns = ConnectionSigns { resets: true, ..PLAIN };

    #[test]
    fn a_connection_passes_both_ways_until_it_is_silent_for_long() {
        let (mut table, begin) = (FlowTable::default(), Instant::now());
        let way = ends((1, 4000), (2, 80));
        assert!(!table.pass(way, PLAIN, begin));
        assert!(table.add(way, Vec::new(), begin));
        let later = begin + TCP_IDLE - Duration::from_secs(1);
        assert!(table.pass(way.reversed(), PLAIN, later) && table.knows(way, later));
        assert!(table.pass(way, PLAIN, later + Duration::from_secs(300)));
        assert!(!table.pass(way, PLAIN, later + Duration::from_secs(900)));
        assert!(!table.pass(ends((1, 4001), (2, 80)), PLAIN, later));
    }

    #[test]
    fn one_that_has_ended_is_forgotten_soon_and_its_ports_begin_anew() {
        let (mut table, now) = (FlowTable::default(), Instant::now());
        let way = ends((1, 4000), (2, 80));
        let end = |table: &mut FlowTable| {
            assert!(table.add(way, Vec::new(), now) && table.pass(way, FIN, now));
            assert!(table.pass(way.reversed(), FIN, now));
        };
        end(&mut table);
        assert!(table.pass(way, PLAIN, now + ENDING / 2), "the last acknowledgement");
        assert!(!table.pass(way, PLAIN, now + 2 * ENDING));
        end(&mut table);
        assert!(!table.pass(way, BEGIN, now), "it has to be allowed again");
        assert!(table.add(way, Vec::new(), now));
        table.forget(Ipv4Addr::new(10, 0, 0, 2));
        assert!(!table.knows(way, now) && table.counts.is_empty());
    }

    #[test]
    fn one_that_one_side_has_ended_stays_for_the_other_sides_data() {
        let now = Instant::now();
        let way = ends((1, 4000), (2, 80));
        for way in [way, way.reversed()] {
            let mut table = FlowTable::default();
            assert!(table.add(way, Vec::new(), now) && table.pass(way, FIN, now));
            assert!(table.pass(way, FIN, now), "it was sent again");
            let later = now + Duration::from_secs(300);
            assert!(table.pass(way.reversed(), PLAIN, later), "the answer takes long");
            assert!(table.pass(way.reversed(), RST, later));
            assert!(!table.pass(way, PLAIN, later + ENDING), "it was broken off");
        }
    }

    #[test]
    fn an_instance_has_so_many_connections_and_others_theirs() {
        let (mut table, now) = (FlowTable::default(), Instant::now());
        for port in 0..4096 {
            assert!(table.add(ends((1, port), (2, 80)), Vec::new(), now), "{port}");
        }
        assert!(!table.add(ends((1, 5000), (2, 80)), Vec::new(), now));
        assert!(table.add(ends((1, 4000), (2, 80)), Vec::new(), now), "it is known");
        assert!(table.add(ends((3, 5000), (2, 80)), Vec::new(), now));
        // A connection beyond them does not look through the table: that is done once a second.
        let later = now + TCP_IDLE;
        assert!(!table.add(ends((1, 5000), (2, 80)), Vec::new(), later));
        assert_eq!(table.flows.len(), 4097);
        table.sweep(Ipv4Addr::new(10, 0, 0, 3), later);
        assert_eq!(table.flows.len(), 4096, "the other one's stay");
        table.sweep(Ipv4Addr::new(10, 0, 0, 1), later);
        assert!(table.flows.is_empty() && table.add(ends((1, 5000), (2, 80)), Vec::new(), later));
    }

    #[test]
    fn the_counts_are_those_of_the_table_whatever_has_happened() {
        let (mut table, begin) = (FlowTable::default(), Instant::now());
        let mut state = 7_u32;
        let mut draw = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        for second in 0..3000_u32 {
            let now = begin + Duration::from_secs(second.into());
            let mut end = |ports| {
                let last = u8::try_from(draw(4)).unwrap_or_default();
                (last, u16::try_from(draw(ports)).unwrap_or_default())
            };
            let way = ends(end(6), end(2));
            let signs = ConnectionSigns {
                begins: draw(3) == 0,
                finishes: draw(4) == 0,
                resets: draw(40) == 0,
            };
            if !table.pass(way, signs, now) {
                table.add(way, Vec::new(), now);
            }
            match draw(60) {
                0 => table.callers().into_iter().for_each(|caller| table.sweep(caller, now)),
                1 => table.forget(way.source.0),
                _ => {}
            }
            let mut counts = BTreeMap::new();
            for way in table.flows.keys() {
                *counts.entry(way.source.0).or_insert(0) += 1;
            }
            assert_eq!(counts, table.counts, "in second {second}");
        }
    }
}
