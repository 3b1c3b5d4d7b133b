//! Random workloads, clouds and interruptions under every scheduler; each run is checked for its invariants.
//! `DORMOUSE_RUNS` sets how many runs (default 300), `DORMOUSE_FIRST` the first of them (default 0); run N is always
//! the same. A run with a violation is shrunk, and its log is kept for a replay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dormouse_analysis::{RuleViolation, RunMode, check_bag};
use dormouse_cloud::{
    BillingTerms, Interruption, InterruptionAction, InterruptionModel, InterruptionScope,
    InterruptionTarget, Placement, PlacementRule, PlacerName, PreemptionAction, ResourceVector,
};
use dormouse_experiment::{Experiment, ExperimentSource, Override, load};
use dormouse_model::{CheckpointOn, CheckpointScheme, Noise, PeriodUnit, Step};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, BurstOn, OnNotice};
use dormouse_report::output::{LogHeader, RunLogWriter};
use dormouse_report::virtual_run::virtual_run;
use dormouse_units::RandomStream;
use dormouse_units::{Bytes, Ppm, Price, Span, Time, VmId};

/// A random whole number from `low` to `high`.
fn between(random: &mut RandomStream, low: u64, high: u64) -> u64 {
    low + random.draw_below((high - low + 1) as usize) as u64
}

fn one_in(random: &mut RandomStream, n: usize) -> bool {
    random.draw_below(n) == 0
}

fn experiment(n: u64) -> Experiment {
    let mut random = RandomStream::new(n, "random-run", 0);
    let r = &mut random;
    let overrides = vec![Override::set("scheduler.max-iteration=3").unwrap()];
    let source =
        ExperimentSource { experiment: Some("j60"), overrides, ..ExperimentSource::default() };
    let mut e = load(&source).unwrap().experiment;
    e.name = format!("random-{n}");
    e.setup.seed = n;

    let s = e.scheduler.as_mut().unwrap();
    let names =
        [BagSchedulerName::BurstHads, BagSchedulerName::Hads, BagSchedulerName::IlsOnDemand];
    s.name = names[r.draw_below(3)];
    s.max_attempt = 10;
    s.burst_rate = r.draw_unit();
    s.alpha = r.draw_unit();
    s.allocation_cycle = Span::from_secs(between(r, 1, 2_000));
    s.burst_on = [BurstOn::Idle, BurstOn::FreeVcpu, BurstOn::IdleVcpus][(n % 3) as usize];
    // Of a stream of their own: what was drawn before they were there stays as it was.
    let own = &mut RandomStream::new(n, "random-run-readings", 0);
    if one_in(own, 3) {
        *s = artifact(s);
    }
    e.setup.checkpoint.at_hibernation = one_in(own, 3);
    let (boot, frozen) = (one_in(own, 3), one_in(own, 3));
    e.setup.terms.billing = BillingTerms { boot, frozen, ..BillingTerms::default() };
    e.setup.noise = [
        None,
        Some(Noise::Lognormal(Ppm::new(between(own, 0, 500_000) as u32))),
        Some(Noise::Uniform(Ppm::new(between(own, 0, 900_000) as u32))),
    ][own.draw_below(3)];
    let s = e.scheduler.as_mut().unwrap();
    if one_in(r, 2) {
        s.on_notice = OnNotice::Checkpoint;
    }
    if one_in(r, 3) {
        s.restore = Span::from_secs(between(r, 0, 60));
    }

    let c = &mut e.setup.catalogue;
    c.boot = Span::from_secs(between(r, 0, 300));
    c.hibernation = Span::from_secs(between(r, 0, 300));
    for kind in c.types.values_mut() {
        kind.vcpus = [1, 2, 2, 4, 8][r.draw_below(5)];
        kind.memory = Bytes::new(between(r, 1, 16) << 30);
        kind.limits.on_demand = between(r, 1, 4) as u32;
        kind.limits.spot = if kind.spot.is_some() { between(r, 1, 4) as u32 } else { 0 };
        kind.on_demand = Some(Price::from_nanos_per_hour(between(r, 1_000_000, 500_000_000)));
        if let Some(b) = &mut kind.burstable {
            b.baseline = Ppm::new(between(r, 50_000, 1_000_000) as u32);
            b.initial = dormouse_units::Credits::whole_credits(between(r, 0, 60));
        }
    }
    let tasks = between(r, 1, 70) as usize;
    e.setup.bag.tasks = e.setup.bag.tasks.iter().take(tasks).cloned().collect();
    for task in Arc::make_mut(&mut e.setup.bag.tasks) {
        task.memory = Bytes::new(between(r, 1, 1 << 30));
        for runtime in task.runtime.values_mut() {
            *runtime = Span::from_micros(between(r, 1, 400_000_000));
        }
    }
    e.setup.bag.deadline = Span::from_secs(between(r, 1_500, 20_000));
    e.setup.checkpoint.scheme = scheme(r);
    e.setup.checkpoint.fixed = Span::from_secs(between(r, 1, 20));
    e.setup.checkpoint.on =
        if n.is_multiple_of(3) { CheckpointOn::All } else { CheckpointOn::Spot };
    e.setup.interruptions = troubles(r, e.setup.bag.deadline);
    let own = &mut RandomStream::new(n, "random-run-hosts", 0);
    if one_in(own, 3) {
        // Few of them: on-demand VMs have the room of spot VMs.
        let host = |r: &mut RandomStream| {
            ResourceVector::new(between(r, 2, 20) as u32, Bytes::new(between(r, 4, 64) << 30))
        };
        e.hosts = (0..between(own, 1, 5)).map(|_| host(own)).collect();
        let placement =
            [Placement::Named(PlacerName::Preempting), Placement::Rule(PlacementRule::default())];
        e.setup.terms.placement = placement[own.draw_below(2)].clone();
        e.setup.terms.preemption =
            [PreemptionAction::Terminate, PreemptionAction::Hibernate][own.draw_below(2)];
    }
    e
}

/// This configuration, with the rules of the paper's artifact.
fn artifact(config: &BagSchedulerConfig) -> BagSchedulerConfig {
    let BagSchedulerConfig { cost_scale, spot_limit, relax, steal_if, keep_idle, migrate, .. } =
        BagSchedulerConfig::artifact(config.name);
    let mut own = config.clone();
    (own.cost_scale, own.spot_limit, own.relax) = (cost_scale, spot_limit, relax);
    (own.steal_if, own.keep_idle, own.migrate) = (steal_if, keep_idle, migrate);
    own
}

/// A random scheme of checkpoints.
fn scheme(r: &mut RandomStream) -> CheckpointScheme {
    let period = Span::from_secs(between(r, 20, 300));
    match r.draw_below(6) {
        0 => CheckpointScheme::Every { period, of: PeriodUnit::Time },
        1 => CheckpointScheme::Every { period, of: PeriodUnit::Work },
        2 => {
            let first = between(r, 1, 400_000) as u32;
            CheckpointScheme::Points([first, first + 1, first + 300_000].map(Ppm::new).into())
        }
        3 => CheckpointScheme::None {},
        _ => CheckpointScheme::Budget(Ppm::new(between(r, 0, 400_000) as u32)),
    }
}

fn troubles(r: &mut RandomStream, deadline: Span) -> Vec<InterruptionModel> {
    let mut models = Vec::new();
    let every = |r: &mut RandomStream| {
        let mean = Span::from_micros(deadline.as_micros() / between(r, 1, 20));
        (!one_in(r, 4)).then_some(mean)
    };
    if !one_in(r, 4) {
        let scope = if one_in(r, 2) { InterruptionScope::Vm } else { InterruptionScope::Type };
        let (hibernate_every, resume_every) = (every(r), every(r));
        models.push(InterruptionModel::Poisson { hibernate_every, resume_every, scope });
    }
    if one_in(r, 3) {
        let act = |r: &mut RandomStream| Interruption {
            at: Time::from_secs(between(r, 1, 3_000)),
            target: if one_in(r, 2) {
                InterruptionTarget::Type(
                    ["c3.large", "c3.xlarge", "c4.large"][r.draw_below(3)].into(),
                )
            } else {
                InterruptionTarget::Vm(VmId::new(r.draw_below(8) as u32))
            },
            action: [
                InterruptionAction::Hibernate,
                InterruptionAction::Resume,
                InterruptionAction::Preempt,
            ][r.draw_below(3)],
        };
        let mut acts: Vec<_> = (0..between(r, 1, 12)).map(|_| act(r)).collect();
        acts.sort();
        models.push(InterruptionModel::Schedule { acts });
    }
    models
}

/// The steps of an experiment's run, the violations, and any other error; `None` if the experiment can't be planned.
fn outcome(e: &Experiment) -> Option<(Vec<Step>, Vec<RuleViolation>, Option<String>)> {
    let scheduler = e.scheduler().ok()?;
    let mut steps = Vec::new();
    // A run may end with tasks left, where everything was preempted for good; that is said.
    let stuck = virtual_run(e, scheduler, |s| steps.push(s.clone())).err().map(|s| s.to_string());
    let wrong = check_bag(&e.setup, &steps, Span::ZERO, true);
    Some((steps, wrong, stuck))
}

fn violates(e: &Experiment) -> bool {
    outcome(e).is_some_and(|(_, wrong, _)| !wrong.is_empty())
}

/// Removes tasks and interruptions as long as some rule is still violated.
fn shrunk(mut e: Experiment) -> Experiment {
    loop {
        let mut smaller: Vec<Experiment> = Vec::new();
        let tasks = e.setup.bag.tasks.len();
        for size in [tasks / 2, tasks / 4, 1].into_iter().filter(|&s| s > 0 && s < tasks) {
            for from in (0..tasks).step_by(size) {
                let mut less = e.clone();
                let (before, rest) = e.setup.bag.tasks.split_at(from);
                let after = rest.iter().skip(size);
                less.setup.bag.tasks = before.iter().chain(after).cloned().collect();
                smaller.push(less);
            }
        }
        for n in 0..e.setup.interruptions.len() {
            let mut less = e.clone();
            less.setup.interruptions.remove(n);
            smaller.push(less);
            let InterruptionModel::Schedule { acts } = &e.setup.interruptions[n] else { continue };
            for act in 0..acts.len() {
                let mut less = e.clone();
                if let InterruptionModel::Schedule { acts } = &mut less.setup.interruptions[n] {
                    acts.remove(act);
                }
                smaller.push(less);
            }
        }
        let wanted = |e: &Experiment| !e.setup.bag.tasks.is_empty() && violates(e);
        match smaller.into_iter().find(wanted) {
            Some(less) => e = less,
            None => return e,
        }
    }
}

/// Writes the log of an experiment to a folder for `dormouse replay`; returns where.
fn leave_log(e: &Experiment) -> String {
    let dir = tempfile::Builder::new().prefix("dormouse-violation-").tempdir().unwrap().keep();
    let header = LogHeader::new(RunMode::Virtual, "a random run, shrunk".to_owned(), e.clone());
    let mut log = RunLogWriter::begin(&dir, &header).unwrap();
    for step in outcome(e).unwrap().0 {
        log.step(&step).unwrap();
    }
    log.finish().unwrap();
    dir.display().to_string()
}

#[test]
fn nothing_is_ever_violated() {
    let given = |name, otherwise| std::env::var(name).map_or(otherwise, |n| n.parse().unwrap());
    let (first, wanted): (u64, u64) = (given("DORMOUSE_FIRST", 0), given("DORMOUSE_RUNS", 300));
    let (next, made, events, stuck) =
        (AtomicU64::new(first), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= first + wanted {
                        break;
                    }
                    let e = experiment(n);
                    let Some((steps, wrong, left)) = outcome(&e) else { continue };
                    made.fetch_add(1, Ordering::Relaxed);
                    events.fetch_add(steps.len() as u64, Ordering::Relaxed);
                    stuck.fetch_add(u64::from(left.is_some()), Ordering::Relaxed);
                    if let Some(first) = wrong.first() {
                        let small = shrunk(e);
                        let again = outcome(&small).unwrap().1;
                        panic!(
                            "run {n}: {first}; shrunk to {} tasks: {}; see dormouse replay {}",
                            small.setup.bag.tasks.len(),
                            again[0],
                            leave_log(&small)
                        );
                    }
                }
            });
        }
    });
    let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
    println!(
        "{} runs of {wanted} drawn, {} events, {} ended with tasks left, no violation",
        get(&made),
        get(&events),
        get(&stuck)
    );
    // Some draws can't be planned; most must be.
    assert!(get(&made) * 10 > wanted * 9);
}
