//! Interface of the machines on which a run in virtual time is played.

use std::collections::VecDeque;

use dormouse_model::{Command, Report};
use dormouse_units::{HostId, Time};

/// Reports of machines with their hosts, in order.
pub type Reports = VecDeque<(HostId, Report)>;

/// The machines of a virtual run: they execute commands and know when something happens on them next. Times given to
/// its methods never go back.
///
/// Use: `execute_command` for each command of a step, then `step_machines` whenever `is_due`.
pub trait MachineWorld {
    /// Executes a command; its immediate reports go to `out`.
    fn execute_command(&mut self, now: Time, command: Command, out: &mut Reports);

    /// Returns the time at which the next event happens on a machine; `None`: none will.
    fn next_at(&mut self) -> Option<Time>;

    /// Returns whether an event on a machine is due by `now`, up to which time has passed. It may be cheaper than
    /// `next_at`.
    fn is_due(&mut self, now: Time) -> bool {
        self.next_at().is_some_and(|at| at <= now)
    }

    /// Lets one or more of the events due at `now` happen; their reports go to `out`.
    fn step_machines(&mut self, now: Time, out: &mut Reports);

    /// Removes a lost host with all its VMs.
    fn host_lost(&mut self, host: HostId);

    /// Returns whether no VM has a task.
    fn is_idle(&self) -> bool;
}
