//! The host cores that are shared by the two tasks of a vCPU.
//!
//! The kernel prefers a foreground to a background only on the core where both wait, and would
//! give each a core of its own (measured with two idle cores and a quota of half a one: the
//! background got as much as the foreground). So vCPUs with two tasks are bound to one core each,
//! the one that has the least bound to it; all others run wherever there is room.

use std::sync::{Arc, Mutex, PoisonError};

use nix::{
    sched::{CpuSet, sched_getaffinity},
    unistd::Pid,
};

/// Cores that this process may use, with the load bound to each.
#[derive(Debug)]
pub struct HostCores {
    all: CpuSet,
    /// Number of each core, and the sum of the quotas bound to the core, in ppm of the core.
    bound: Mutex<Vec<(usize, u64)>>,
}

/// A vCPU's binding to a core, released when dropped.
#[derive(Debug)]
pub(crate) struct BoundCore {
    cores: Arc<HostCores>,
    number: usize,
    ppm: u64,
}

impl HostCores {
    pub(crate) fn of_this_process() -> Self {
        // A host of more cores than the set has bits: nobody is bound, and only tiers suffer.
        let all = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        Self::new(all)
    }

    /// Makes an empty set of cores, to which nothing is bound.
    #[must_use]
    pub fn without_cores() -> Self {
        Self::new(CpuSet::new())
    }

    fn new(all: CpuSet) -> Self {
        let cores = (0..CpuSet::count()).filter(|core| all.is_set(*core).unwrap_or(false));
        Self { all, bound: Mutex::new(cores.map(|core| (core, 0)).collect()) }
    }

    /// Returns the set of all cores.
    pub(crate) fn all_cores(&self) -> &CpuSet {
        &self.all
    }

    /// Returns the number of cores.
    pub(crate) fn core_count(&self) -> usize {
        (0..CpuSet::count()).filter(|core| self.all.is_set(*core).unwrap_or(false)).count()
    }

    /// Binds a vCPU with a quota of `ppm` millionths of a core to the core with the least load; `None` if there is no core.
    pub(crate) fn place_vcpu(self: &Arc<Self>, ppm: u32) -> Option<BoundCore> {
        let ppm = u64::from(ppm);
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let (core, sum) = bound.iter_mut().min_by_key(|(_, sum)| *sum)?;
        *sum += ppm;
        Some(BoundCore { cores: Arc::clone(self), number: *core, ppm })
    }
}

impl BoundCore {
    /// Returns the CPU set of this core alone.
    pub(crate) fn core_set(&self) -> CpuSet {
        let mut set = CpuSet::new();
        // It came out of such a set.
        let _ = set.set(self.number);
        set
    }
}

impl Drop for BoundCore {
    fn drop(&mut self) {
        let mut bound = self.cores.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sum)) = bound.iter_mut().find(|(core, _)| *core == self.number) {
            *sum -= self.ppm;
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_least_bound_core_is_next() {
        let mut set = CpuSet::new();
        set.set(1).unwrap();
        set.set(5).unwrap();
        let cores = Arc::new(HostCores::new(set));
        let places: Vec<_> = [600_000, 200_000, 300_000, 200_000]
            .map(|ppm| cores.place_vcpu(ppm).unwrap())
            .into_iter()
            .collect();
        assert_eq!(places.iter().map(|p| p.number).collect::<Vec<_>>(), [1, 5, 5, 5]);
        assert!(
            places[3].core_set().is_set(5).unwrap() && !places[3].core_set().is_set(1).unwrap()
        );
        drop(places);
        assert_eq!(*cores.bound.lock().unwrap(), [(1, 0), (5, 0)]);
        assert!(Arc::new(HostCores::new(CpuSet::new())).place_vcpu(1).is_none());
    }
}
