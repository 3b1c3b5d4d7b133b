//! Which worker has the instance at an address, and the packets that workers send each other.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dormouse_ec2::PrivateNetwork;
use dormouse_proto::v1;
use dormouse_units::{HostId, VmId};
use tokio::sync::mpsc;

/// Passes packets on to the worker that has the instance at their destination.
#[derive(Debug, Default)]
pub(crate) struct PacketExchange(Mutex<ExchangeTable>);

#[derive(Debug, Default)]
struct ExchangeTable {
    /// The instances of all networks, by the network's id and the instance's address.
    places: BTreeMap<(String, Ipv4Addr), InstancePlace>,
    /// Ways to workers, by their hosts.
    lines: BTreeMap<HostId, mpsc::Sender<v1::CarriedPackets>>,
}

/// The instance at an address.
#[derive(Clone, Debug)]
struct InstancePlace {
    vm: VmId,
    host: HostId,
    /// Ids of its security groups.
    groups: Vec<String>,
}

impl PacketExchange {
    fn table(&self) -> MutexGuard<'_, ExchangeTable> {
        // Nothing is left half done under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the instance on a VM, with its address and groups as they are now.
    pub(crate) fn place_instance(&self, vm: VmId, host: HostId, network: PrivateNetwork) {
        let PrivateNetwork { vpc, address, groups, .. } = network;
        let groups = groups.into_iter().map(|(id, _)| id).collect();
        self.table().places.insert((vpc, address), InstancePlace { vm, host, groups });
    }

    /// Forgets the instance on a VM, which is destroyed.
    pub(crate) fn remove_instance(&self, vm: VmId) {
        self.table().places.retain(|_, place| place.vm != vm);
    }

    /// Opens the way to a worker, in place of an earlier one.
    pub(crate) fn open_line(&self, host: HostId, line: mpsc::Sender<v1::CarriedPackets>) {
        self.table().lines.insert(host, line);
    }

    /// Passes packets of a worker on. What a worker has no room for is lost.
    pub(crate) fn pass_on(&self, from: HostId, sent: v1::CarriedPackets) {
        let mut batches: BTreeMap<HostId, Vec<v1::CarriedPacket>> = BTreeMap::new();
        let mut table = self.table();
        for packet in sent.packets {
            if let Some((host, packet)) = table.route_packet(from, packet) {
                batches.entry(host).or_default().push(packet);
            }
        }
        for (host, packets) in batches {
            let Some(line) = table.lines.get(&host) else { continue };
            let sent = line.try_send(v1::CarriedPackets { packets });
            if let Err(mpsc::error::TrySendError::Closed(_)) = sent {
                table.lines.remove(&host);
            }
        }
    }
}

impl ExchangeTable {
    /// Returns the host to which a packet of a worker goes, and the packet with the groups of its source; `None`: its source is not
    /// an instance of that worker, or nobody else may get it.
    fn route_packet(
        &self,
        from: HostId,
        sent: v1::CarriedPacket,
    ) -> Option<(HostId, v1::CarriedPacket)> {
        let v1::CarriedPacket { network, packet, groups } = sent;
        let place = |at: usize| {
            let address = Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?);
            self.places.get(&(network.clone(), address))
        };
        // Source and destination in the head of a packet of IPv4.
        let (source, destination) = (place(12)?, place(16)?);
        let may_get = groups.is_empty() || groups.iter().any(|id| destination.groups.contains(id));
        if source.host != from || destination.host == from || !may_get {
            return None;
        }
        let groups = source.groups.clone();
        Some((destination.host, v1::CarriedPacket { network, packet, groups }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(last: u8, group: &str) -> PrivateNetwork {
        PrivateNetwork {
            vpc: "vpc-1".to_owned(),
            address: Ipv4Addr::new(10, 0, 0, last),
            prefix_bits: 16,
            groups: vec![(group.to_owned(), String::new())],
            rules: Vec::new(),
        }
    }

    fn packet(source: u8, destination: u8, groups: &[&str]) -> v1::CarriedPacket {
        let mut packet = vec![0; 12];
        packet.extend([10, 0, 0, source, 10, 0, 0, destination]);
        let groups = groups.iter().map(|id| (*id).to_owned()).collect();
        v1::CarriedPacket { network: "vpc-1".to_owned(), packet: packet.into(), groups }
    }

    #[test]
    fn a_packet_goes_to_the_worker_that_has_its_destination() {
        let exchange = PacketExchange::default();
        let (one, two) = (HostId::new(1), HostId::new(2));
        let (line, mut received) = mpsc::channel(2);
        exchange.open_line(two, line);
        exchange.place_instance(VmId::new(7), one, network(1, "sg-a"));
        exchange.place_instance(VmId::new(8), two, network(2, "sg-b"));
        exchange.place_instance(VmId::new(9), one, network(3, "sg-c"));
        let mut come = |from, packet: v1::CarriedPacket| {
            exchange.pass_on(from, v1::CarriedPackets { packets: vec![packet] });
            received.try_recv().ok().map(|batch| batch.packets)
        };
        let arrived = packet(1, 2, &["sg-a"]);
        assert_eq!(come(one, packet(1, 2, &[])), Some(vec![arrived.clone()]));
        assert_eq!(come(one, packet(1, 2, &["sg-x", "sg-b"])), Some(vec![arrived]));
        assert_eq!(come(one, packet(1, 2, &["sg-x"])), None, "its groups may not get it");
        assert_eq!(come(two, packet(1, 2, &[])), None, "its source is another worker's");
        assert_eq!(come(one, packet(1, 3, &[])), None, "its own worker has the destination");
        assert_eq!(come(one, packet(1, 9, &[])), None, "nobody is there");
        let elsewhere = v1::CarriedPacket { network: "vpc-2".to_owned(), ..packet(1, 2, &[]) };
        assert_eq!(come(one, elsewhere), None, "another network");
        let cut = v1::CarriedPacket { packet: vec![0; 19].into(), ..packet(1, 2, &[]) };
        assert_eq!(come(one, cut), None);
        exchange.remove_instance(VmId::new(8));
        assert_eq!(come(one, packet(1, 2, &[])), None, "it is gone");
    }
}
