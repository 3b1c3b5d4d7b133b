//! Which worker has the instance at an address, and the packets that workers send each other.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dormouse_ec2::PrivateNetwork;
use dormouse_proto::{CarryBudget, v1};
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
    /// What the instance may still send; `None`: it has sent nothing to other workers yet.
    budget: Option<CarryBudget>,
}

/// The channel to a worker for packets between instances, which is open until this is dropped.
#[derive(Debug)]
pub(crate) struct WorkerLine {
    exchange: Arc<PacketExchange>,
    host: HostId,
    line: mpsc::Sender<v1::CarriedPackets>,
}

impl WorkerLine {
    /// Waits until the worker reads no packets any more.
    pub(crate) async fn wait_closed(&self) {
        self.line.closed().await;
    }

    /// Passes packets of the worker on. What another worker has no room for is lost, and so is what an instance sends beyond its
    /// budget.
    pub(crate) fn pass_on(&self, sent: v1::CarriedPackets) {
        self.exchange.pass_on(self.host, sent, Instant::now());
    }
}

impl Drop for WorkerLine {
    fn drop(&mut self) {
        let mut table = self.exchange.table();
        if table.lines.get(&self.host).is_some_and(|line| line.same_channel(&self.line)) {
            table.lines.remove(&self.host);
        }
    }
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
        let (mut table, key) = (self.table(), (vpc, address));
        let former = table.places.remove(&key).filter(|former| former.vm == vm);
        let budget = former.and_then(|former| former.budget);
        table.places.insert(key, InstancePlace { vm, host, groups, budget });
    }

    /// Forgets the instance on a VM, which is destroyed.
    pub(crate) fn remove_instance(&self, vm: VmId) {
        self.table().places.retain(|_, place| place.vm != vm);
    }

    /// Forgets all instances of a worker, which is lost.
    pub(crate) fn remove_host(&self, host: HostId) {
        self.table().places.retain(|_, place| place.host != host);
    }

    /// Opens the way to a worker, in place of an earlier one.
    pub(crate) fn open_line(
        self: Arc<Self>,
        host: HostId,
        line: mpsc::Sender<v1::CarriedPackets>,
    ) -> WorkerLine {
        self.table().lines.insert(host, line.clone());
        WorkerLine { exchange: self, host, line }
    }

    fn pass_on(&self, from: HostId, sent: v1::CarriedPackets, now: Instant) {
        let mut batches: BTreeMap<HostId, Vec<v1::CarriedPacket>> = BTreeMap::new();
        let mut table = self.table();
        for packet in sent.packets {
            if let Some((host, packet)) = table.route_packet(from, packet, now) {
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
    /// an instance of that worker or has sent too much, or nobody else may get it.
    fn route_packet(
        &mut self,
        from: HostId,
        sent: v1::CarriedPacket,
        now: Instant,
    ) -> Option<(HostId, v1::CarriedPacket)> {
        let v1::CarriedPacket { network, packet, groups } = sent;
        // Source and destination in the head of a packet of IPv4.
        let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
        let (source, destination) = (address(12)?, address(16)?);
        let destination = self.places.get(&(network.clone(), destination))?;
        let may_get = groups.is_empty() || groups.iter().any(|id| destination.groups.contains(id));
        let to = destination.host;
        let source = self.places.get_mut(&(network.clone(), source))?;
        if source.host != from || to == from || !may_get {
            return None;
        }
        let budget = source.budget.get_or_insert_with(|| CarryBudget::new(now));
        let groups = source.groups.clone();
        let packet_is_paid = budget.take_packet(packet.len(), now);
        packet_is_paid.then_some((to, v1::CarriedPacket { network, packet, groups }))
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
        let exchange = Arc::new(PacketExchange::default());
        let (one, two) = (HostId::new(1), HostId::new(2));
        let (line, mut received) = mpsc::channel(2);
        let _line = Arc::clone(&exchange).open_line(two, line);
        exchange.place_instance(VmId::new(7), one, network(1, "sg-a"));
        exchange.place_instance(VmId::new(8), two, network(2, "sg-b"));
        exchange.place_instance(VmId::new(9), one, network(3, "sg-c"));
        let mut come = |from, packet: v1::CarriedPacket| {
            exchange.pass_on(from, v1::CarriedPackets { packets: vec![packet] }, Instant::now());
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

    #[test]
    fn an_instance_that_floods_uses_up_its_own_budget_alone() {
        let exchange = Arc::new(PacketExchange::default());
        let (one, two, now) = (HostId::new(1), HostId::new(2), Instant::now());
        let (line, mut received) = mpsc::channel(10_000);
        let _line = Arc::clone(&exchange).open_line(two, line);
        for (vm, last) in [(7, 1), (8, 3)] {
            exchange.place_instance(VmId::new(vm), one, network(last, "sg-a"));
        }
        exchange.place_instance(VmId::new(9), two, network(2, "sg-b"));
        let mut passed = |source, count, now| {
            for _ in 0..count {
                let packets = vec![packet(source, 2, &[])];
                exchange.pass_on(one, v1::CarriedPackets { packets }, now);
            }
            std::iter::from_fn(|| received.try_recv().ok()).count()
        };
        assert_eq!(passed(1, 5000, now), 2048);
        // Other rules for the instance are no new budget.
        exchange.place_instance(VmId::new(7), one, network(1, "sg-c"));
        assert_eq!((passed(1, 1, now), passed(3, 10, now)), (0, 10));
        assert_eq!(passed(1, 5, now + std::time::Duration::from_secs(1)), 5);
    }

    #[test]
    fn a_worker_that_has_left_has_no_line_and_no_instances() {
        let exchange = Arc::new(PacketExchange::default());
        let (one, two) = (HostId::new(1), HostId::new(2));
        let open = |line| Arc::clone(&exchange).open_line(two, line);
        let (first, mut of_first) = mpsc::channel(2);
        let (second, mut of_second) = mpsc::channel(2);
        let (first, second) = (open(first), open(second));
        // The earlier call ends after the later one has begun, and leaves its line as it is.
        drop(first);
        exchange.place_instance(VmId::new(7), one, network(1, "sg-a"));
        exchange.place_instance(VmId::new(8), two, network(2, "sg-b"));
        let send = || {
            let packets = vec![packet(1, 2, &[])];
            exchange.pass_on(one, v1::CarriedPackets { packets }, Instant::now());
        };
        send();
        assert!(of_first.try_recv().is_err() && of_second.try_recv().is_ok());
        drop(second);
        let closed = of_second.try_recv();
        assert_eq!(closed, Err(mpsc::error::TryRecvError::Disconnected), "its stream ends");
        exchange.remove_host(one);
        let left: Vec<_> = exchange.table().places.keys().map(|(_, address)| *address).collect();
        assert_eq!(left, [Ipv4Addr::new(10, 0, 0, 2)]);
    }
}
