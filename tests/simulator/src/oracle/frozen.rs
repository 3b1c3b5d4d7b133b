//! Checks that a VM is said to be frozen only while its machine is, and that no process begins on it meanwhile.

use std::collections::BTreeSet;

use dormouse_proto::v1::report::Report;
use dormouse_units::VmId;

use super::Broken;
use crate::invariant::Invariant;
use crate::witness::Deed;

/// The VMs whose machines are frozen, by worker session.
#[derive(Debug, Default)]
pub(super) struct FrozenVms {
    /// The names of the workers that lie, whose reports are not looked at.
    liars: BTreeSet<String>,
    frozen: BTreeSet<(String, u64, VmId)>,
}

impl FrozenVms {
    /// A record of a run in which the workers of these names lie.
    pub(super) fn new(liars: BTreeSet<String>) -> Self {
        Self { liars, frozen: BTreeSet::new() }
    }

    /// Checks what a machine or a worker has done.
    pub(super) fn did(&mut self, deed: &Deed) -> Result<(), Broken> {
        let of = |worker: &String, incarnation: &u64, vm| (worker.clone(), *incarnation, vm);
        match deed {
            Deed::VmFreezeChanged { worker, incarnation, vm, is_frozen, .. } => {
                let vm = of(worker, incarnation, *vm);
                match is_frozen {
                    true => drop(self.frozen.insert(vm)),
                    false => drop(self.frozen.remove(&vm)),
                }
                Ok(())
            }
            Deed::Said { worker, incarnation, report } if !self.liars.contains(worker) => {
                let Some(Report::VmFrozen(said)) = &report.report else { return Ok(()) };
                let vm = VmId::new(said.vm);
                match self.frozen.contains(&of(worker, incarnation, vm)) {
                    true => Ok(()),
                    false => broken(format!("{worker} says that {vm} is frozen, which runs")),
                }
            }
            Deed::Began { worker, incarnation, vm, task, attempt, .. }
                if self.frozen.contains(&of(worker, incarnation, *vm)) =>
            {
                broken(format!("{task}, {attempt} begins on {vm} of {worker}, which is frozen"))
            }
            _ => Ok(()),
        }
    }
}

fn broken(why: String) -> Result<(), Broken> {
    Err((Invariant::Frozen, why))
}

#[cfg(test)]
mod tests {
    use dormouse_proto::v1::{self, VmTook};
    use dormouse_units::{Attempt, TaskId};

    use super::*;

    #[test]
    fn a_vm_is_said_to_be_frozen_while_it_is_and_nothing_begins_on_it() {
        let (w, vm) = (|name: &str| name.to_owned(), VmId::new(3));
        let mut all = FrozenVms::new([w("liar")].into());
        let stands = |is_frozen| {
            let worker = w("w0");
            Deed::VmFreezeChanged { worker, incarnation: 1, vm, is_frozen, at_us: 0 }
        };
        let says = |worker: &str, incarnation| {
            let report = Some(Report::VmFrozen(VmTook { vm: 3, ..VmTook::default() }));
            Deed::Said { worker: w(worker), incarnation, report: Box::new(v1::Report { report }) }
        };
        let begins = |vm| Deed::Began {
            worker: w("w0"),
            incarnation: 1,
            vm: VmId::new(vm),
            task: TaskId::new(0),
            attempt: Attempt::new(1),
            from: None,
        };
        assert!(all.did(&says("w0", 1)).is_err() && all.did(&says("liar", 1)).is_ok());
        assert_eq!(all.did(&begins(3)), Ok(()));
        assert_eq!(all.did(&stands(true)), Ok(()));
        assert!(all.did(&says("w0", 1)).is_ok() && all.did(&says("w0", 2)).is_err());
        assert!(all.did(&begins(3)).is_err() && all.did(&begins(4)).is_ok());
        assert_eq!(all.did(&stands(false)), Ok(()));
        assert!(all.did(&says("w0", 1)).is_err() && all.did(&begins(3)).is_ok());
    }
}
