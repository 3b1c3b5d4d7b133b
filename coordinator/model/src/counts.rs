//! Limits on counts in a log. A log may be written by anybody, and readers allocate memory for its
//! counts.

use crate::{Effect, Event, Setup, Step};

/// Greatest number of processors of a machine, vCPUs of a VM and processes of a job, as in the
/// schema of parallel jobs.
pub const MOST_PROCESSORS: u32 = 10_000_000;
/// Greatest number of VMs of a type at a time, as in a catalogue's file.
const MOST_OF_A_KIND: u32 = 1_000_000;

impl Setup {
    /// Checks the vCPUs and limits of all instance types.
    ///
    /// # Errors
    ///
    /// The first number that is too large, in words, with its limit.
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
    /// Checks the counts of a step that readers allocate memory for: processes of jobs and vCPUs of
    /// VMs.
    ///
    /// # Errors
    ///
    /// The first number that is too large, in words, with its limit.
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

/// Checks a count against `most`; `what` begins the error's sentence, which continues with the
/// number.
///
/// # Errors
///
/// The sentence, with the limit.
pub fn check_count<N>(what: &str, count: N, most: N) -> Result<(), String>
where
    N: PartialOrd + std::fmt::Display,
{
    if count <= most { Ok(()) } else { Err(format!("{what} {count}; the maximum is {most}")) }
}
