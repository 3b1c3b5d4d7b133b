//! On which host a VM goes: filter, then weigh.

use std::collections::BTreeMap;

use dormouse_units::{Bytes, HostId};
use serde::{Deserialize, Serialize};

/// What a host offers to VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// vCPUs of the reference speed that it can run at full speed together.
    pub vcpus: u32,
    /// Memory.
    pub memory: Bytes,
}

/// The hosts and what is taken of them.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    hosts: BTreeMap<HostId, (Host, Host)>,
}

impl Placement {
    /// A host joins, or comes back empty.
    pub fn join(&mut self, id: HostId, host: Host) {
        self.hosts.insert(id, (host, host));
    }

    /// A host is gone, and what it carried with it.
    pub fn leave(&mut self, id: HostId) {
        self.hosts.remove(&id);
    }

    /// The host with most free vCPUs that holds `want`, the lowest id among equals; takes it.
    pub fn place(&mut self, want: Host) -> Option<HostId> {
        let (&id, _) = self
            .hosts
            .iter()
            .filter(|(_, (_, free))| free.vcpus >= want.vcpus && free.memory >= want.memory)
            .max_by_key(|(id, (_, free))| (free.vcpus, std::cmp::Reverse(**id)))?;
        self.take(id, want).then_some(id)
    }

    /// Takes more on a host that has it; false if it hasn't.
    pub fn take(&mut self, id: HostId, want: Host) -> bool {
        let Some((_, free)) = self.hosts.get_mut(&id) else { return false };
        if free.vcpus < want.vcpus || free.memory < want.memory {
            return false;
        }
        free.vcpus -= want.vcpus;
        free.memory = free.memory.saturating_sub(want.memory);
        true
    }

    /// What was taken on `id` is free again.
    pub fn release(&mut self, id: HostId, had: Host) {
        if let Some((_, free)) = self.hosts.get_mut(&id) {
            free.vcpus += had.vcpus;
            free.memory = free.memory + had.memory;
        }
    }

    /// The hosts as they joined.
    pub fn hosts(&self) -> impl Iterator<Item = (HostId, Host)> + '_ {
        self.hosts.iter().map(|(&id, &(host, _))| (id, host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vms_spread_and_never_exceed_a_host() {
        let host = |vcpus| Host { vcpus, memory: Bytes::new(100) };
        let (a, b) = (HostId::new(0), HostId::new(1));
        let mut hosts = Placement::default();
        hosts.join(a, host(4));
        hosts.join(b, host(6));
        let want = Host { vcpus: 3, memory: Bytes::new(50) };
        assert_eq!(
            [hosts.place(want), hosts.place(want), hosts.place(want)],
            [Some(b), Some(a), Some(b)]
        );
        assert_eq!(hosts.place(want), None);
        hosts.release(a, want);
        assert_eq!(hosts.place(want), Some(a));
        hosts.leave(b);
        hosts.release(b, want);
        assert_eq!(hosts.place(want), None);
    }
}
