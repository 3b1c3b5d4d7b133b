//! Finds the most VMs that an experiment has at once, and its duration, by running it in virtual time.

use std::collections::BTreeSet;

use dormouse_coordinator::admission::{RunDemand, VcpuPeak};
use dormouse_model::Submission;
use dormouse_policies::Policy;
use dormouse_units::{Span, Time, TypeName};
use dormouse_workload::least_makespan;

use dormouse_experiment::Experiment;
use dormouse_report::virtual_run::virtual_run;

/// Results of a rehearsal: what a virtual run of the experiment tells before its live run.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// Demand of the live run on its workers: that of the time at which the VMs alive and not hibernated have most vCPUs, with some
    /// room. (The bound by the account's limits would be several times that, and would make every vCPU that much slower.)
    pub demand: RunDemand,
    /// Emulated time that the run is expected to take.
    pub takes: Span,
    /// How exactly the time in `takes` is known, in words.
    pub how: &'static str,
}

/// Rehearses an experiment with these parallel jobs, if it has any: a virtual run under the same seed, its bag under
/// this scheduler. Parallel jobs alone have one machine, and need no virtual run. If the experiment defines the
/// provider's hosts, the demand contains these hosts as a whole, so that the same VMs are displaced as in virtual time.
pub fn rehearse(
    experiment: &Experiment,
    scheduler: Option<Box<dyn Policy>>,
    submissions: &[Submission],
) -> Rehearsal {
    let (kinds, processors) =
        (kinds(experiment), experiment.jobs.as_ref().map(|jobs| jobs.workload.processors));
    let is_alone = experiment.scheduler.is_none() && experiment.requests.is_none();
    if let (true, Some(processors)) = (is_alone, processors) {
        let demand = RunDemand { vms: vec![processors], kinds, ..RunDemand::default() };
        let takes = least_makespan(submissions, processors);
        return Rehearsal { demand, takes, how: "at least" };
    }
    let mut peak = VcpuPeak::default();
    // A rehearsal that gets stuck has still shown what it needed until then.
    let _ = virtual_run(experiment, scheduler, |step| peak.take_step(step));
    let takes = peak.last.since(Time::ZERO);
    let demand = match experiment.hosts.as_slice() {
        [] => RunDemand { vms: peak.with_room(), kinds, ..RunDemand::default() },
        hosts => RunDemand::of_hosts(hosts, kinds),
    };
    Rehearsal { demand, takes, how: "about" }
}

/// The types that the experiment's schedulers may launch.
fn kinds(experiment: &Experiment) -> BTreeSet<TypeName> {
    let machine = experiment.whole_setup().jobs.map(|jobs| jobs.machine);
    let setup = &experiment.setup;
    let of_bag = experiment
        .scheduler
        .iter()
        .flat_map(|config| config.name.kinds(config, &setup.bag, &setup.catalogue.types));
    of_bag.chain(machine).collect()
}
