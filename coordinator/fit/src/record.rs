//! Lifetimes of VMs that were recorded: what a file of them holds.

use std::fmt;

use dormouse_input::{FlawedRow, LeftOut};
use dormouse_units::Span;

/// A VM, and how long it lived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Time from the VM's launch to its end, more than zero.
    pub span: Span,
    /// Whether the provider took the VM; else its user stopped it, and it could have lived longer.
    pub was_taken: bool,
    /// The VM's instance type; empty where the file does not say.
    pub kind: String,
    /// Zone in which the VM ran; empty where the file does not say.
    pub zone: String,
    /// Workload of the VM, such as `idle`; empty where the file does not say.
    pub workload: String,
    /// The hour of the day in which the VM was launched, 0 to 23, by the clock of its zone where the file has
    /// the instant of the launch; else the hour that the file says; empty where it says neither.
    pub hour: String,
    /// The day of the week on which the VM was launched, from Monday to Sunday; empty where the file does not
    /// have the instant of the launch.
    pub day: String,
}

/// Content of a file of lifetimes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The VMs, in the order of their rows.
    pub lives: Vec<Life>,
    /// Number of rows left out because another is the same to the last letter, the time of launch
    /// included.
    pub repeated: usize,
    /// Number of VMs whose launch was in another hour than the one that the file says, such as that
    /// of their end.
    pub other_hours: usize,
    /// Errors of the rows left out because they can't be used.
    pub unusable: Vec<FlawedRow>,
    /// Rows that were left out besides, by reason.
    pub left_out: LeftOut,
    /// The meaning that the file was given where its columns are not `lifetime_s` and `end_event`, and what
    /// was decided about some VMs, a clause each.
    pub remarks: Vec<String>,
}

/// Numbers of VMs, and of rows left out.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.lives.iter().filter(|life| life.was_taken).count();
        let (all, repeated, malformed) = (self.lives.len(), self.repeated, self.unusable.len());
        let stopped = all - taken;
        write!(f, "{all} VMs, {taken} preempted and {stopped} stopped by their users")?;
        let mut left_out = Vec::new();
        if repeated > 0 {
            left_out.push(format!("{repeated} rows that repeat another"));
        }
        if let Some(row) = self.unusable.first() {
            left_out.push(format!("{malformed} malformed ones, the first in {row}"));
        }
        if !left_out.is_empty() {
            write!(f, "; left out: {}", left_out.join(", "))?;
        }
        if !self.left_out.is_empty() {
            write!(f, "; {}", self.left_out)?;
        }
        if self.other_hours > 0 {
            let clock = "their hours are those of the launch by the clock of the zone";
            write!(
                f,
                "; {} of them were launched in another hour than the file says: {clock}",
                self.other_hours
            )?;
        }
        self.remarks.iter().try_for_each(|remark| write!(f, "; {remark}"))
    }
}
