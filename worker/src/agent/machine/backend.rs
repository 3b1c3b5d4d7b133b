//! The host under all VMs of one life.

use std::{fmt::Debug, pin::Pin, sync::Arc};

use dormouse_proto::v1::{CreateVm, Report, StartTask};

use super::vm::VmMachine;
use crate::{
    agent::{gate::VmGate, report::Key},
    workspace::TaskName,
};

/// Work that is under way; it goes on only while somebody waits for it, unless it says otherwise.
pub type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The host under all VMs of one life: it makes their machines, and keeps what their tasks leave on its disk.
pub trait MachineBackend: Debug + Send + Sync + 'static {
    /// Waits until this process runs: at once, but where the simulator has stopped it.
    fn running(&self) -> BoxedFuture<()>;

    /// Hands a report to the session with the coordinator.
    fn report(&self, report: Report);

    /// Makes the machine of a VM, whose `gate` says what may be begun on it.
    ///
    /// # Errors
    /// In words, why it can't be made. Nothing of it is left then.
    fn create_vm(
        &self,
        create: &CreateVm,
        gate: &Arc<VmGate>,
    ) -> BoxedFuture<Result<Arc<dyn VmMachine>, String>>;

    /// Checks that the program of an order may have what it asks for of this host.
    ///
    /// # Errors
    /// In words, what it may not have.
    fn check_order(&self, order: &StartTask) -> Result<(), String>;

    /// Whether an attempt is owed no time until the inputs of its program are in its directory.
    fn waits_for_inputs(&self, order: &StartTask) -> bool;

    /// Takes away the directory of an attempt that is over and, unless it `keeps` them for the next one, its
    /// checkpoints.
    fn release(&self, name: &TaskName, key: Key, keeps: bool);

    /// Bytes of the checkpoint of a task that is being written.
    fn unfinished_bytes(&self, name: &TaskName) -> u64;
}
