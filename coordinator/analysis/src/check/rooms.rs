//! What hosts have for VMs, as far as the steps of a run say.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::Host;
use dormouse_units::HostId;

/// A room that may be less than nothing: vCPUs, memory, disk.
pub(super) type Room = [i128; 3];

/// Hosts with enough vCPUs that are looked at for a request that was refused, at most.
const MOST_LOOKED_AT: usize = 1_000;

/// The dimensions of a room. A disk without bounds is one that nobody fills.
pub(super) fn room(of: &Host) -> Room {
    [of.vcpus.into(), of.memory.get().into(), of.disk.get().into()]
}

/// Room on one host, counted in several ways.
#[derive(Clone, Copy, Debug, Default)]
struct Carrier {
    /// What is not taken even where VMs that wait for room, and those that are to leave it, and those that
    /// are hibernated are all counted: at least so much is free.
    free: Room,
    /// The rooms of the spot VMs that can be told to leave.
    preemptible: Room,
    /// What is left besides VMs that surely have their room: not less than nothing.
    held: Room,
}

/// The hosts of a run.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    hosts: BTreeMap<HostId, Carrier>,
    /// Hosts by the vCPUs that are free, and by those without spot VMs.
    by_free: BTreeSet<(i128, HostId)>,
    by_partial: BTreeSet<(i128, HostId)>,
}

/// One of the quantities of room that are tracked for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Taken,
    Preemptible,
    Held,
}

impl Rooms {
    pub(super) fn join(&mut self, host: HostId, offer: &Host) {
        let all = room(offer);
        self.leave(host);
        let carrier = Carrier { free: all, preemptible: [0; 3], held: all };
        self.hosts.insert(host, carrier);
        self.by_free.insert((carrier.free[0], host));
        self.by_partial.insert((carrier.partial()[0], host));
    }

    pub(super) fn leave(&mut self, host: HostId) {
        if let Some(gone) = self.hosts.remove(&host) {
            self.by_free.remove(&(gone.free[0], host));
            self.by_partial.remove(&(gone.partial()[0], host));
        }
    }

    pub(super) fn has(&self, host: HostId) -> bool {
        self.hosts.contains_key(&host)
    }

    /// So much more, or less, is taken or preemptible or held; whether the host can hold that.
    pub(super) fn change(&mut self, host: HostId, part: Part, by: Room, more: bool) -> bool {
        let Some(of) = self.hosts.get_mut(&host) else { return true };
        let before = (of.free[0], of.partial()[0]);
        let quantity = match part {
            Part::Taken => &mut of.free,
            Part::Preemptible => &mut of.preemptible,
            Part::Held => &mut of.held,
        };
        // What is preemptible is added, what is taken or held is missing.
        let adds = more == (part == Part::Preemptible);
        for (sum, by) in quantity.iter_mut().zip(by) {
            *sum += if adds { by } else { -by };
        }
        let after = (of.free[0], of.partial()[0]);
        let is_fine = of.held.iter().all(|left| *left >= 0);
        if before.0 != after.0 {
            self.by_free.remove(&(before.0, host));
            self.by_free.insert((after.0, host));
        }
        if before.1 != after.1 {
            self.by_partial.remove(&(before.1, host));
            self.by_partial.insert((after.1, host));
        }
        is_fine
    }

    /// A host that surely has so much room, free or without its spot VMs: of those with enough vCPUs not
    /// all are looked at where they are very many.
    pub(super) fn with_room(&self, want: Room, may_preempt: bool) -> Option<HostId> {
        let hosts = if may_preempt { &self.by_partial } else { &self.by_free };
        let candidates = hosts.range((want[0], HostId::new(0))..).take(MOST_LOOKED_AT);
        let holds = |host: &HostId| {
            self.hosts.get(host).is_some_and(|of| {
                let has = if may_preempt { of.partial() } else { of.free };
                has.iter().zip(want).all(|(has, want)| *has >= want)
            })
        };
        candidates.map(|(_, host)| *host).find(holds)
    }
}

impl Carrier {
    fn partial(&self) -> Room {
        std::array::from_fn(|n| self.free[n] + self.preemptible[n])
    }
}
