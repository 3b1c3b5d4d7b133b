//! The host under all VMs of one session.

use std::{fmt::Debug, pin::Pin, sync::Arc};

use dormouse_proto::v1::{CreateVm, Report, StartTask};

use super::vm::VmMachine;
use crate::{agent::report::Key, workspace::TaskName};

/// A boxed future. The work continues only while it is polled, unless stated otherwise.
pub type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The host under all VMs of one session: it creates their machines, and stores what their tasks leave on its disk.
pub trait MachineBackend: Debug + Send + Sync + 'static {
    /// Waits until this process runs: at once, except while the simulator has stopped it.
    fn running(&self) -> BoxedFuture<()>;

    /// Sends a report to the coordinator by the session.
    fn report(&self, report: Report);

    /// Creates the machine of a VM.
    ///
    /// # Errors
    ///
    /// In words, why the machine can't be created. Nothing of the machine is left then.
    fn create_vm(&self, create: &CreateVm) -> BoxedFuture<Result<Arc<dyn VmMachine>, String>>;

    /// Checks that the command's program may have what it requests of this host. A host that does not say otherwise runs no
    /// programs of users' own.
    ///
    /// # Errors
    ///
    /// In words, what the program may not have.
    fn check_order(&self, order: &StartTask) -> Result<(), String> {
        match order.own {
            Some(_) => Err("this machine runs no programs of users' own".to_owned()),
            None => Ok(()),
        }
    }

    /// Returns whether the time that an attempt is promised counts only from when the inputs of its program are in its
    /// directory.
    fn waits_for_inputs(&self, _order: &StartTask) -> bool {
        false
    }

    /// Removes the directory of an attempt that has ended and, unless the next attempt needs them (`keeps`), its
    /// checkpoints.
    fn release(&self, name: &TaskName, key: Key, keeps: bool);

    /// Handles that the VM of an instance has ended: the instance's files are kept, or removed. A host that does not say otherwise
    /// has no instances.
    fn release_folder(&self, _name: &TaskName, _vm: u32, _keeps: bool) {}

    /// Removes the files that are kept in the folder of an instance.
    fn forget_folder(&self, _name: &TaskName) {}

    /// Returns the bytes of a task's checkpoint that is being written; 0 if the disk doesn't report it.
    fn unfinished_bytes(&self, _name: &TaskName) -> u64 {
        0
    }
}
