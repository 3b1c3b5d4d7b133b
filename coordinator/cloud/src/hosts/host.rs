//! Amounts of room for VMs in every dimension.

use std::fmt;

use dormouse_units::Bytes;
use serde::{Deserialize, Serialize};

/// Room that a host offers or a VM takes: an amount in every dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ResourceVector {
    /// vCPUs of reference speed; a host can run all of them at full speed together.
    pub vcpus: u32,
    /// Memory that the host has, or that the VM occupies.
    pub memory: Bytes,
    /// Disk that the host has, or that the VM occupies; `u64::MAX`, which is left out when
    /// serialised, means more than all VMs need.
    #[serde(default = "endless_disk", skip_serializing_if = "is_endless")]
    pub disk: Bytes,
    /// Memory that processes really fill; `u64::MAX`, which is left out when serialised, means
    /// enough for all VMs. Emulated VMs may have more nominal memory than their host.
    #[serde(default = "endless_disk", skip_serializing_if = "is_endless")]
    pub filled: Bytes,
}

const fn endless_disk() -> Bytes {
    Bytes::new(u64::MAX)
}

fn is_endless(bytes: &Bytes) -> bool {
    *bytes == endless_disk()
}

impl ResourceVector {
    /// No room in any dimension.
    pub(super) const NONE: Self = Self::of_vcpus(0);

    /// A host of this size with unlimited disk, and no limit on the memory that processes fill.
    #[must_use]
    pub const fn new(vcpus: u32, memory: Bytes) -> Self {
        Self { vcpus, memory, disk: endless_disk(), filled: endless_disk() }
    }

    /// The number of vCPUs in words, such as `4 vCPUs`; for a provider with unlimited hosts, as
    /// many as are requested.
    #[must_use]
    pub fn vcpus_in_words(&self) -> String {
        match self.vcpus {
            u32::MAX => "as many vCPUs as are asked for".to_owned(),
            1 => "1 vCPU".to_owned(),
            vcpus => format!("{vcpus} vCPUs"),
        }
    }

    /// Room of `vcpus` vCPUs without memory or disk.
    #[must_use]
    pub const fn of_vcpus(vcpus: u32) -> Self {
        Self { vcpus, memory: Bytes::ZERO, disk: Bytes::ZERO, filled: Bytes::ZERO }
    }

    /// The part of a VM's room that other VMs can use while the VM is hibernated: vCPUs, and memory, whose content is saved to
    /// disk. The VM keeps its disk, and also the memory that is really filled: an emulated VM is frozen in place.
    #[must_use]
    pub const fn left_while_hibernated(&self) -> Self {
        Self { disk: Bytes::ZERO, filled: Bytes::ZERO, ..*self }
    }

    /// True if this room is at least `want` in every dimension.
    #[must_use]
    pub fn holds(&self, want: &Self) -> bool {
        self.vcpus >= want.vcpus
            && self.memory >= want.memory
            && self.disk >= want.disk
            && self.filled >= want.filled
    }

    /// This room less `other`, at least zero in every dimension.
    #[must_use]
    pub const fn minus_room(&self, other: &Self) -> Self {
        Self {
            vcpus: self.vcpus.saturating_sub(other.vcpus),
            memory: self.memory.saturating_sub(other.memory),
            disk: self.disk.saturating_sub(other.disk),
            filled: self.filled.saturating_sub(other.filled),
        }
    }

    /// The sum of both rooms in every dimension.
    #[must_use]
    pub fn plus_room(&self, other: &Self) -> Self {
        Self {
            vcpus: self.vcpus.saturating_add(other.vcpus),
            memory: self.memory + other.memory,
            disk: self.disk + other.disk,
            filled: self.filled + other.filled,
        }
    }

    /// This room `n` times, in every dimension.
    #[must_use]
    pub(super) fn times_room(&self, n: u32) -> Self {
        let bytes = |b: Bytes| Bytes::new(b.get().saturating_mul(u64::from(n)));
        Self {
            vcpus: self.vcpus.saturating_mul(n),
            memory: bytes(self.memory),
            disk: bytes(self.disk),
            filled: bytes(self.filled),
        }
    }

    /// Lower bound for the number of rooms like this that together hold `want`.
    #[must_use]
    pub(super) fn how_often_in(&self, want: &Self) -> u64 {
        let bytes = |have: Bytes, want: Bytes| want.get().div_ceil(have.get().max(1));
        let vcpus = want.vcpus.div_ceil(self.vcpus.max(1)).into();
        let (memory, disk) = (bytes(self.memory, want.memory), bytes(self.disk, want.disk));
        memory.max(disk).max(bytes(self.filled, want.filled)).max(vcpus)
    }

    /// The smaller of both rooms in every dimension.
    #[must_use]
    pub(super) fn common_part(&self, other: &Self) -> Self {
        Self {
            vcpus: self.vcpus.min(other.vcpus),
            memory: self.memory.min(other.memory),
            disk: self.disk.min(other.disk),
            filled: self.filled.min(other.filled),
        }
    }

    /// The larger of both rooms in every dimension.
    #[must_use]
    pub(super) fn larger_of(&self, other: &Self) -> Self {
        Self {
            vcpus: self.vcpus.max(other.vcpus),
            memory: self.memory.max(other.memory),
            disk: self.disk.max(other.disk),
            filled: self.filled.max(other.filled),
        }
    }
}

impl fmt::Display for ResourceVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Machines for parallel jobs have no memory of their own, and few VMs need a disk.
        f.write_str(&self.vcpus_in_words())?;
        match self.memory {
            Bytes::ZERO => {}
            // What is without bounds has no figure.
            endless if is_endless(&endless) && self.vcpus == u32::MAX => {
                f.write_str(" and as much memory")?;
            }
            endless if is_endless(&endless) => {
                f.write_str(" and as much memory as is asked for")?;
            }
            memory => write!(f, " and {memory}")?,
        }
        match self.disk {
            disk if disk == Bytes::ZERO || is_endless(&disk) => Ok(()),
            disk => write!(f, " and {disk} of disk"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_without_bounds_has_no_figure() {
        let gib = Bytes::new(1 << 30);
        for (host, says) in [
            (
                ResourceVector::new(u32::MAX, endless_disk()),
                "as many vCPUs as are asked for and as much memory",
            ),
            (
                ResourceVector::new(33, endless_disk()),
                "33 vCPUs and as much memory as is asked for",
            ),
            (ResourceVector::new(4, gib), "4 vCPUs and 1 GiB"),
            (
                ResourceVector { disk: gib, ..ResourceVector::of_vcpus(1) },
                "1 vCPU and 1 GiB of disk",
            ),
        ] {
            assert_eq!(host.to_string(), says);
        }
    }
}
