//! Delivery of packets between the cells of a host.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write as _},
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

use bytes::Bytes;
use dormouse_proto::{CarryBudget, v1::CarriedPacket};
use tokio::{runtime::Handle, sync::mpsc};

use super::{
    flows::FlowTable,
    packet::{PacketEnds, PacketHead, PacketKind, read_head},
    rules::{CellNetwork, InstanceRules},
    thread::PacketThread,
};

/// Delivers packets between the instances of each private network on this host, as their security groups allow.
#[derive(Debug, Default)]
pub(crate) struct NetworkSwitch {
    table: Mutex<SwitchTable<File>>,
    /// Where packets go whose destination is not on this host.
    uplink: OnceLock<mpsc::Sender<CarriedPacket>>,
    /// The thread of all packets, from the first instance on.
    thread: Mutex<Option<PacketThread>>,
}

impl NetworkSwitch {
    fn table(&self) -> MutexGuard<'_, SwitchTable<File>> {
        // Nothing is left half done under this lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the runtime of the thread that reads and delivers all packets, so that a flood of them keeps no other thread of the
    /// worker from its work. Starts the thread if this is the first call.
    ///
    /// # Errors
    ///
    /// The thread can't be started.
    pub(super) fn packet_runtime(self: &Arc<Self>) -> io::Result<Handle> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*thread {
            return Ok(thread.runtime().clone());
        }
        let switch = Arc::downgrade(self);
        let started = PacketThread::start(move |now| {
            if let Some(switch) = switch.upgrade() {
                switch.sweep(now);
            }
        })?;
        Ok(thread.insert(started).runtime().clone())
    }

    /// Forgets the connections that are over, those of one instance at a time, so that nobody waits long for the table.
    fn sweep(&self, now: Instant) {
        let callers = self.table().callers();
        for (network, caller) in callers {
            if let Some(network) = self.table().networks.get_mut(&network) {
                network.flows.sweep(caller, now);
            }
        }
    }

    /// Sets where packets go whose destination is not on this host; only the first call counts.
    pub(super) fn set_uplink(&self, uplink: mpsc::Sender<CarriedPacket>) {
        let _ = self.uplink.set(uplink);
    }

    /// Adds the instance on a VM with its device. An earlier VM of the instance gets no packets any more.
    pub(super) fn add(&self, vm: u32, network: CellNetwork, device: Arc<File>) {
        self.table().add(vm, network, device);
    }

    /// Changes what the security groups of the instance on a VM allow.
    pub(super) fn set_rules(&self, vm: u32, network: CellNetwork) {
        self.table().set_rules(vm, network);
    }

    /// Sets whether the instance on a VM gets and sends packets.
    pub(super) fn set_open(&self, vm: u32, of: &NetworkPlace, is_open: bool) {
        if let Some(port) = self.table().port_mut(vm, of) {
            port.is_open = is_open;
        }
    }

    /// Removes the instance on a VM.
    pub(super) fn remove(&self, vm: u32, of: &NetworkPlace) {
        self.table().remove(vm, of);
    }

    /// Delivers a packet that the instance on a VM has sent, or drops it.
    pub(super) fn deliver(&self, vm: u32, of: &NetworkPlace, packet: &[u8]) {
        let way = self.table().find_way(vm, of, packet, Instant::now());
        match way {
            Some(PacketWay::Here(device)) => hand_over(&device, packet),
            Some(PacketWay::Away(groups)) => {
                let Some(uplink) = self.uplink.get() else { return };
                let packet = Bytes::copy_from_slice(packet);
                // What there is no room for is lost, as packets may be.
                let _ = uplink.try_send(CarriedPacket { network: of.0.clone(), packet, groups });
            }
            None => {}
        }
    }

    /// Delivers a packet of an instance on another host, or drops it.
    pub(super) fn deliver_carried(&self, carried: &CarriedPacket) {
        let device = self.table().find_destination(carried, Instant::now());
        if let Some(device) = device {
            hand_over(&device, &carried.packet);
        }
    }
}

/// Writes a packet to the device of its destination. What a full device doesn't take is lost.
fn hand_over(mut device: &File, packet: &[u8]) {
    let _ = device.write(packet);
}

/// The way of a packet to its destination.
#[derive(Debug, PartialEq, Eq)]
enum PacketWay<D> {
    /// The destination is on this host.
    Here(Arc<D>),
    /// The destination is on no VM of this host. It must have one of these security groups, unless there are none.
    Away(Vec<String>),
}

/// Id of a private network, and the address of an instance in it.
pub(super) type NetworkPlace = (String, Ipv4Addr);

/// The instances of all private networks on this host, whose packets go to devices `D`.
#[derive(Debug)]
struct SwitchTable<D> {
    networks: BTreeMap<String, SwitchedNetwork<D>>,
}

impl<D> Default for SwitchTable<D> {
    fn default() -> Self {
        Self { networks: BTreeMap::new() }
    }
}

/// One private network.
#[derive(Debug)]
struct SwitchedNetwork<D> {
    ports: BTreeMap<Ipv4Addr, SwitchPort<D>>,
    flows: FlowTable,
}

/// The instance at an address.
#[derive(Debug)]
struct SwitchPort<D> {
    vm: u32,
    rules: InstanceRules,
    is_open: bool,
    device: Arc<D>,
    /// What the instance may still send to other hosts; `None`: it has sent nothing there yet.
    budget: Option<CarryBudget>,
}

impl<D> SwitchTable<D> {
    /// Returns the instances that have made connections, here or elsewhere.
    fn callers(&self) -> Vec<NetworkPlace> {
        let networks = self.networks.iter();
        let callers = networks.flat_map(|(id, network)| {
            network.flows.callers().into_iter().map(|caller| (id.clone(), caller))
        });
        callers.collect()
    }

    fn add(&mut self, vm: u32, network: CellNetwork, device: Arc<D>) {
        let CellNetwork { id, address, rules, .. } = network;
        let none = || SwitchedNetwork { ports: BTreeMap::new(), flows: FlowTable::default() };
        let of = self.networks.entry(id).or_insert_with(none);
        of.flows.forget(address);
        of.ports.insert(address, SwitchPort { vm, rules, is_open: true, device, budget: None });
    }

    fn port_mut(&mut self, vm: u32, (id, address): &NetworkPlace) -> Option<&mut SwitchPort<D>> {
        let port = self.networks.get_mut(id)?.ports.get_mut(address)?;
        (port.vm == vm).then_some(port)
    }

    fn set_rules(&mut self, vm: u32, network: CellNetwork) {
        let CellNetwork { id, address, rules, .. } = network;
        if let Some(port) = self.port_mut(vm, &(id, address)) {
            port.rules = rules;
        }
    }

    fn remove(&mut self, vm: u32, of: &NetworkPlace) {
        if self.port_mut(vm, of).is_none() {
            return;
        }
        let (id, address) = of;
        if let Some(network) = self.networks.get_mut(id) {
            network.ports.remove(address);
            network.flows.forget(*address);
            if network.ports.is_empty() {
                self.networks.remove(id);
            }
        }
    }

    /// Returns the way of a packet of the instance on a VM; `None`: it is dropped, as EC2 drops packets that are not allowed.
    fn find_way(
        &mut self,
        vm: u32,
        (id, address): &NetworkPlace,
        packet: &[u8],
        now: Instant,
    ) -> Option<PacketWay<D>> {
        let PacketHead { source, destination, kind } = read_head(packet)?;
        let SwitchedNetwork { ports, flows } = self.networks.get_mut(id)?;
        let from = ports.get(address).filter(|from| from.vm == vm && from.is_open)?;
        if source != *address {
            return None;
        }
        let to = ports.get(&destination);
        let is_known = match kind {
            PacketKind::Data { ends, signs } => flows.pass(ends, signs, now),
            PacketKind::Undelivered(ends) => flows.knows(ends, now).then_some(true)?,
        };
        let new = match kind {
            PacketKind::Data { ends, .. } if !is_known => Some(ends),
            _ => None,
        };
        let way = match (to, new) {
            (Some(to), None) => PacketWay::Here(to.open_device()?),
            (Some(to), Some(ends)) => {
                PacketWay::Here(to.open_device().filter(|_| is_allowed(from, to, ends))?)
            }
            (None, None) => PacketWay::Away(match kind {
                PacketKind::Data { ends, .. } => flows.wanted_groups(ends),
                PacketKind::Undelivered(_) => Vec::new(),
            }),
            (None, Some(ends)) => {
                let at = (ends.protocol, ends.destination.1);
                PacketWay::Away(from.rules.groups_allowed(at, destination)?)
            }
        };
        let wanted = match &way {
            PacketWay::Away(groups) => groups.clone(),
            PacketWay::Here(_) => Vec::new(),
        };
        if let PacketWay::Away(_) = way {
            let from = ports.get_mut(address)?;
            let budget = from.budget.get_or_insert_with(|| CarryBudget::new(now));
            budget.take_packet(packet.len(), now).then_some(())?;
        }
        new.is_none_or(|ends| flows.add(ends, wanted, now)).then_some(way)
    }

    /// Returns the device to which a packet of an instance on another host goes; `None`: it is dropped.
    fn find_destination(&mut self, carried: &CarriedPacket, now: Instant) -> Option<Arc<D>> {
        let PacketHead { source, destination, kind } = read_head(&carried.packet)?;
        let SwitchedNetwork { ports, flows } = self.networks.get_mut(&carried.network)?;
        let to = ports.get(&destination)?;
        if ports.contains_key(&source) {
            return None;
        }
        let passes = match kind {
            PacketKind::Data { ends, signs } => {
                let rules = InstanceRules::of_groups(&carried.groups);
                let at = (ends.protocol, ends.destination.1);
                flows.pass(ends, signs, now)
                    || to.rules.allow(false, at, (source, &rules))
                        && flows.add(ends, Vec::new(), now)
            }
            PacketKind::Undelivered(ends) => flows.knows(ends, now),
        };
        to.open_device().filter(|_| passes)
    }
}

impl<D> SwitchPort<D> {
    /// Returns the device; `None`: the instance gets no packets.
    fn open_device(&self) -> Option<Arc<D>> {
        self.is_open.then(|| Arc::clone(&self.device))
    }
}

/// Returns whether the security groups of both instances allow a connection.
fn is_allowed<D>(from: &SwitchPort<D>, to: &SwitchPort<D>, ends: PacketEnds) -> bool {
    let PacketEnds { source, destination, protocol } = ends;
    let at = (protocol, destination.1);
    from.rules.allow(true, at, (destination.0, &to.rules))
        && to.rules.allow(false, at, (source.0, &from.rules))
}

#[cfg(test)]
mod tests {
    use dormouse_proto::v1::NetworkRule;

    use super::super::packet::tests::{ends, packet, undelivered};
    use super::super::rules::tests::{network, rule};
    use super::*;

    /// A network of instances 1 to 4, on VMs 11 to 14: 2 may be reached at port 80 from the group of 1, and 4 may call nobody.
    fn bench() -> SwitchTable<u8> {
        let mut table = SwitchTable::default();
        let out = || rule(true, 0..=65_535, "0.0.0.0/0");
        let of = |rules: Vec<NetworkRule>, last, group: &str| network(last, group, rules);
        table.add(11, of(vec![out()], 1, "sg-a"), Arc::new(1));
        table.add(12, of(vec![out(), rule(false, 80..=80, "sg-a")], 2, "sg-b"), Arc::new(2));
        table.add(13, of(vec![out()], 3, "sg-c"), Arc::new(3));
        table.add(14, of(Vec::new(), 4, "sg-a"), Arc::new(4));
        table
    }

    fn sent(table: &mut SwitchTable<u8>, from: (u8, u16), to: (u8, u16)) -> Option<u8> {
        let way = ends(from, to);
        let of = ("vpc-1".to_owned(), way.source.0);
        let vm = 10 + u32::from(from.0);
        match table.find_way(vm, &of, &packet(way, 0b10), Instant::now())? {
            PacketWay::Here(device) => Some(*device),
            PacketWay::Away(_) => Some(0),
        }
    }

    #[test]
    fn packets_go_where_both_sides_groups_allow_it_and_answers_come_back() {
        let mut table = bench();
        assert_eq!(sent(&mut table, (2, 80), (1, 4000)), None, "nobody asked");
        assert_eq!(sent(&mut table, (1, 4000), (2, 80)), Some(2));
        assert_eq!(sent(&mut table, (2, 80), (1, 4000)), Some(1), "the answer");
        assert_eq!(sent(&mut table, (1, 4000), (2, 81)), None, "another port");
        assert_eq!(sent(&mut table, (3, 4000), (2, 80)), None, "another group");
        assert_eq!(sent(&mut table, (4, 4000), (2, 80)), None, "it may call nobody");
        assert_eq!(sent(&mut table, (4, 4000), (9, 80)), None, "it may call nobody");
    }

    #[test]
    fn packets_for_other_hosts_go_away_and_theirs_come_as_groups_allow_it() {
        let mut table = bench();
        let now = Instant::now();
        let of = |last| ("vpc-1".to_owned(), Ipv4Addr::new(10, 0, 0, last));
        let way = ends((1, 4000), (9, 80));
        let away = |groups: &[&str]| {
            Some(PacketWay::Away(groups.iter().map(|id| (*id).to_owned()).collect()))
        };
        assert_eq!(table.find_way(11, &of(1), &packet(way, 0b10), now), away(&[]));
        let rules = vec![rule(true, 80..=80, "sg-x"), rule(true, 81..=81, "sg-y")];
        table.set_rules(13, network(3, "sg-c", rules));
        let to_group = |port| packet(ends((3, 4000), (9, port)), 0b10);
        assert_eq!(table.find_way(13, &of(3), &to_group(80), now), away(&["sg-x"]));
        assert_eq!(table.find_way(13, &of(3), &to_group(82), now), None);
        let mut carried = |way, group: &str| {
            let groups = vec![group.to_owned()];
            let packet = packet(way, 0b10).into();
            let carried = CarriedPacket { network: "vpc-1".to_owned(), packet, groups };
            table.find_destination(&carried, now).map(|device| *device)
        };
        assert_eq!(carried(way.reversed(), "sg-b"), Some(1), "the answer");
        assert_eq!(carried(ends((9, 4000), (2, 80)), "sg-a"), Some(2));
        assert_eq!(carried(ends((9, 4001), (2, 80)), "sg-b"), None, "another group");
        assert_eq!(carried(ends((1, 4001), (2, 80)), "sg-a"), None, "its source is here");
        assert_eq!(carried(ends((9, 4001), (8, 80)), "sg-a"), None, "nobody is there");
    }

    #[test]
    fn a_flood_to_other_hosts_uses_up_the_budget_of_its_instance_alone() {
        let (mut table, now) = (bench(), Instant::now());
        let of = |last| ("vpc-1".to_owned(), Ipv4Addr::new(10, 0, 0, last));
        let mut away = |last, count| {
            let packet = packet(ends((last, 4000), (9, 80)), 0b10);
            let ways =
                (0..count).map(|_| table.find_way(10 + u32::from(last), &of(last), &packet, now));
            ways.flatten().count()
        };
        assert_eq!((away(1, 5000), away(3, 100)), (2048, 100));
        assert_eq!(sent(&mut table, (1, 4000), (2, 80)), Some(2), "its own host's are no matter");
    }

    #[test]
    fn connections_that_are_over_are_forgotten_by_a_sweep() {
        let switch = NetworkSwitch::default();
        let device = Arc::new(File::open("/dev/null").expect("it is always there"));
        let out = vec![rule(true, 0..=65_535, "0.0.0.0/0")];
        switch.add(11, network(1, "sg-a", out), device);
        let of = ("vpc-1".to_owned(), Ipv4Addr::new(10, 0, 0, 1));
        switch.deliver(11, &of, &packet(ends((1, 4000), (9, 80)), 0b10));
        let known = |switch: &NetworkSwitch| switch.table().callers();
        switch.sweep(Instant::now());
        assert_eq!(known(&switch), [of]);
        switch.sweep(Instant::now() + std::time::Duration::from_secs(400));
        assert_eq!(known(&switch), []);
    }

    #[test]
    fn changed_rules_count_for_new_connections() {
        let mut table = bench();
        assert_eq!(sent(&mut table, (1, 4000), (2, 80)), Some(2));
        table.set_rules(12, network(2, "sg-b", vec![rule(false, 443..=443, "10.0.0.0/16")]));
        assert_eq!(sent(&mut table, (1, 4000), (2, 80)), Some(2), "it is tracked");
        assert_eq!(sent(&mut table, (1, 4001), (2, 80)), None);
        assert_eq!(sent(&mut table, (3, 4001), (2, 443)), Some(2));
        // Those of a VM that has been replaced change nothing.
        table.set_rules(99, network(2, "sg-b", Vec::new()));
        assert_eq!(sent(&mut table, (3, 4002), (2, 443)), Some(2));
    }

    #[test]
    fn nothing_is_forged_and_who_is_frozen_or_gone_gets_nothing() {
        let mut table = bench();
        let way = ends((1, 4000), (2, 80));
        let of = |last| ("vpc-1".to_owned(), Ipv4Addr::new(10, 0, 0, last));
        let now = Instant::now();
        let packet = packet(way, 0);
        assert_eq!(table.find_way(13, &of(3), &packet, now), None, "another's address");
        assert_eq!(table.find_way(13, &of(1), &packet, now), None, "another's device");
        let elsewhere = ("vpc-2".to_owned(), way.source.0);
        assert_eq!(table.find_way(11, &elsewhere, &packet, now), None, "another network");
        let about = ends((2, 7), (1, 7));
        let forged = undelivered(way.source.0, about);
        assert_eq!(table.find_way(11, &of(1), &forged, now), None, "nothing was sent");
        assert_eq!(sent(&mut table, (1, 4000), (2, 80)), Some(2));
        let said = undelivered(way.destination.0, way);
        let way = PacketWay::Here(Arc::new(1));
        assert_eq!(table.find_way(12, &of(2), &said, now), Some(way));
        table.port_mut(12, &of(2)).expect("it is there").is_open = false;
        assert_eq!(sent(&mut table, (1, 4000), (2, 80)), None, "it is frozen");
        table.remove(99, &of(2));
        assert!(table.port_mut(12, &of(2)).is_some());
        table.remove(12, &of(2));
        assert_eq!(sent(&mut table, (1, 4001), (2, 80)), Some(0), "it is sought on other hosts");
    }
}
