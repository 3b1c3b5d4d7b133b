//! Whole runs of a bag in virtual time.

use std::convert::Infallible;

use dormouse_cloud::{Catalogue, InterruptionModel, Market, ProviderTerms, ResourceVector};
use dormouse_engine::drive::{PlayError, beginning_events, play_run};
use dormouse_engine::{Run, RunCounts};
use dormouse_model::{Bag, CheckpointConfig, Effect, Event, Setup, Step};
use dormouse_policies::Policy;
use dormouse_units::{Bytes, HostId, Money, Span, Time};

use super::rules::Rules;
use super::trouble::{Trouble, Troubled};

/// Upper bound on the steps of a run, for schemes that want a checkpoint every 10 ms too.
const STEPS: usize = 2_000_000;

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Time at which the last finished task finished.
    pub(crate) makespan: Time,
    /// Cost of the run.
    pub(crate) cost: Money,
    /// Number of tasks that finished.
    pub(crate) finished: usize,
    /// Counts of the run's events.
    pub(crate) counts: RunCounts,
    /// Number of VMs launched on demand.
    pub(crate) on_demand_launched: usize,
    /// Digest of the run's decisions.
    pub(crate) digest: String,
}

/// Makes a setup of a bag on a cloud of three hosts, with the parameters of the paper.
pub(crate) fn setup(
    bag: &Bag,
    catalogue: &Catalogue,
    checkpoint: &CheckpointConfig,
    models: &[InterruptionModel],
    seed: u64,
) -> Setup {
    Setup {
        seed,
        catalogue: catalogue.clone(),
        bag: bag.clone(),
        noise: None,
        jobs: None,
        requests: false,
        checkpoint: checkpoint.clone(),
        interruptions: models.to_vec(),
        preemption_notice: Span::from_secs(120),
        terms: ProviderTerms::default(),
    }
}

/// Plays a run to its end, and checks each step against the rules.
///
/// # Panics
///
/// A rule is broken, or the run doesn't end.
pub(crate) fn played(
    setup: Setup,
    policy: Box<dyn Policy>,
    trouble: &Trouble,
    is_careless: bool,
    see: impl FnMut(&Step),
) -> Outcome {
    play_out(Run::new(setup, policy), trouble, is_careless, see)
}

/// Plays an existing run as [`played`] does.
///
/// # Panics
///
/// See [`played`].
pub(crate) fn play_out(
    mut run: Run,
    trouble: &Trouble,
    is_careless: bool,
    mut see: impl FnMut(&Step),
) -> Outcome {
    let setup = run.setup();
    let (seed, tasks) = (setup.seed, setup.bag.tasks.len());
    // A task that has not finished by then never will.
    let limit = Time::ZERO + setup.bag.deadline.times(20);
    let vcpus = if trouble.host_vcpus == 0 { 1 << 20 } else { trouble.host_vcpus };
    let mut outside = beginning_events(&[ResourceVector::new(vcpus, Bytes::new(1 << 60)); 3]);
    for &(lost, at) in &trouble.lost_hosts {
        let (host, why) = (HostId::new(lost), "drawn".to_owned());
        outside.push((at, Event::HostLost { host, why, unheard: false }));
        let (host, name) = (HostId::new(lost + 100), format!("after-{lost}"));
        let offer = ResourceVector::new(trouble.host_vcpus.max(64), Bytes::new(1 << 60));
        outside.push((at, Event::HostJoined { host, name, offer }));
    }
    outside.sort_by_key(|(at, _)| *at);
    let mut rules = Rules { is_careless, ..Rules::default() };
    let mut world = Troubled::new(trouble, seed);
    let (mut steps, mut on_demand_launched, mut last) = (0, 0, Time::ZERO);
    let outside = outside.into_iter().map(Ok::<_, Infallible>);
    let ended = play_run(&mut run, &mut world, outside, limit, |step| {
        steps += 1;
        assert!(steps < STEPS, "no end in sight at {}", step.at);
        rules.see(step);
        see(step);
        let on_demand = |effect: &&Effect| {
            matches!(effect, Effect::VmLaunched { market: Market::OnDemand, .. })
        };
        on_demand_launched += step.effects.iter().filter(on_demand).count();
        last = step.at;
        Ok(())
    });
    assert!(!matches!(ended, Err(PlayError::Outside(_))), "nothing comes from outside");
    Outcome {
        makespan: run.makespan().unwrap_or(last),
        cost: run.owed_now(last),
        finished: tasks - run.unfinished_count(),
        counts: *run.counts(),
        on_demand_launched,
        digest: run.digest(),
    }
}
