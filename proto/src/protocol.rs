//! Versions of the session's protocol, and the names of what workers can do.

use std::fmt;

use crate::v1;

/// Capability: tasks can be checkpointed and restored.
pub const CRIU: &str = "criu";
/// Capability of a worker: checkpoints also work for parallel jobs, which continue after them and can be restored
/// from them.
pub const JOB_CHECKPOINTS: &str = "job-checkpoints";
/// Capability of a worker: parallel jobs can have memory, which their processes fill.
pub const JOB_MEMORY: &str = "job-memory";
/// Capability of a worker: parallel jobs slow down when their VM is out of CPU credits.
pub const JOB_CREDITS: &str = "job-credits";
/// Capability: each vCPU has a background slot beside its foreground slot, so that parallel jobs can run.
pub const TIERS: &str = "tiers";
/// Capability of a worker: vCPUs can have a share of their full speed, as those of background VMs have.
pub const SUPPLY: &str = "supply";
/// Capability: the worker carries out the faults that an experiment asks for.
pub const FAULTS: &str = "faults";
/// Capability: VMs have a metadata endpoint, and their programs are told what the provider announces about the VM.
pub const METADATA: &str = "metadata";
/// Capability of a worker: VMs can have cells, in which they run programs of their own, as instances do.
pub const CELLS: &str = "cells";
/// Capability of a worker: the results of all programs come with hashes of the values that were computed so far
/// (trails), so that another host can recompute a segment of the work and check it.
pub const TRAILS: &str = "trails";
/// Word in a worker's hello: its tasks run without a jail, as the worker's user and with all rights of that user.
pub const NO_JAIL: &str = "no-jail";
/// Word in a worker's hello: the jail of its tasks is incomplete, and the worker runs them nevertheless (`--jail
/// partial`).
pub const PARTIAL_JAIL: &str = "partial-jail";
/// The worker's control groups are of version 1.
pub const CGROUP_V1: &str = "cgroup-v1";
/// The worker's control groups are of version 2.
pub const CGROUP_V2: &str = "cgroup-v2";

/// A range of versions of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// The oldest version of the protocol that is spoken.
    pub oldest: u32,
    /// The newest version of the protocol that is spoken.
    pub newest: u32,
}

/// Versions of the protocol that this program speaks. `newest` is raised when messages change. `oldest` is raised
/// when a side of an older version could misunderstand a message or be misunderstood.
pub const PROTOCOLS: Protocols = Protocols { oldest: 7, newest: 9 };

impl Protocols {
    /// Versions that a worker speaks, by its hello.
    #[must_use]
    pub const fn from_hello(hello: &v1::Hello) -> Self {
        let newest = hello.newest_protocol;
        let oldest = if hello.oldest_protocol == 0 { newest } else { hello.oldest_protocol };
        Self { oldest, newest }
    }

    /// The newest version that a worker and its coordinator both speak.
    ///
    /// # Errors
    ///
    /// There is no such version; the error says whether the worker is too old or too new.
    pub fn settle(worker: Self, coordinator: Self) -> Result<u32, NoProtocol> {
        let newest = worker.newest.min(coordinator.newest);
        let oldest = worker.oldest.max(coordinator.oldest);
        if oldest <= newest { Ok(newest) } else { Err(NoProtocol { worker, coordinator }) }
    }
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { oldest, newest } = self;
        if oldest == newest { write!(f, "{newest}") } else { write!(f, "{oldest} to {newest}") }
    }
}

/// A worker and its coordinator speak no protocol in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoProtocol {
    /// Versions of the protocol that the worker speaks.
    pub worker: Protocols,
    /// Versions of the protocol that the coordinator speaks.
    pub coordinator: Protocols,
}

impl fmt::Display for NoProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, coordinator } = self;
        let is = if worker.newest < coordinator.oldest { "too old" } else { "too new" };
        write!(
            f,
            "the worker is {is} for this coordinator: it speaks protocol {worker}, the coordinator \
             {coordinator}; use the same version of both"
        )
    }
}

impl std::error::Error for NoProtocol {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_that_both_speak_is_used() {
        let of = |oldest, newest| Protocols { oldest, newest };
        assert_eq!(Protocols::settle(of(3, 5), of(4, 9)), Ok(5));
        assert_eq!(Protocols::settle(of(5, 9), of(4, 5)), Ok(5));
        assert_eq!(Protocols::settle(of(1, 9), of(4, 5)), Ok(5));
        let old = Protocols::settle(of(1, 3), of(4, 5)).map_err(|no| no.to_string());
        assert!(old.is_err_and(|no| no.contains("too old") && no.contains("1 to 3, the coord")));
        let new = Protocols::settle(of(6, 6), of(4, 5)).map_err(|no| no.to_string());
        assert!(new.is_err_and(|no| no.contains("too new") && no.contains("protocol 6,")));
    }

    #[test]
    fn a_worker_that_names_one_version_speaks_only_that() {
        let hello = v1::Hello { newest_protocol: 6, ..v1::Hello::default() };
        assert_eq!(Protocols::from_hello(&hello), Protocols { oldest: 6, newest: 6 });
    }
}
