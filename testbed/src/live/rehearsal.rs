//! What an experiment may have at once, and how long it takes: found by playing it in virtual time.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::{Market, SpotPlaces};
use dormouse_coordinator::admission::Demand;
use dormouse_engine::{Effect, Step};
use dormouse_policies::Policy;
use dormouse_policies::batch::Submission;
use dormouse_units::{Span, Time, TypeName, VmId};

use crate::experiment::Experiment;
use crate::virtual_run::virtual_run;

/// Room beyond the rehearsal's peak, in percent: live, tasks end a little earlier or later,
/// and a scheduler may then want another VM or two.
const MARGIN_PERCENT: u32 = 15;

/// What a rehearsal has shown.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// The VMs alive and not hibernated when they have most vCPUs, and some room. (The bound that
    /// the account's limits give would be several times that, and would make every vCPU that much
    /// slower.)
    pub demand: Demand,
    /// How long it takes.
    pub takes: Span,
    /// How exactly that is known.
    pub how: &'static str,
}

/// Rehearses an experiment with these parallel jobs, if it has any: a virtual run under the same
/// seed, its bag under this scheduler. Parallel jobs alone have one machine, and need none.
#[must_use]
pub fn rehearse(
    experiment: &Experiment,
    scheduler: Option<Box<dyn Policy>>,
    submissions: &[Submission],
) -> Rehearsal {
    let processors = experiment.jobs.as_ref().map(|jobs| jobs.workload.processors);
    if let (None, Some(processors)) = (&scheduler, processors) {
        let (vms, kinds) = (vec![processors], kinds(experiment));
        let demand = Demand { vms, kinds, ..Demand::default() };
        return Rehearsal { demand, takes: least(submissions, processors), how: "at least" };
    }
    let (mut alive, mut peak, mut last) = (Alive::default(), Vec::new(), Time::ZERO);
    // A rehearsal that gets stuck has still shown what it needed until then.
    let _ = virtual_run(experiment, scheduler, |step| {
        alive.see(step);
        last = step.at;
        if alive.vcpus() > peak.iter().sum() {
            peak = alive.awake().collect();
        }
    });
    // Where VMs share processors it matters how many there are: the hosts are those of the file.
    let demand = match experiment.setup.terms.spot {
        SpotPlaces::Own => {
            Demand { vms: with_room(peak), kinds: kinds(experiment), ..Demand::default() }
        }
        SpotPlaces::Background => {
            let vms: Vec<u32> = experiment.hosts.iter().map(|host| host.vcpus).collect();
            Demand { most: vms.iter().max().copied(), vms, kinds: kinds(experiment) }
        }
    };
    Rehearsal { demand, takes: last.since(Time::ZERO), how: "about" }
}

/// How long so many jobs take at least on so many processors.
fn least(jobs: &[Submission], processors: u32) -> Span {
    let alone = jobs.iter().map(|job| (job.submitted + job.runtime).since(Time::ZERO)).max();
    let work = |job: &Submission| u128::from(job.runtime.as_micros()) * u128::from(job.processes);
    let together = jobs.iter().map(work).sum::<u128>() / u128::from(processors.max(1));
    let together = Span::from_micros(u64::try_from(together).unwrap_or(u64::MAX));
    alone.unwrap_or_default().max(together)
}

/// With room for more of the same VMs, the largest that fit into it first; what is left of it is
/// less than any of them.
fn with_room(mut vms: Vec<u32>) -> Vec<u32> {
    let peak: u32 = vms.iter().sum();
    let mut room = (peak * (100 + MARGIN_PERCENT)).div_ceil(100).max(1) - peak;
    let sizes: BTreeSet<u32> = vms.iter().copied().collect();
    while room > 0 {
        let vm = sizes.iter().rev().copied().find(|size| *size <= room).unwrap_or(room);
        vms.push(vm);
        room -= vm;
    }
    vms
}

/// The types that its schedulers may launch.
fn kinds(experiment: &Experiment) -> BTreeSet<TypeName> {
    let machine = experiment.whole_setup().jobs.map(|jobs| jobs.machine);
    of_bag(experiment).into_iter().chain(machine).collect()
}

fn of_bag(experiment: &Experiment) -> BTreeSet<TypeName> {
    let setup = &experiment.setup;
    let Some(config) = &experiment.scheduler else { return BTreeSet::new() };
    if let Some(fleet) = config.name.fleet(config) {
        return fleet.iter().map(|fleet| fleet.kind.clone()).collect();
    }
    let offered = setup.catalogue.types.values().filter(|kind| {
        [Market::Spot, Market::OnDemand].into_iter().any(|market| kind.limit(market) > 0)
            && setup.bag.tasks.iter().any(|task| task.runtime.contains_key(&kind.name))
    });
    offered.map(|kind| kind.name.clone()).collect()
}

#[derive(Default)]
struct Alive(BTreeMap<VmId, (u32, bool)>);

impl Alive {
    fn see(&mut self, step: &Step) {
        for effect in &step.effects {
            match effect {
                Effect::VmLaunched { vm, vcpus, .. } => {
                    self.0.insert(*vm, (*vcpus, true));
                }
                Effect::VmHibernated { vm, .. } | Effect::VmResumed { vm, .. } => {
                    let awake = matches!(effect, Effect::VmResumed { .. });
                    if let Some(entry) = self.0.get_mut(vm) {
                        entry.1 = awake;
                    }
                }
                Effect::VmEnded { vm, .. } => {
                    self.0.remove(vm);
                }
                _ => {}
            }
        }
    }

    /// The vCPUs of each, in the order of their launch.
    fn awake(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.values().filter(|(_, awake)| *awake).map(|(vcpus, _)| *vcpus)
    }

    fn vcpus(&self) -> u32 {
        self.awake().sum()
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Bytes, Ppm, Usage};

    use super::*;

    fn job(submitted_s: u64, processes: u32, runtime_s: u64) -> Submission {
        let runtime = Span::from_secs(runtime_s);
        let (submitted, usage) = (Time::from_secs(submitted_s), Usage::each(vec![Ppm::ONE]));
        let (number, estimate, memory) = (1, runtime, Bytes::ZERO);
        Submission { number, submitted, processes, runtime, estimate, usage, memory }
    }

    #[test]
    fn jobs_take_until_the_last_has_run_and_as_long_as_all_their_work() {
        assert_eq!(least(&[], 4), Span::ZERO);
        assert_eq!(least(&[job(0, 1, 500), job(100, 2, 50)], 4), Span::from_secs(500));
        assert_eq!(least(&[job(0, 1, 500), job(900, 2, 50)], 4), Span::from_secs(950));
        assert_eq!(least(&[job(0, 4, 500), job(0, 2, 400)], 4), Span::from_secs(700));
    }

    #[test]
    fn the_room_is_for_more_of_the_same_vms() {
        assert_eq!(with_room(vec![2; 10]), [vec![2; 11], vec![1]].concat());
        assert_eq!(with_room(vec![4, 4, 2, 2, 2, 2, 8]), [4, 4, 2, 2, 2, 2, 8, 4]);
        assert_eq!(with_room(Vec::new()), [1], "one that never launches any");
    }
}
