//! Recorded lifetimes: the content of a lifetime file.

use std::fmt;

use dormouse_input::{FlawedRow, LeftOut};
use dormouse_units::Span;

/// Lifetime of one VM with its properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedLife {
    /// Time from launch to end, more than zero.
    pub span: Span,
    /// True if the provider preempted the VM; else its user stopped it, and it could have run longer.
    pub was_taken: bool,
    /// The VM's instance type; empty where the file does not say.
    pub kind: String,
    /// Zone in which the VM ran; empty where the file does not say.
    pub zone: String,
    /// Workload of the VM, such as `idle`; empty where the file does not say.
    pub workload: String,
    /// Hour of the day of the launch, 0 to 23, by the clock of the zone if the file has the instant
    /// of the launch, else the file's hour column; empty if it has neither.
    pub hour: String,
    /// The day of the week on which the VM was launched, from Monday to Sunday; empty where the file does not
    /// have the instant of the launch.
    pub day: String,
}

/// Content of a file of lifetimes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The VMs, in the order of their rows.
    pub lives: Vec<RecordedLife>,
    /// Number of rows left out as exact duplicates, launch time included.
    pub repeated: usize,
    /// Number of VMs launched in another hour than the file's hour column gives, which may be that
    /// of the end.
    pub other_hours: usize,
    /// Errors of the rows left out because they can't be used.
    pub unusable: Vec<FlawedRow>,
    /// Number of rows of VMs that were left out although they are valid, by reason, such as a launch at the record's end.
    pub left_out: LeftOut,
    /// Remarks on how columns were interpreted and what was decided about some VMs, a clause each.
    pub remarks: Vec<String>,
}

/// Prints the numbers of VMs and of rows left out.
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
