//! Free and taken room on each host, as far as the steps of a run tell.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::ResourceVector;
use dormouse_units::HostId;

/// vCPUs, bytes of memory and bytes of disk; negative if more is occupied than exists.
pub(super) type Room = [i128; 3];

/// Greatest number of hosts with enough vCPUs that are searched for room after a refusal.
const MOST_LOOKED_AT: usize = 1_000;

/// Converts the resources of a host or VM to a `Room`. An unlimited disk becomes a very large number.
pub(super) fn room(of: &ResourceVector) -> Room {
    [of.vcpus.into(), of.memory.get().into(), of.disk.get().into()]
}

/// Room on one host, counted in three ways.
#[derive(Clone, Copy, Debug, Default)]
struct RoomOnHost {
    /// Room that is certainly free: VMs that wait for room, that are about to leave or that are
    /// hibernated count as if they held all their room.
    free: Room,
    /// Total room of the spot VMs that can be preempted to make room.
    preemptible: Room,
    /// Room left by the VMs that certainly hold their room; negative only if a rule is broken.
    held: Room,
}

/// Room on all hosts of a run.
#[derive(Debug, Default)]
pub(super) struct HostRooms {
    hosts: BTreeMap<HostId, RoomOnHost>,
    /// Hosts sorted by their number of free vCPUs; `by_partial` also counts the vCPUs of spot VMs that can leave.
    by_free: BTreeSet<(i128, HostId)>,
    by_partial: BTreeSet<(i128, HostId)>,
}

/// One of the room counts of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoomQuantity {
    Taken,
    Preemptible,
    Held,
}

impl HostRooms {
    pub(super) fn join(&mut self, host: HostId, offer: &ResourceVector) {
        let all = room(offer);
        self.leave(host);
        let carrier = RoomOnHost { free: all, preemptible: [0; 3], held: all };
        self.hosts.insert(host, carrier);
        self.by_free.insert((carrier.free[0], host));
        self.by_partial.insert((carrier.with_preemptible()[0], host));
    }

    pub(super) fn leave(&mut self, host: HostId) {
        if let Some(gone) = self.hosts.remove(&host) {
            self.by_free.remove(&(gone.free[0], host));
            self.by_partial.remove(&(gone.with_preemptible()[0], host));
        }
    }

    pub(super) fn has(&self, host: HostId) -> bool {
        self.hosts.contains_key(&host)
    }

    /// Adds `by` to one count of a host, or subtracts it if `more` is false; returns false if VMs then occupy more than
    /// the host has.
    pub(super) fn change(
        &mut self,
        host: HostId,
        part: RoomQuantity,
        by: Room,
        more: bool,
    ) -> bool {
        let Some(of) = self.hosts.get_mut(&host) else { return true };
        let before = (of.free[0], of.with_preemptible()[0]);
        let quantity = match part {
            RoomQuantity::Taken => &mut of.free,
            RoomQuantity::Preemptible => &mut of.preemptible,
            RoomQuantity::Held => &mut of.held,
        };
        // Preemptible room is counted up; taken and held room is counted down from what the host
        // has.
        let adds = more == (part == RoomQuantity::Preemptible);
        for (sum, by) in quantity.iter_mut().zip(by) {
            *sum += if adds { by } else { -by };
        }
        let after = (of.free[0], of.with_preemptible()[0]);
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

    /// Finds a host that certainly has this much free room, or (if `may_preempt`) would have it without its spot VMs; `None` if no
    /// host is found. Only the first [`MOST_LOOKED_AT`] hosts with enough vCPUs are searched.
    pub(super) fn with_room(&self, want: Room, may_preempt: bool) -> Option<HostId> {
        let hosts = if may_preempt { &self.by_partial } else { &self.by_free };
        let candidates = hosts.range((want[0], HostId::new(0))..).take(MOST_LOOKED_AT);
        let holds = |host: &HostId| {
            self.hosts.get(host).is_some_and(|of| {
                let has = if may_preempt { of.with_preemptible() } else { of.free };
                has.iter().zip(want).all(|(has, want)| *has >= want)
            })
        };
        candidates.map(|(_, host)| *host).find(holds)
    }
}

impl RoomOnHost {
    fn with_preemptible(&self) -> Room {
        std::array::from_fn(|n| self.free[n] + self.preemptible[n])
    }
}
