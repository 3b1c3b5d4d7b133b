//! Machines that a life commands: VMs, and the host that they are on.

use dormouse_proto::v1::{CreateVm, Fault, HostLoad, Program, Report};

use crate::agent::{
    Result,
    vm::{Ask, CommandStamp},
};

/// The VMs of a life and their host: really control groups and processes, in the simulator state in memory.
pub trait Machines: Send {
    /// CPU time of one repetition of each of these programs here, in microseconds.
    fn measure(
        &self,
        programs: Vec<Program>,
    ) -> impl Future<Output = Result<Vec<u64>>> + Send + 'static;

    /// The host's doings since the welcome; `None` where the kernel does not say.
    fn load(&self) -> Option<HostLoad>;

    /// Whether the host can go on.
    ///
    /// # Errors
    /// Everything that it is told from now on would fail.
    fn check(&self) -> Result<()>;

    /// Hands a report to the session.
    fn report(&self, report: Report);

    /// Makes a VM.
    ///
    /// # Errors
    /// Nobody is there to make it.
    fn create(&mut self, create: Box<CreateVm>, asked: CommandStamp) -> Result<()>;

    /// Asks something of a VM, which may not exist.
    ///
    /// # Errors
    /// Nobody is there to be asked.
    fn ask(&mut self, vm: u32, ask: Ask, asked: CommandStamp) -> Result<()>;

    /// Carries out a fault.
    fn fault(&mut self, fault: Fault);

    /// Waits until nobody owns the VMs any more, which must not be.
    fn abandoned(&mut self) -> impl Future<Output = ()> + Send;

    /// Destroys all VMs and what is left of their tasks.
    fn clean_up(&mut self) -> impl Future<Output = ()> + Send;
}
