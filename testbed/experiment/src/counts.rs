//! Greatest counts in an experiment, checked again when it is read from a log.
//!
//! The schema bounds the numbers in an experiment file. The first line of a log may have any
//! numbers, and memory is allocated for as many.

use dormouse_model::{MOST_PROCESSORS, check_count};
use dormouse_policies::BagSchedulerConfig;
use dormouse_units::TypeName;

use super::{BatchSetup, Experiment};

/// Greatest number of VMs in one entry of a fleet, as in the schema of experiment files.
const MOST_ALIKE: u32 = 100_000;
/// Greatest number of VMs in a fleet, and of their vCPUs.
const MOST_VMS: u64 = 1_000_000;
const MOST_VCPUS: u64 = 100_000_000;

impl Experiment {
    /// Checks all numbers that decide how much memory the experiment takes.
    ///
    /// # Errors
    ///
    /// The first number that is too large, with its bound, in words.
    pub fn check_counts(&self) -> Result<(), String> {
        self.setup.check_counts()?;
        self.scheduler.as_ref().map_or(Ok(()), |scheduler| self.check_fleet(scheduler))?;
        self.jobs.as_ref().map_or(Ok(()), |jobs| check_machine(jobs))
    }

    fn check_fleet(&self, scheduler: &BagSchedulerConfig) -> Result<(), String> {
        let vcpus_of = |kind: &TypeName| {
            self.setup.catalogue.get(kind).map_or(0, |kind| u64::from(kind.vcpus))
        };
        let (mut vms, mut vcpus) = (0_u64, 0_u64);
        for part in &scheduler.fleet {
            check_count(&format!("the fleet's count of {} is", part.kind), part.count, MOST_ALIKE)?;
            let count = u64::from(part.count);
            vms = vms.saturating_add(count);
            vcpus = vcpus.saturating_add(count.saturating_mul(vcpus_of(&part.kind)));
        }
        check_count("the count of the fleet's VMs is", vms, MOST_VMS)?;
        check_count("the count of the fleet's vCPUs is", vcpus, MOST_VCPUS)
    }
}

fn check_machine(jobs: &BatchSetup) -> Result<(), String> {
    let processors = jobs.workload.processors;
    check_count("the count of the machine's processors is", processors, MOST_PROCESSORS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::of_text;

    const BAG: &str = r#"
        name = "bag"
        [cloud]
        [[cloud.type]]
        name = "m"
        vcpus = 4096
        memory = "1 GiB"
        on-demand = 1.0
        [workload]
        kind = "bag"
        deadline = "1h"
        [[workload.task]]
        count = 2
        memory = "1 MiB"
        runtime = "1m"
        [scheduler]
        name = "fifo"
        [[scheduler.fleet]]
        type = "m"
        market = "on-demand"
        count = 1
    "#;

    fn experiment() -> Experiment {
        of_text("counts.toml", BAG).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The error for the test's experiment after `change` has made a count too large.
    fn said(change: impl FnOnce(&mut Experiment)) -> String {
        let mut changed = experiment();
        change(&mut changed);
        changed.check_counts().expect_err("it is too many")
    }

    fn fleet(of: &mut Experiment) -> &mut Vec<dormouse_policies::Fleet> {
        &mut of.scheduler.as_mut().expect("it has a bag").fleet
    }

    #[test]
    fn what_an_experiment_file_may_say_a_log_may_say() {
        assert_eq!(experiment().check_counts(), Ok(()));
        let mut most = experiment();
        fleet(&mut most)[0].count = 20_000;
        assert_eq!(most.check_counts(), Ok(()));
    }

    #[test]
    fn a_count_that_would_fill_the_memory_is_refused_by_its_name() {
        let many = said(|it| fleet(it)[0].count = u32::MAX);
        assert_eq!(many, "the fleet's count of m is 4294967295; the maximum is 100000");
        let wide = said(|it| fleet(it)[0].count = 30_000);
        assert_eq!(wide, "the count of the fleet's vCPUs is 122880000; the maximum is 100000000");
        let long = said(|it| {
            it.setup.catalogue.types.values_mut().for_each(|kind| kind.vcpus = 1);
            let part = dormouse_policies::Fleet { count: 100_000, ..fleet(it)[0].clone() };
            *fleet(it) = vec![part; 11];
        });
        assert_eq!(long, "the count of the fleet's VMs is 1100000; the maximum is 1000000");
        let vcpus =
            said(|it| it.setup.catalogue.types.values_mut().for_each(|kind| kind.vcpus = u32::MAX));
        assert_eq!(vcpus, "the vCPU count of m is 4294967295; the maximum is 10000000");
        let limit = said(|it| {
            it.setup.catalogue.types.values_mut().for_each(|kind| kind.limits.spot = 1_000_001);
        });
        assert_eq!(limit, "the spot limit of m is 1000001; the maximum is 1000000");
    }
}
