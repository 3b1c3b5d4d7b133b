//! Machines that a life commands: VMs, and the host that they are on.

use dormouse_proto::v1::{CreateVm, Fault, HostLoad, Program, Report};

use crate::agent::{
    Result,
    vm::{CommandStamp, VmCommand},
};

/// The VMs of a life and their host: really control groups and processes, in the simulator state in memory.
pub trait LifeMachines: Send {
    /// CPU time of one repetition of each of these programs here, in microseconds.
    fn measure_programs(
        &self,
        programs: Vec<Program>,
    ) -> impl Future<Output = Result<Vec<u64>>> + Send + 'static;

    /// The host's doings since the welcome; `None` where the kernel does not say.
    fn host_load(&self) -> Option<HostLoad>;

    /// Whether the host can go on.
    ///
    /// # Errors
    /// Everything that it is told from now on would fail.
    fn check_host(&self) -> Result<()>;

    /// Hands a report to the session.
    fn send_report(&self, report: Report);

    /// Makes a VM.
    ///
    /// # Errors
    /// Nobody is there to make it.
    fn create_vm(&mut self, create: Box<CreateVm>, asked: CommandStamp) -> Result<()>;

    /// Asks something of a VM, which may not exist.
    ///
    /// # Errors
    /// Nobody is there to be asked.
    fn ask_vm(&mut self, vm: u32, ask: VmCommand, asked: CommandStamp) -> Result<()>;

    /// Carries out a fault.
    fn carry_out_fault(&mut self, fault: Fault);

    /// Waits until nobody owns the VMs any more, which must not be.
    fn wait_abandoned(&mut self) -> impl Future<Output = ()> + Send;

    /// Destroys all VMs and what is left of their tasks.
    fn clean_up(&mut self) -> impl Future<Output = ()> + Send;
}
