//! Connections between instances that security groups have allowed: their packets pass in both directions until they end.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use super::packet::{PacketEnds, TCP};

/// Most connections that an instance may have made.
const FLOWS: usize = 4096;
/// Time without a packet after which a connection of TCP is forgotten, as on EC2.
const TCP_IDLE: Duration = Duration::from_secs(350);
/// Time without a packet after which an exchange of UDP datagrams is forgotten.
const UDP_IDLE: Duration = Duration::from_secs(180);
/// Time without a packet after which a connection of TCP is forgotten once one side has ended it.
const ENDING: Duration = Duration::from_secs(10);

/// Connections that were allowed, by the ends of their first packet.
#[derive(Debug, Default)]
pub(super) struct FlowTable {
    flows: BTreeMap<PacketEnds, TrackedFlow>,
}

#[derive(Debug)]
struct TrackedFlow {
    until: Instant,
    ends_soon: bool,
    /// Groups of which the other instance has to be one, by the rules of the one that called; empty: any instance may be called.
    wanted: Vec<String>,
}

impl FlowTable {
    /// Returns whether a packet with these ends belongs to a connection that was allowed, in either direction, and keeps that
    /// connection alive.
    pub(super) fn pass(
        &mut self,
        ends: PacketEnds,
        (begins, finishes): (bool, bool),
        now: Instant,
    ) -> bool {
        for ends in [ends, ends.reversed()] {
            let Some(flow) = self.flows.get_mut(&ends).filter(|flow| flow.until > now) else {
                continue;
            };
            if flow.ends_soon && begins {
                // The ports are used for another connection, which has to be allowed itself.
                self.flows.remove(&ends);
                continue;
            }
            flow.ends_soon |= finishes;
            flow.until = now + idle_time(ends.protocol, flow.ends_soon);
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
    pub(super) fn add(&mut self, ends: PacketEnds, wanted: Vec<String>, now: Instant) -> bool {
        let own = |address: Ipv4Addr| {
            let first = |port| (address, port);
            let least = PacketEnds {
                source: first(0),
                destination: (Ipv4Addr::UNSPECIFIED, 0),
                protocol: 0,
            };
            let most = PacketEnds {
                source: first(u16::MAX),
                destination: (Ipv4Addr::BROADCAST, u16::MAX),
                protocol: u8::MAX,
            };
            least..=most
        };
        let range = own(ends.source.0);
        if self.flows.range(range.clone()).count() >= FLOWS {
            let old: Vec<PacketEnds> = self
                .flows
                .range(range.clone())
                .filter_map(|(ends, flow)| (flow.until <= now).then_some(*ends))
                .collect();
            for ends in old {
                self.flows.remove(&ends);
            }
            if self.flows.range(range).count() >= FLOWS {
                return false;
            }
        }
        let until = now + idle_time(ends.protocol, false);
        self.flows.insert(ends, TrackedFlow { until, ends_soon: false, wanted });
        true
    }

    /// Forgets all connections of the instance at an address, which has gone.
    pub(super) fn forget(&mut self, address: Ipv4Addr) {
        self.flows.retain(|ends, _| ends.source.0 != address && ends.destination.0 != address);
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

    #[test]
    fn a_connection_passes_both_ways_until_it_is_silent_for_long() {
        let (mut table, begin) = (FlowTable::default(), Instant::now());
        let way = ends((1, 4000), (2, 80));
        let plain = (false, false);
        assert!(!table.pass(way, plain, begin));
        assert!(table.add(way, Vec::new(), begin));
        let later = begin + TCP_IDLE - Duration::from_secs(1);
        assert!(table.pass(way.reversed(), plain, later) && table.knows(way, later));
        assert!(table.pass(way, plain, later + Duration::from_secs(300)));
        assert!(!table.pass(way, plain, later + Duration::from_secs(900)));
        assert!(!table.pass(ends((1, 4001), (2, 80)), plain, later));
    }

    #[test]
    fn one_that_has_ended_is_forgotten_soon_and_its_ports_begin_anew() {
        let (mut table, now) = (FlowTable::default(), Instant::now());
        let way = ends((1, 4000), (2, 80));
        assert!(table.add(way, Vec::new(), now) && table.pass(way, (false, true), now));
        assert!(table.pass(way.reversed(), (false, true), now + ENDING / 2));
        assert!(!table.pass(way, (false, false), now + 2 * ENDING));
        assert!(table.add(way, Vec::new(), now) && table.pass(way, (false, true), now));
        assert!(!table.pass(way, (true, false), now), "it has to be allowed again");
        assert!(table.add(way, Vec::new(), now));
        table.forget(Ipv4Addr::new(10, 0, 0, 2));
        assert!(!table.knows(way, now));
    }

    #[test]
    fn an_instance_has_so_many_connections_and_others_theirs() {
        let (mut table, now) = (FlowTable::default(), Instant::now());
        for port in 0..4096 {
            assert!(table.add(ends((1, port), (2, 80)), Vec::new(), now), "{port}");
        }
        assert!(!table.add(ends((1, 5000), (2, 80)), Vec::new(), now));
        assert!(table.add(ends((3, 5000), (2, 80)), Vec::new(), now));
        assert!(table.add(ends((1, 5000), (2, 80)), Vec::new(), now + TCP_IDLE));
    }
}
