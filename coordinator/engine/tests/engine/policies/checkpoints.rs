//! Checkpointing schemes and checkpoints that a scheduler asks for, on whole runs.

use dormouse_cloud::{
    Interruption, InterruptionAction, InterruptionModel, InterruptionTarget, Market, PriceTrace,
};
use dormouse_engine::Run;
use dormouse_model::{
    Bag, CheckpointConfig, CheckpointOn, CheckpointScheme, Decision, Effect, Event, Noise, Notice,
    PeriodUnit, Report, Setup, Step, Task,
};
use dormouse_policies::{
    BagSchedulerConfig, BagSchedulerName, Checkpointing, Fleet, Moment, OnNotice, Policy, Quote,
    TaskView, When, build,
};
use dormouse_units::{Bytes, Ppm, Price, Span, TaskId, Time, VmId};

use super::jobs::ec2;
use super::played::{Outcome, play_out, played, setup};
use super::trouble::Trouble;

const BOOT: u64 = 60;
/// Cost of a checkpoint, in s.
const COST: u64 = 10;

/// Makes a bag of `tasks` tasks, each of 1,000 s on the only type.
fn bag(tasks: usize) -> Bag {
    let runtime = [("c3.large".into(), Span::from_secs(1_000))];
    let task = Task {
        name: "t".into(),
        memory: Bytes::new(1),
        runtime: runtime.into(),
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    Bag { tasks: vec![task; tasks].into(), deadline: Span::from_secs(6_000) }
}

fn checkpoints(scheme: CheckpointScheme) -> CheckpointConfig {
    CheckpointConfig {
        scheme,
        fixed: Span::from_secs(COST),
        per_megabyte: Span::ZERO,
        on: CheckpointOn::All,
        ..CheckpointConfig::NONE
    }
}

fn acts(acts: &[(u64, InterruptionAction)]) -> [InterruptionModel; 1] {
    let target = || InterruptionTarget::Type("c3.large".into());
    let act = |&(at, action)| Interruption { at: Time::from_secs(at), target: target(), action };
    [InterruptionModel::Schedule { acts: acts.iter().map(act).collect() }]
}

fn setup_of(
    tasks: usize,
    scheme: CheckpointScheme,
    happens: &[(u64, InterruptionAction)],
) -> Setup {
    let catalogue = ec2(BOOT, Ppm::new(200_000));
    setup(&bag(tasks), &catalogue, &checkpoints(scheme), &acts(happens), 1)
}

fn config(name: BagSchedulerName, market: Market) -> BagSchedulerConfig {
    let fleet = Fleet { kind: "c3.large".into(), market, count: 1, bid: None };
    BagSchedulerConfig { fleet: vec![fleet], ..BagSchedulerConfig::paper(name) }
}

/// Plays a run; returns its steps and its outcome.
fn run(setup: Setup, config: &BagSchedulerConfig) -> (Vec<Step>, Outcome) {
    let Setup { catalogue, bag, checkpoint, seed, .. } = &setup;
    let policy = build(config, catalogue, bag, checkpoint, *seed).expect("it can be planned");
    steps_of(setup, policy)
}

fn steps_of(setup: Setup, policy: Box<dyn Policy>) -> (Vec<Step>, Outcome) {
    let mut steps = Vec::new();
    let outcome = played(setup, policy, &Trouble::default(), true, |step| steps.push(step.clone()));
    (steps, outcome)
}

/// Returns the time in s of each kept checkpoint, and the part of the work that it holds, in thousandths.
fn kept(steps: &[Step]) -> Vec<(u64, u32)> {
    let kept = |step: &Step| match step.event {
        Event::Machine { report: Report::CheckpointTaken { done, .. }, .. } => {
            Some((step.at.as_micros() / 1_000_000, (done.get() + 500) / 1_000))
        }
        _ => None,
    };
    steps.iter().filter_map(kept).collect()
}

fn asked(steps: &[Step]) -> usize {
    let effects = steps.iter().flat_map(|step| &step.effects);
    effects.filter(|effect| matches!(effect, Effect::CheckpointAsked { .. })).count()
}

fn of_scheme(
    scheme: CheckpointScheme,
    happens: &[(u64, InterruptionAction)],
    market: Market,
) -> (Vec<Step>, Outcome) {
    let (steps, outcome) =
        run(setup_of(1, scheme, happens), &config(BagSchedulerName::Fifo, market));
    assert_eq!((outcome.finished, outcome.counts.rejected), (1, 0));
    (steps, outcome)
}

#[test]
fn each_scheme_takes_its_checkpoints_at_its_times() {
    let of = |scheme| of_scheme(scheme, &[], Market::OnDemand);
    let every = |period, of| CheckpointScheme::Every { period: Span::from_secs(period), of };
    let secs = |outcome: &Outcome| outcome.makespan.as_micros() / 1_000_000;

    // The task begins at 60 s; each checkpoint holds it for 10 s.
    let (steps, outcome) = of(every(300, PeriodUnit::Time));
    assert_eq!(kept(&steps), [(370, 300), (680, 600), (990, 900)]);
    assert_eq!((asked(&steps), secs(&outcome)), (3, 1_090));

    let (steps, outcome) = of(every(300, PeriodUnit::Work));
    assert_eq!(kept(&steps), [(370, 300), (680, 600), (990, 900)]);
    assert_eq!((asked(&steps), secs(&outcome)), (0, 1_090));

    let (steps, outcome) = of(CheckpointScheme::Points([100_000, 950_000].map(Ppm::new).into()));
    assert_eq!(kept(&steps), [(170, 100), (1_030, 950)]);
    assert_eq!((asked(&steps), secs(&outcome)), (0, 1_080));

    // 2 % of 1,000 s is two checkpoints of 10 s.
    let (steps, outcome) = of(CheckpointScheme::Budget(Ppm::new(20_000)));
    assert_eq!((kept(&steps), secs(&outcome)), (vec![(403, 333), (746, 667)], 1_080));

    let (steps, outcome) = of(CheckpointScheme::None {});
    assert_eq!((kept(&steps), secs(&outcome)), (vec![], 1_060));
}

#[test]
fn a_scheme_of_spot_vms_is_not_asked_on_others() {
    let every = CheckpointScheme::Every { period: Span::from_secs(300), of: PeriodUnit::Time };
    for (market, count) in [(Market::Spot, 3), (Market::OnDemand, 0)] {
        let mut setup = setup_of(1, every.clone(), &[]);
        setup.checkpoint.on = CheckpointOn::Spot;
        let (steps, _) = run(setup, &config(BagSchedulerName::Fifo, market));
        assert_eq!(kept(&steps).len(), count);
    }
}

/// A checkpoint period that ends while the VM is frozen is due as soon as the VM runs again.
#[test]
fn what_is_due_in_a_frozen_vm_is_taken_at_its_resume() {
    let every = CheckpointScheme::Every { period: Span::from_secs(300), of: PeriodUnit::Time };
    let plan = BagSchedulerConfig::paper(BagSchedulerName::Hads);
    // HADS waits for the resume.
    let happens = [(160, InterruptionAction::Hibernate), (700, InterruptionAction::Resume)];
    let (steps, outcome) = run(setup_of(1, every, &happens), &plan);
    assert_eq!((outcome.finished, outcome.counts.resumes), (1, 1), "{:?}", outcome.counts);
    // 100 s done before; it is 10 s later that the checkpoint is kept, and then 300 s each.
    assert_eq!(kept(&steps), [(710, 100), (1_020, 400), (1_330, 700)]);
    assert_eq!(outcome.makespan, Time::from_secs(1_630));
}

/// The task has run for 340 s when its VM is commanded to hibernate; the VM freezes 10 s later.
#[test]
fn a_vm_that_hibernates_checkpoints_its_tasks_first_where_that_is_said() {
    let mut setup = setup_of(1, CheckpointScheme::None {}, &[(400, InterruptionAction::Hibernate)]);
    setup.checkpoint.at_hibernation = true;
    let burst = BagSchedulerConfig::paper(BagSchedulerName::BurstHads);
    let (steps, outcome) = run(setup, &burst);
    assert_eq!((outcome.finished, outcome.counts.rejected), (1, 0), "{:?}", outcome.counts);
    assert_eq!((asked(&steps), outcome.counts.restores), (1, 1));
    assert_eq!(kept(&steps), [(410, 340)]);
    let effects = steps.iter().flat_map(|step| step.effects.iter().map(move |e| (step.at, e)));
    let frozen = effects.clone().find(|(_, e)| matches!(e, Effect::VmHibernated { .. }));
    assert_eq!(frozen.map(|(at, _)| at), Some(Time::from_secs(410)));
    // It goes on with the 660 s that are left, on a VM that boots for 60 s.
    assert_eq!(outcome.makespan, Time::from_secs(410 + BOOT + 660));
}

/// HADS waits for the resume, and takes into account that the task was stopped for the checkpoint.
#[test]
fn a_checkpoint_at_a_hibernation_makes_the_task_that_much_later() {
    let happens = [(160, InterruptionAction::Hibernate), (700, InterruptionAction::Resume)];
    let mut setup = setup_of(1, CheckpointScheme::None {}, &happens);
    setup.checkpoint.at_hibernation = true;
    let (steps, outcome) = run(setup, &BagSchedulerConfig::paper(BagSchedulerName::Hads));
    assert_eq!((outcome.counts.resumes, outcome.counts.migrations), (1, 0));
    assert_eq!(kept(&steps), [(170, 100)]);
    assert_eq!(outcome.makespan, Time::from_secs(700 + 900));
}

/// Ten tasks for which the scheduler expects 1,000 s run one after the other on one VM, each for its real run time.
#[test]
fn tasks_take_their_real_run_times_and_schedulers_are_told_others() {
    let (name, market) = (BagSchedulerName::Fifo, Market::OnDemand);
    let mut setup = setup_of(10, CheckpointScheme::None {}, &[]);
    setup.noise = Some(Noise::Lognormal(Ppm::new(300_000)));
    setup.catalogue.types.values_mut().for_each(|kind| kind.vcpus = 1);
    let kind = "c3.large".into();
    let real = |n| setup.task_runtime(TaskId::new(n), &kind).expect("it runs there");
    let ends: Vec<_> = (1..=10).map(|n| Time::from_secs(BOOT) + (0..n).map(real).sum()).collect();
    let (steps, outcome) = run(setup.clone(), &config(name, market));
    let finished = |step: &Step| match step.event {
        Event::Machine { report: Report::TaskFinished { .. }, .. } => Some(step.at),
        _ => None,
    };
    assert_eq!(steps.iter().filter_map(finished).collect::<Vec<_>>(), ends);
    assert_eq!(outcome.finished, 10);
    assert!(ends[9].since(Time::ZERO) != Span::from_secs(BOOT + 10_000));
}

/// The scheme plans the checkpoints of a restarted task from the kept work and from the restart's own beginning.
#[test]
fn an_attempt_that_goes_on_elsewhere_begins_with_what_was_kept() {
    let every = CheckpointScheme::Every { period: Span::from_secs(300), of: PeriodUnit::Time };
    let burst = BagSchedulerConfig::paper(BagSchedulerName::BurstHads);
    let (steps, outcome) = run(setup_of(1, every, &[(400, InterruptionAction::Hibernate)]), &burst);
    assert_eq!((outcome.finished, outcome.counts.restores), (1, 1), "{:?}", outcome.counts);
    let from = steps.iter().flat_map(|step| &step.effects).find_map(|effect| match effect {
        Effect::TaskSent { from: Some((_, done)), .. } => Some((effect, *done)),
        _ => None,
    });
    assert_eq!(from.map(|(_, done)| done.get() / 1_000), Some(300), "{from:?}");
    assert_eq!(kept(&steps)[0], (370, 300));
    assert!(kept(&steps)[1..].iter().all(|(_, done)| *done > 300), "{:?}", kept(&steps));
}

/// Plays a run of two tasks whose VM is preempted at 500 s; returns its steps and its outcome.
fn preempted(on_notice: OnNotice) -> (Vec<Step>, Outcome) {
    let config =
        BagSchedulerConfig { on_notice, ..BagSchedulerConfig::paper(BagSchedulerName::BurstHads) };
    let (steps, outcome) =
        run(setup_of(2, CheckpointScheme::None {}, &[(500, InterruptionAction::Preempt)]), &config);
    assert_eq!((outcome.finished, outcome.counts.rejected), (2, 0), "{:?}", outcome.counts);
    assert_eq!(outcome.counts.preemptions, 1);
    (steps, outcome)
}

#[test]
fn the_time_of_a_notice_is_used_where_tasks_run_on_and_are_checkpointed_before_its_end() {
    let (steps, _) = preempted(OnNotice::Leave);
    assert_eq!((asked(&steps), kept(&steps).len()), (0, 0), "they are stopped with a checkpoint");

    // Notice at 500 s, the end at 620 s: two checkpoints' time before that they are asked for one.
    let (steps, outcome) = preempted(OnNotice::Checkpoint);
    assert_eq!(asked(&steps), 2);
    assert_eq!(kept(&steps), [(610, 540), (610, 540)]);
    assert_eq!(outcome.counts.restores, 2);
    let froms: Vec<_> = steps
        .iter()
        .flat_map(|step| &step.effects)
        .filter_map(|effect| match effect {
            Effect::TaskSent { from: Some((_, done)), .. } => Some(done.get() / 1_000),
            _ => None,
        })
        .collect();
    assert_eq!(froms, [540, 540]);
}

/// Test policy around another policy: at the times in `wanted` it adds the decisions given there.
#[derive(Debug)]
struct Asks {
    inner: Box<dyn Policy>,
    wanted: Vec<(Time, Decision)>,
}

/// Tokens from this one on belong to wake-ups of the test policy itself.
const OWN: u64 = 1 << 60;

impl Policy for Asks {
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            match notice {
                Notice::Wake { token } if *token >= OWN => {
                    let place = usize::try_from(*token - OWN).expect("it was made of one");
                    out.push(self.wanted[place].1.clone());
                }
                Notice::Begin => {
                    let wake = |(n, at): (u64, Time)| Decision::Wake { at, token: OWN + n };
                    out.extend((0..).zip(self.wanted.iter().map(|(at, _)| *at)).map(wake));
                }
                _ => {}
            }
        }
        self.inner.handle(now, heard, out);
    }
}

#[test]
fn a_scheduler_has_a_task_checkpointed_while_it_runs_on() {
    let setup = setup_of(2, CheckpointScheme::None {}, &[]);
    let config = config(BagSchedulerName::Fifo, Market::OnDemand);
    let Setup { catalogue, bag, checkpoint, seed, .. } = &setup;
    let inner = build(&config, catalogue, bag, checkpoint, *seed).expect("a scheduler");
    let task = dormouse_units::TaskId::new;
    let now =
        |at, n| (Time::from_secs(at), Decision::Checkpoint { task: task(n), vm: VmId::new(0) });
    // The second one of a task that is being checkpointed is that one.
    let wanted = vec![now(160, 0), now(165, 0), now(260, 1), now(460, 0)];
    let (steps, outcome) = steps_of(setup, Box::new(Asks { inner, wanted }));
    assert_eq!(kept(&steps), [(170, 100), (270, 200), (470, 390)]);
    assert_eq!((asked(&steps), outcome.finished), (3, 2));
    assert_eq!(outcome.makespan, Time::from_secs(1_080));
}

/// Test scheme that takes a checkpoint when a price rises, and an hour after charging began (EDGE and HOUR of the
/// literature), and records what it was told.
#[derive(Debug, Default)]
struct Edge {
    paid: Option<Price>,
}

impl Checkpointing for Edge {
    fn next(&mut self, now: Time, task: &TaskView, quote: &Quote<'_>) -> Option<When> {
        let rose = self.paid.is_some_and(|paid| quote.price > paid);
        self.paid = Some(quote.price);
        if rose && task.moment == Moment::Price {
            return Some(When::At(now));
        }
        assert_eq!(quote.market, Market::Spot);
        assert_eq!((quote.launched, quote.charged_from), (Time::ZERO, Some(Time::from_secs(BOOT))));
        let (next, _) = quote.change?;
        assert!(next > now);
        Some(When::At(Time::from_secs(BOOT + 700)))
    }
}

#[test]
fn a_scheme_hears_of_prices_when_they_change() {
    let cents = |n: u64| Price::from_nanos_per_hour(n * 10_000_000);
    let mut setup = setup_of(1, CheckpointScheme::None {}, &[]);
    let steps = [(0, 1), (200, 3), (500, 2), (900, 2), (950, 4), (5_000, 1)];
    let steps = steps.map(|(at, price)| (Time::from_secs(at), cents(price)));
    setup.terms.prices = [("c3.large".into(), PriceTrace::new(steps.to_vec()))].into();
    let config = config(BagSchedulerName::Fifo, Market::Spot);
    let Setup { catalogue, bag, checkpoint, seed, .. } = &setup;
    let policy = build(&config, catalogue, bag, checkpoint, *seed).expect("a scheduler");
    let run = Run::new(setup, policy).with_checkpointing(Box::new(Edge::default()));
    let mut steps = Vec::new();
    let outcome = play_out(run, &Trouble::default(), true, |step| steps.push(step.clone()));
    // It rises at 200 s and at 950 s. In between 760 s is said, which is before 950 s.
    assert_eq!(kept(&steps), [(210, 140), (770, 690), (960, 870)]);
    assert_eq!((outcome.finished, asked(&steps)), (1, 3));
}

/// Plays a run of one task without a checkpointing scheme, on a spot VM that is preempted in the middle of the task's
/// work.
fn taken_away(how: impl FnOnce(&mut CheckpointConfig)) -> (Vec<Step>, Outcome) {
    let mut setup = setup_of(1, CheckpointScheme::None {}, &[(500, InterruptionAction::Preempt)]);
    how(&mut setup.checkpoint);
    run(setup, &config(BagSchedulerName::Fifo, Market::Spot))
}

#[test]
fn a_vm_that_is_given_notice_takes_a_checkpoint_where_that_is_wanted() {
    let (steps, _) = taken_away(|checkpoint| checkpoint.at_notice = true);
    assert_eq!(asked(&steps), 1);
    let (steps, _) = taken_away(|_| ());
    assert_eq!(asked(&steps), 0);
}

/// Notice comes at 500 s and the end of the VM at 620 s: the program computes on until it has had 90 s to save its
/// work, and the checkpoint holds the work done at the notice. A stop that the scheduler decides at the notice waits
/// until the work is saved.
#[test]
fn a_program_that_saves_at_a_notice_computes_on_until_it_has_saved() {
    let (steps, outcome) = taken_away(|checkpoint| checkpoint.at_notice = true);
    let stopped = steps.iter().find_map(|step| match step.event {
        Event::Machine { report: Report::TaskStopped { kept: Some((_, done)), .. }, .. } => {
            Some((step.at, done.get() / 1_000))
        }
        _ => None,
    });
    assert_eq!(stopped, Some((Time::from_secs(590), 440)));
    assert!(kept(&steps).is_empty(), "the stop keeps its work: {:?}", kept(&steps));
    assert_eq!((outcome.finished, outcome.counts.restores, outcome.counts.migrations), (1, 1, 1));
}

/// Two tasks on one VM, whose notice comes at 500 s. The first task's program saves its work then: it computes on until
/// 590 s, and the work done at the notice is kept. The second task is stopped at the notice with all of its work; only
/// this one was checkpointed after 300 s by the bag's scheme.
#[test]
fn in_a_bag_that_is_saved_in_two_ways_each_task_is_saved_in_its_own() {
    let every = CheckpointScheme::Every { period: Span::from_secs(300), of: PeriodUnit::Time };
    let mut setup = setup_of(2, every, &[(500, InterruptionAction::Preempt)]);
    (setup.checkpoint.at_notice, setup.checkpoint.savers) = (true, [TaskId::new(0)].into());
    let (steps, outcome) = run(setup, &config(BagSchedulerName::Fifo, Market::Spot));
    let kept_of = |of: u32| {
        let kept = |step: &Step| match step.event {
            Event::Machine {
                report:
                    Report::TaskStopped { task, kept: Some((_, done)), .. }
                    | Report::CheckpointTaken { task, done, .. },
                ..
            } if task.get() == of => Some((step.at.as_micros() / 1_000_000, done.get() / 1_000)),
            _ => None,
        };
        steps.iter().filter_map(kept).take_while(|(at, _)| *at < 700).collect::<Vec<_>>()
    };
    assert_eq!(kept_of(0), [(590, 440)]);
    // It stood still for 10 s at 360 s.
    assert_eq!(kept_of(1), [(370, 300), (500, 430)]);
    assert_eq!((outcome.finished, outcome.counts.restores), (2, 2));
}

/// The scheduler stops the task at the notice and asks to keep its work, but no checkpoint is made.
#[test]
fn a_task_whose_work_nothing_keeps_begins_anew() {
    let from = |steps: &[Step]| {
        let sent = |effect: &Effect| match effect {
            Effect::TaskSent { from, .. } => Some(from.is_some()),
            _ => None,
        };
        let all = steps.iter().flat_map(|step| &step.effects).filter_map(sent);
        all.collect::<Vec<_>>()
    };
    let (steps, _) = taken_away(|_| ());
    assert_eq!(from(&steps), [false, true]);
    let (steps, _) = taken_away(|checkpoint| checkpoint.never = true);
    assert_eq!(from(&steps), [false, false]);
    assert!(kept(&steps).is_empty());
}
