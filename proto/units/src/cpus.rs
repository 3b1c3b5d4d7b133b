//! The vCPUs of a task.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The vCPU of each process of a task, in the order of its processes; cheap to clone. The vCPU of a
/// task of one process needs no allocation: there are many such tasks, and each list is handed on
/// many times.
#[derive(Clone, Default, JsonSchema)]
#[schemars(description = "The vCPU of each process of a task, in the order of its processes.")]
pub struct Cpus(#[schemars(with = "Vec<u32>")] CpuList);

#[derive(Clone, Default)]
enum CpuList {
    #[default]
    None,
    One([u32; 1]),
    Several(Arc<[u32]>),
}

impl Deref for Cpus {
    type Target = [u32];

    #[inline]
    fn deref(&self) -> &[u32] {
        match &self.0 {
            CpuList::None => &[],
            CpuList::One(cpu) => cpu,
            CpuList::Several(cpus) => cpus,
        }
    }
}

impl From<&[u32]> for Cpus {
    #[inline]
    fn from(cpus: &[u32]) -> Self {
        Self(match cpus {
            [] => CpuList::None,
            [cpu] => CpuList::One([*cpu]),
            several => CpuList::Several(several.into()),
        })
    }
}

impl<const N: usize> From<[u32; N]> for Cpus {
    #[inline]
    fn from(cpus: [u32; N]) -> Self {
        Self::from(&cpus[..])
    }
}

impl From<Vec<u32>> for Cpus {
    fn from(cpus: Vec<u32>) -> Self {
        Self::from(&*cpus)
    }
}

impl FromIterator<u32> for Cpus {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self::from(Vec::from_iter(cpus))
    }
}

impl PartialEq for Cpus {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Cpus {}

impl fmt::Debug for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self[..].serialize(to)
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Vec::deserialize(from).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_list_that_they_were_made_of() {
        for list in [vec![], vec![7], vec![3, 1], vec![0; 300]] {
            let cpus = Cpus::from(list.clone());
            assert_eq!(*cpus, *list);
            assert_eq!(cpus, list.iter().copied().collect());
            assert_eq!(format!("{cpus:?}"), format!("{list:?}"));
            assert_eq!(cpus == Cpus::default(), list.is_empty());
            assert_ne!(cpus, Cpus::from([3, 2]));
        }
    }
}
