//! The policy of the ACC paper as a scheduler of bags, on whole runs: compared with the paper's analytic results for
//! one job, and in cases that the paper doesn't have.

use dormouse_cloud::{Market, PriceTrace, TariffName};
use dormouse_model::{
    Bag, CheckpointConfig, CheckpointOn, CheckpointScheme, Decision, Effect, EndReason, Notice,
    Setup, Step, Task, VmEnd,
};
use dormouse_policies::{
    BagSchedulerConfig, BagSchedulerName, Fleet, Own, PlanError, Policy, build,
};
use dormouse_spot::{SpotJob, SpotRecord, SpotScheme};
use dormouse_units::{Bytes, Ppm, Price, RandomStream, Span, TaskId, Time, VmId};

use super::jobs::ec2;
use super::played::{Outcome, played, setup};
use super::trouble::Trouble;

const KIND: &str = "c3.large";
const LOOK: Span = Span::from_secs(60);

fn minutes(n: u64) -> Span {
    Span::from_secs(60 * n)
}

fn cents(n: u64) -> Price {
    Price::from_nanos_per_hour(n * 10_000_000)
}

/// Makes a price trace from pairs of a minute and the price from then on, in cents per hour.
fn trace(steps: &[(u64, u64)]) -> PriceTrace {
    let step = |&(at, price): &(u64, u64)| (Time::ZERO + minutes(at), cents(price));
    PriceTrace::new(steps.iter().map(step).collect())
}

/// Makes a setup of tasks of this work on spot VMs of the only type, which boot in no time.
fn setup_of(tasks: usize, work: Span, checkpoint: Span, prices: &PriceTrace, bid: u64) -> Setup {
    let task = Task {
        name: "t".into(),
        memory: Bytes::new(1),
        runtime: [(KIND.into(), work)].into(),
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    let bag = Bag { tasks: vec![task; tasks].into(), deadline: Span::from_secs(30 * 86_400) };
    let checkpoints = CheckpointConfig {
        scheme: CheckpointScheme::Acc { bid: Some(cents(bid)), look: LOOK },
        fixed: checkpoint,
        per_megabyte: Span::ZERO,
        on: CheckpointOn::Spot,
        ..CheckpointConfig::NONE
    };
    let mut setup = setup(&bag, &ec2(0, Ppm::new(200_000)), &checkpoints, &[], 1);
    setup.terms.tariff = TariffName::Hour;
    setup.terms.prices = [(KIND.into(), prices.clone())].into();
    setup
}

fn config(name: BagSchedulerName, count: u32, bid: u64) -> BagSchedulerConfig {
    let bid = Some(cents(bid));
    let fleet = vec![Fleet { kind: KIND.into(), market: Market::Spot, count, bid }];
    BagSchedulerConfig { fleet, ..BagSchedulerConfig::paper(name) }
}

fn built(config: &BagSchedulerConfig, setup: &Setup) -> Result<Box<dyn Policy>, PlanError> {
    build(config, &setup.catalogue, &setup.bag, &setup.checkpoint, setup.seed)
}

fn run(setup: Setup, config: &BagSchedulerConfig) -> (Vec<Step>, Outcome) {
    let policy = built(config, &setup).expect("it can be built");
    let mut steps = Vec::new();
    let outcome = played(setup, policy, &Trouble::default(), true, |step| steps.push(step.clone()));
    assert_eq!(outcome.counts.rejected, 0);
    (steps, outcome)
}

fn acc(setup: Setup, count: u32, bid: u64) -> (Vec<Step>, Outcome) {
    run(setup, &config(BagSchedulerName::Acc, count, bid))
}

/// Returns for each VM the minutes at which it was launched and at which it ended, and why it ended.
fn lives(steps: &[Step]) -> Vec<(u64, u64, VmEnd)> {
    let in_minutes = |at: Time| at.as_micros() / 60_000_000;
    let mut lives = Vec::new();
    for step in steps {
        for effect in &step.effects {
            match *effect {
                Effect::VmLaunched { .. } => lives.push((in_minutes(step.at), 0, VmEnd::RunOver)),
                Effect::VmEnded { vm, why, .. } => {
                    let life = &mut lives[vm.get() as usize];
                    (life.1, life.2) = (in_minutes(step.at), why);
                }
                _ => {}
            }
        }
    }
    lives
}

/// Returns the number of tasks that lost work, for each VM that was given back because the price was above its bid.
fn unkept(steps: &[Step]) -> Vec<u32> {
    let decisions = steps.iter().flat_map(|step| &step.decisions);
    decisions
        .filter_map(|decision| match decision {
            Decision::Terminate { reason: Some(EndReason::AboveBid { unkept, .. }), .. } => {
                Some(*unkept)
            }
            _ => None,
        })
        .collect()
}

/// Draws prices that change about every half hour, a few cents around a bid of 7.
fn drawn(seed: u64) -> Vec<(u64, u64)> {
    let mut chance = RandomStream::new(seed, "acc-test", 0);
    let mut at = 0;
    (0..200)
        .map(|_| {
            let from = at;
            at += 1 + chance.draw_below(60) as u64;
            (from, 4 + chance.draw_below(6) as u64)
        })
        .collect()
}

/// A job that begins at any of many times of a random price trace ends at the time and has the cost that the paper's
/// model gives. The provider's VMs boot in no time, and a restart takes no time (t_r = 0).
#[test]
fn a_job_ends_when_and_costs_what_is_reckoned_of_it() {
    let (mut done, mut restarts, mut without) = (0, 0, 0);
    for seed in 0..40 {
        let steps = drawn(seed);
        for start in [0, 77, 501, 1_303] {
            let before = steps.partition_point(|(at, _)| *at <= start);
            let mut shifted: Vec<_> =
                steps[before..].iter().map(|(at, price)| (at - start, *price)).collect();
            shifted.insert(0, (0, steps[before - 1].1));
            let prices = trace(&shifted);
            // Odd seconds, so that the job never ends at a look.
            let work = minutes(500) + Span::from_secs(17);
            let checkpoint = minutes([0, 2, 5, 20][(seed % 4) as usize]);
            let record = SpotRecord::new(&prices, cents(7), Time::from_secs(1 << 31));
            let job =
                SpotJob { checkpoint, restart: Span::ZERO, look: LOOK, ..SpotJob::with_work(work) };
            let expected = job.run(SpotScheme::Acc, &record, Time::ZERO);
            let (log, outcome) = acc(setup_of(1, work, checkpoint, &prices, 7), 1, 7);
            let Some(expected) = expected else {
                assert_eq!(outcome.finished, 0, "{seed} {start}");
                continue;
            };
            let case = format!("{seed} at {start}: {expected:?}, {:?}", lives(&log));
            let off = outcome.makespan.since(Time::ZERO + expected.took).as_micros();
            let off = off.max((Time::ZERO + expected.took).since(outcome.makespan).as_micros());
            // What checkpoints keep is a whole number of millionths of the work.
            assert!(off <= 40_000 * u64::from(expected.checkpoints), "{off} us: {case}");
            assert_eq!(outcome.cost, expected.cost, "{case}");
            assert_eq!(outcome.counts.vms_launched, expected.restarts + 1, "{case}");
            assert_eq!(outcome.counts.checkpoints, expected.checkpoints, "{case}");
            assert_eq!(unkept(&log).iter().sum::<u32>(), expected.unkept, "{case}");
            done += 1;
            restarts += expected.restarts;
            without += expected.unkept;
        }
    }
    assert!(done > 120 && restarts > 200 && without > 10, "{done} {restarts} {without}");
}

#[test]
fn it_is_launched_again_at_the_first_price_that_is_not_above_the_bid() {
    // Above the bid from 1:40 to 3:00, at the looks at 1:54 and 1:59.
    let prices = trace(&[(0, 5), (100, 9), (150, 8), (180, 7), (200, 5)]);
    let (steps, outcome) = acc(setup_of(1, minutes(150), minutes(5), &prices, 7), 1, 7);
    let ended = [(0, 119, VmEnd::Terminated), (180, 216, VmEnd::Terminated)];
    assert_eq!((lives(&steps), unkept(&steps)), (ended.to_vec(), vec![0]));
    assert_eq!((outcome.counts.checkpoints, outcome.counts.launches_refused), (1, 0));
    // It hears of every price, before it begins too.
    let heard = steps.iter().flat_map(|step| &step.notices);
    let prices = heard.filter(|notice| matches!(notice, Notice::Price { .. })).count();
    assert_eq!(prices, 5);
    let first = steps.iter().flat_map(|step| &step.notices).next();
    assert!(matches!(first, Some(Notice::Price { .. })), "{first:?}");
}

/// Two VMs of two vCPUs and five tasks: when one VM ends, its tasks wait and then continue on the other.
#[test]
fn a_bag_goes_on_on_what_is_left() {
    let prices = trace(&[(0, 5), (100, 9), (180, 5)]);
    let (steps, outcome) = acc(setup_of(5, minutes(90), minutes(5), &prices, 7), 2, 7);
    assert_eq!(outcome.finished, 5);
    // The fifth begins at 1:30, and is checkpointed at 1:54; one of the VMs has nothing to do by then.
    assert_eq!(unkept(&steps), [0]);
    let lives = lives(&steps);
    assert_eq!(
        lives.iter().map(|life| (life.0, life.1)).collect::<Vec<_>>(),
        [(0, 119), (0, 90), (180, 246)]
    );
    let sent = |task| {
        let effects = steps.iter().flat_map(|step| &step.effects);
        let of = move |effect: &&Effect| matches!(effect, Effect::TaskSent { task: t, .. } if *t == TaskId::new(task));
        effects.filter(of).count()
    };
    assert_eq!([0, 1, 2, 3, 4].map(sent), [1, 1, 1, 1, 2]);
}

/// The provider ends fifo's VM as soon as the price is above the bid; fifo launches another at the first price that
/// isn't.
#[test]
fn fifo_waits_for_its_price_however_long_that_takes() {
    let prices = trace(&[(0, 9), (30, 5), (100, 9), (9_000, 5)]);
    let mut setup = setup_of(1, minutes(90), minutes(5), &prices, 7);
    setup.preemption_notice = Span::ZERO;
    let (steps, outcome) = run(setup, &config(BagSchedulerName::Fifo, 1, 7));
    let lives = lives(&steps);
    let taken = (30, 100, VmEnd::Preempted);
    assert_eq!((lives[0], lives[1].0, lives.len()), (taken, 9_000, 2));
    assert_eq!((outcome.finished, outcome.counts.launches_refused), (1, 0));
}

#[test]
fn a_bid_below_every_price_ends_with_nothing() {
    for (bid, name) in
        [(0, BagSchedulerName::Acc), (4, BagSchedulerName::Acc), (4, BagSchedulerName::Fifo)]
    {
        let prices = trace(&[(0, 5), (100, 9), (180, 5)]);
        let (steps, outcome) =
            run(setup_of(1, minutes(90), minutes(5), &prices, bid), &config(name, 1, bid));
        assert_eq!((outcome.finished, outcome.counts.vms_launched), (0, 0));
        let why = "no price changes any more";
        assert!(format!("{:?}", steps.last()).contains(why), "{:?}", steps.last());
    }
    // What costs nothing is not above a bid of nothing; the last price holds for ever.
    let (_, outcome) = acc(setup_of(1, minutes(900), minutes(5), &trace(&[(0, 0)]), 0), 1, 0);
    assert_eq!((outcome.finished, outcome.cost.as_nanos()), (1, 0));
}

/// The policy waits for a checkpoint that takes longer than expected, to the end of the hour at most.
#[test]
fn a_checkpoint_under_way_is_waited_for() {
    let at = |min: u64, s: u64| Time::ZERO + minutes(min) + Span::from_secs(s);
    let (vm, task) = (VmId::new(0), TaskId::new(0));
    let setup = setup_of(1, minutes(500), minutes(5), &trace(&[(0, 5), (50, 9)]), 7);
    for (kept, ends) in
        [(Some(at(59, 20)), at(59, 20)), (None, at(60, 0)), (Some(at(58, 50)), at(59, 0))]
    {
        let mut policy =
            built(&config(BagSchedulerName::Acc, 1, 7), &setup).expect("it can be built");
        let price = |price| Notice::Price { kind: KIND.into(), price: cents(price) };
        let mut told = vec![
            (at(0, 0), price(5)),
            (at(0, 0), Notice::Begin),
            (at(0, 0), Notice::VmReady { vm }),
            (at(0, 0), Notice::TaskStarted { task, vm, done: Ppm::ZERO, since: at(0, 0) }),
            (at(50, 0), price(9)),
        ];
        told.extend(kept.map(|at| (at, Notice::Checkpointed { task, vm, done: Ppm::new(9) })));
        let (mut wakes, mut ended) = (Vec::new(), None);
        while let Some(place) = (0..told.len()).min_by_key(|n| told[*n].0) {
            let (now, notice) = told.remove(place);
            let mut out = Vec::new();
            policy.handle(now, &[notice], &mut out);
            for decision in out {
                match decision {
                    Decision::Wake { at, token } => {
                        wakes.push(at);
                        told.push((at, Notice::Wake { token }));
                    }
                    Decision::Terminate {
                        reason: Some(EndReason::AboveBid { unkept, .. }),
                        ..
                    } => {
                        ended = Some((now, unkept));
                    }
                    _ => {}
                }
            }
        }
        assert_eq!(ended, Some((ends, u32::from(kept.is_none()))), "{wakes:?}");
    }
}

#[test]
fn what_can_t_be_is_refused() {
    let setup = |scheme| {
        let mut setup = setup_of(1, minutes(90), minutes(5), &trace(&[(0, 5)]), 7);
        setup.checkpoint.scheme = scheme;
        setup
    };
    let with_look = |look: &str| {
        let own = [("look".to_owned(), look.into())].into_iter().collect();
        BagSchedulerConfig { own: Own(own), ..config(BagSchedulerName::Acc, 1, 7) }
    };
    let none = || setup(CheckpointScheme::None {});
    let same = |bid| setup(CheckpointScheme::Acc { bid, look: LOOK });
    for (look, setup, part) in [
        ("0s", none(), "has to be above 0"),
        ("1h", none(), "below an hour"),
        ("2m", same(Some(cents(7))), "the same value of look"),
        ("1m", same(None), "name a bid"),
    ] {
        let error = built(&with_look(look), &setup).expect_err("it is refused").to_string();
        assert!(error.contains(part), "{error}");
    }
    for (look, setup) in [("2m", none()), ("1m", same(Some(cents(7))))] {
        assert!(built(&with_look(look), &setup).is_ok());
    }
}
