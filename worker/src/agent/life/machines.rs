//! Machines that a session commands: its VMs, and their host.

use dormouse_proto::v1::{CreateVm, Fault, HostLoad, Program, Report};

use crate::agent::{
    Result,
    vm::{CommandStamp, VmCommand},
};

/// VMs of a worker's session and their host: control groups and processes on a real host, state in memory in the
/// simulator.
pub trait LifeMachines: Send {
    /// Measures the CPU time of one repetition of each of these programs on this host, in microseconds.
    fn measure_programs(
        &self,
        programs: Vec<Program>,
    ) -> impl Future<Output = Result<Vec<u64>>> + Send + 'static;

    /// Returns the host's load since the welcome; `None` if the kernel doesn't report it.
    fn host_load(&self) -> Option<HostLoad>;

    /// Checks that the host still works.
    ///
    /// # Errors
    ///
    /// All further commands would fail.
    fn check_host(&self) -> Result<()>;

    /// Sends a report to the coordinator by the session.
    fn send_report(&self, report: Report);

    /// Creates a VM.
    ///
    /// # Errors
    ///
    /// The supervisor of VMs is gone.
    fn create_vm(&mut self, create: Box<CreateVm>, asked: CommandStamp) -> Result<()>;

    /// Hands a command to a VM, which may not exist.
    ///
    /// # Errors
    ///
    /// The supervisor of VMs is gone.
    fn ask_vm(&mut self, vm: u32, ask: VmCommand, asked: CommandStamp) -> Result<()>;

    /// Carries out a fault.
    fn carry_out_fault(&mut self, fault: Fault);

    /// Waits until the supervisor of VMs is gone, which must not happen.
    fn wait_abandoned(&mut self) -> impl Future<Output = ()> + Send;

    /// Destroys all VMs and what is left of their tasks.
    fn clean_up(&mut self) -> impl Future<Output = ()> + Send;
}
