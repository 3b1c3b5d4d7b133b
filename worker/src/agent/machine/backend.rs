//! The host under all VMs of one session.

use std::{fmt::Debug, pin::Pin, sync::Arc};

use dormouse_proto::v1::{CreateVm, Report, StartTask};

use super::vm::VmMachine;
use crate::{
    agent::{gate::VmGate, report::Key},
    workspace::TaskName,
};

/// A boxed future. The work continues only while it is polled, unless stated otherwise.
pub type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The host under all VMs of one session: it creates their machines, and stores what their tasks leave on its disk.
pub trait MachineBackend: Debug + Send + Sync + 'static {
    /// Waits until this process runs: at once, except while the simulator has stopped it.
    fn running(&self) -> BoxedFuture<()>;

    /// Sends a report to the coordinator by the session.
    fn report(&self, report: Report);

    /// Creates the machine of a VM; `gate` tells which work may begin on the VM.
    ///
    /// # Errors
    ///
    /// In words, why the machine can't be created. Nothing of the machine is left then.
    fn create_vm(
        &self,
        create: &CreateVm,
        gate: &Arc<VmGate>,
    ) -> BoxedFuture<Result<Arc<dyn VmMachine>, String>>;

    /// Checks that the command's program may have what it requests of this host.
    ///
    /// # Errors
    ///
    /// In words, what the program may not have.
    fn check_order(&self, order: &StartTask) -> Result<(), String>;

    /// Returns whether an attempt is promised no time until the inputs of its program are in its directory.
    fn waits_for_inputs(&self, order: &StartTask) -> bool;

    /// Removes the directory of an attempt that has ended and, unless the next attempt needs them (`keeps`), its
    /// checkpoints.
    fn release(&self, name: &TaskName, key: Key, keeps: bool);

    /// Returns the bytes of a task's checkpoint that is being written.
    fn unfinished_bytes(&self, name: &TaskName) -> u64;
}
