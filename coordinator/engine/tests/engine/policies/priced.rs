//! Checkpointing schemes by hours and prices: whole runs of one task under `fifo`, on one spot VM at a time, end at the
//! times and have the costs that the analytic model of the ACC paper gives.
//!
//! Model and engine agree if VMs start at once, get no notice and are launched again at the first price that isn't
//! above the bid. The model's time to restart from a checkpoint, t_r, is zero here, since the engine has none. The kept
//! part of the work is counted in millionths, which are whole steps of 20 ms for work of 20,000 s. The model counts a
//! checkpoint that ends at the very instant at which its VM is taken away, but the engine doesn't, as its provider acts
//! first: so OPT is a microsecond early here, which loses a millionth of the work.

use std::collections::BTreeMap;

use dormouse_cloud::{Catalogue, InstanceType, Market, PriceTrace, TariffName, VmLimits};
use dormouse_model::{
    AdaptKnowledge, Bag, CheckpointConfig, CheckpointOn, CheckpointScheme, Effect, Setup, Step,
    Task,
};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, Fleet, build};
use dormouse_spot::{SpotJob, SpotRecord, SpotScheme};
use dormouse_units::{Bytes, Ppm, Price, RandomStream, Span, Time};

use super::played::{Outcome, played, setup};
use super::trouble::Trouble;

const KIND: &str = "m1.xlarge";
const WORK: Span = Span::from_secs(20_000);
const CHECKPOINT: Span = Span::from_secs(300);
const EVERY: Span = Span::from_secs(600);
/// The bid for a VM, in cents per hour.
const BID: u64 = 7;

fn cents(n: u64) -> Price {
    Price::from_nanos_per_hour(n * 10_000_000)
}

/// Draws prices that change every minute to every hour, and are at most the bid in the end.
fn trace(seed: u64) -> PriceTrace {
    let mut chance = RandomStream::new(seed, "prices", 0);
    let (mut at, mut steps) = (Time::ZERO, Vec::new());
    for _ in 0..200 {
        steps.push((at, cents(4 + chance.draw_below(5) as u64)));
        at += Span::from_secs(60 + chance.draw_below(3_541) as u64);
    }
    steps.push((at, cents(BID)));
    PriceTrace::new(steps)
}

fn setup_of(scheme: CheckpointScheme, trace: &PriceTrace) -> Setup {
    let kind = InstanceType {
        name: KIND.into(),
        vcpus: 1,
        memory: Bytes::new(100),
        disk: Bytes::ZERO,
        mflops: 1,
        on_demand: None,
        spot: Some(cents(BID)),
        limits: VmLimits { spot: 1, on_demand: 0 },
        burstable: None,
    };
    let catalogue = Catalogue {
        types: BTreeMap::from([(KIND.into(), kind)]),
        boot: Span::ZERO,
        hibernation: Span::ZERO,
    };
    let task = Task {
        name: "t".into(),
        memory: Bytes::new(1),
        runtime: BTreeMap::from([(KIND.into(), WORK)]),
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    let bag = Bag { tasks: [task].into(), deadline: Span::from_secs(1_000_000) };
    let checkpoint = CheckpointConfig {
        scheme,
        fixed: CHECKPOINT,
        per_megabyte: Span::ZERO,
        on: CheckpointOn::Spot,
        ..CheckpointConfig::NONE
    };
    let mut setup = setup(&bag, &catalogue, &checkpoint, &[], 1);
    setup.preemption_notice = Span::ZERO;
    setup.terms.tariff = TariffName::Hour;
    setup.terms.prices = BTreeMap::from([(KIND.into(), trace.clone())]);
    setup
}

fn run(scheme: CheckpointScheme, trace: &PriceTrace, bid: Option<Price>) -> (Outcome, Vec<Step>) {
    let fleet = vec![Fleet { kind: KIND.into(), market: Market::Spot, count: 1, bid }];
    let config = BagSchedulerConfig { fleet, ..BagSchedulerConfig::paper(BagSchedulerName::Fifo) };
    let (setup, mut steps) = (setup_of(scheme, trace), Vec::new());
    let Setup { catalogue, bag, checkpoint, seed, .. } = &setup;
    let policy = build(&config, catalogue, bag, checkpoint, *seed).expect("it can be built");
    let outcome = played(setup, policy, &Trouble::default(), true, |step| steps.push(step.clone()));
    assert_eq!((outcome.finished, outcome.counts.rejected), (1, 0));
    (outcome, steps)
}

/// The seeds give different numbers of kept checkpoints and of VMs taken away, so that the comparison covers more than
/// a run without interruptions.
#[test]
fn runs_end_when_the_analytic_model_says_and_cost_what_it_says() {
    let job = SpotJob { restart: Span::ZERO, every: EVERY, ..SpotJob::with_work(WORK) };
    assert_eq!(job.checkpoint, CHECKPOINT);
    for (analytic, scheme) in [
        (SpotScheme::None, CheckpointScheme::None {}),
        (SpotScheme::Hour, CheckpointScheme::Hour {}),
        (SpotScheme::Edge, CheckpointScheme::Edge {}),
        (SpotScheme::Adapt, CheckpointScheme::Adapt { every: EVERY, knows: AdaptKnowledge::Past }),
        (
            SpotScheme::Adapt,
            CheckpointScheme::Adapt { every: EVERY, knows: AdaptKnowledge::WholeRecord },
        ),
        (SpotScheme::Opt, CheckpointScheme::Opt { look: Span::from_micros(1) }),
    ] {
        let knows = match scheme {
            CheckpointScheme::Adapt { knows, .. } => knows,
            _ => AdaptKnowledge::Past,
        };
        let job = SpotJob { knows, ..job };
        let (mut taken, mut kept) = (0, 0);
        // A run that begins within the record knows what was before.
        for (seed, start) in (0..20).flat_map(|seed| [0, 90_000].map(|start| (seed, start))) {
            let (trace, start) = (trace(seed), Span::from_secs(start));
            let record = SpotRecord::new(&trace, cents(BID), Time::from_secs(u64::MAX >> 24));
            let said =
                job.run(analytic, &record, Time::ZERO + start).expect("the last price is low");
            let (outcome, _) = run(scheme.clone(), &trace.begun_at(start), Some(cents(BID)));
            let (counts, took) = (outcome.counts, outcome.makespan.since(Time::ZERO));
            assert_eq!(
                (outcome.cost, counts.preemptions, counts.checkpoints),
                (said.cost, said.restarts, said.checkpoints),
                "{} with seed {seed} from {start} on",
                analytic.name()
            );
            let early = if analytic == SpotScheme::Opt { said.checkpoints } else { 0 };
            let most = WORK.part(Ppm::new(early));
            let late = took.saturating_sub(said.took);
            assert!(took >= said.took && late <= most, "{}: {took} {said:?}", analytic.name());
            taken += said.restarts;
            kept += said.checkpoints;
        }
        assert!(taken > 40, "{}: {taken}", analytic.name());
        assert_eq!(kept > 40, analytic != SpotScheme::None, "{}: {kept}", analytic.name());
    }
}

/// On a VM that is never taken away ACC takes a checkpoint exactly if the price is above its bid 6 min before an hour
/// ends, whatever the price was a second earlier.
#[test]
fn acc_asks_at_its_looks_where_the_price_is_above_its_bid() {
    let look = Span::from_secs(60);
    let mut asked_for = 0;
    for seed in 0..20 {
        let trace = trace(seed);
        let (outcome, steps) =
            run(CheckpointScheme::Acc { bid: Some(cents(BID)), look }, &trace, None);
        let is_asked = |effect: &Effect| matches!(effect, Effect::CheckpointAsked { .. });
        let asked = steps.iter().filter(|step| step.effects.iter().any(is_asked));
        let asked: Vec<_> = asked.map(|step| step.at).collect();
        let looks = (1..).map(|n| Time::from_secs(3_600 * n) - CHECKPOINT - look);
        let looks = looks.take_while(|at| *at < outcome.makespan);
        let expected: Vec<_> = looks.filter(|at| trace.price_at(*at) > Some(cents(BID))).collect();
        assert_eq!(asked, expected, "seed {seed}");
        asked_for += asked.len();
    }
    assert!(asked_for > 10, "{asked_for}");
}
