//! The largest counts that a run may have, looked at where one is read from a log: anybody may have written that, and
//! there is room made for as many.

use crate::{Effect, Event, Setup, Step};

/// Most processors of a machine, most vCPUs of a VM and most processes of a job: as the schema of parallel jobs has it.
pub const MOST_PROCESSORS: u32 = 10_000_000;
/// Most VMs of a type at a time: as a catalogue's file has it.
const MOST_OF_A_KIND: u32 = 1_000_000;

impl Setup {
    /// Looks at the vCPUs and limits of all instance types.
    ///
    /// # Errors
    ///
    /// The first number that is too large, in words, and how large it may be.
    pub fn check_counts(&self) -> Result<(), String> {
        for kind in self.catalogue.types.values() {
            let name = &kind.name;
            check_count(&format!("the vCPU count of {name} is"), kind.vcpus, MOST_PROCESSORS)?;
            let limits = [("spot", kind.limits.spot), ("on-demand", kind.limits.on_demand)];
            for (market, limit) in limits {
                let what = format!("the {market} limit of {name} is");
                check_count(&what, limit, MOST_OF_A_KIND)?;
            }
        }
        Ok(())
    }
}

impl Step {
    /// Looks at the numbers of a step for which whoever follows the log makes room: processes of jobs and vCPUs of VMs.
    ///
    /// # Errors
    ///
    /// The first number that is too large, in words, and how large it may be.
    pub fn check_counts(&self) -> Result<(), String> {
        if let Event::Submitted { job, .. } = &self.event {
            let what = format!("the processes of job {} are", job.number);
            check_count(&what, job.processes, MOST_PROCESSORS)?;
        }
        self.effects.iter().try_for_each(|effect| match effect {
            Effect::VmLaunched { vm, vcpus, .. } => {
                check_count(&format!("the vCPUs of {vm} are"), *vcpus, MOST_PROCESSORS)
            }
            _ => Ok(()),
        })
    }
}

/// Refuses a count beyond `most`; `what` is the beginning of a sentence that the number goes on with.
///
/// # Errors
///
/// The sentence, with the most that there may be.
pub fn check_count<N>(what: &str, count: N, most: N) -> Result<(), String>
where
    N: PartialOrd + std::fmt::Display,
{
    if count <= most { Ok(()) } else { Err(format!("{what} {count}, and {most} is the most")) }
}
