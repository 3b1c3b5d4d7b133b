//! What a run in virtual time is played on.

use std::collections::VecDeque;

use dormouse_model::{Command, Report};
use dormouse_units::{HostId, Time};

/// What machines have to report, in order.
pub type Reports = VecDeque<(HostId, Report)>;

/// Machines in virtual time: they carry out commands and know what happens on them next. Times
/// never go back from one call to the next.
pub trait MachineWorld {
    /// Carries out a command; what there is to report of it at once goes to `out`.
    fn execute_command(&mut self, now: Time, command: Command, out: &mut Reports);

    /// When something happens by itself next.
    fn next_at(&mut self) -> Option<Time>;

    /// Whether something happens by itself by `now`, up to which time has passed: before more is
    /// done at this instant it need not be known when something does.
    fn is_due(&mut self, now: Time) -> bool {
        self.next_at().is_some_and(|at| at <= now)
    }

    /// Lets happen what happens at `now`, or a part of it.
    fn step_machines(&mut self, now: Time, out: &mut Reports);

    /// A host is gone, with all its VMs.
    fn host_lost(&mut self, host: HostId);

    /// Whether no task is on any VM.
    fn is_idle(&self) -> bool;
}
