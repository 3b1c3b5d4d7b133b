//! Checkpoints by the dynamic program, on whole runs: checkpoints are kept at those ages of the VMs that the program's
//! schedule names.

use dormouse_cloud::{Bathtub, InterruptionModel, Lifetimes, Market};
use dormouse_model::{
    Bag, CheckpointConfig, CheckpointOn, CheckpointScheme, DpMode, Effect, Event, LifetimePlans,
    OfType, Report, Step, Task,
};
use dormouse_policies::dp::{Plan, Problem, Rules, Survival};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, Fleet, build};
use dormouse_units::{Bytes, Ppm, Span, Time};

use super::jobs::ec2;
use super::played::{played, setup};
use super::trouble::Trouble;

/// Work of the task in minutes: a millionth of it is 12 ms, so that the kept part of the work is exact.
const WORK: usize = 200;

const fn minutes(n: u64) -> Span {
    Span::from_secs(60 * n)
}

/// Makes the lifetime law of VMs that live for at most four hours.
fn law() -> Lifetimes {
    let (a, b) = (Ppm::new(413_700), minutes(240));
    Lifetimes::Bathtub(Bathtub { a, b, tau1: minutes(20), tau2: minutes(10) })
}

/// Attempts of a run with one vCPU: the time at which the VM was ready, the time at which the attempt was sent, the
/// part of the work kept before, and the times of its checkpoints.
type Attempts = Vec<(Time, Time, Ppm, Vec<Time>)>;

fn attempts(steps: &[Step]) -> Attempts {
    let (mut all, mut ready) = (Attempts::new(), Time::ZERO);
    for step in steps {
        if let Event::Machine { report: Report::CheckpointTaken { .. }, .. } = step.event
            && let Some(last) = all.last_mut()
        {
            last.3.push(step.at);
        }
        for effect in &step.effects {
            match effect {
                Effect::VmReady { .. } => ready = step.at,
                Effect::TaskSent { from, .. } => {
                    let kept = from.map(|(_, done)| done).unwrap_or_default();
                    all.push((ready, step.at, kept, Vec::new()));
                }
                _ => {}
            }
        }
    }
    all
}

fn run(seed: u64) -> (Attempts, u32) {
    let mut catalogue = ec2(60, Ppm::new(200_000));
    catalogue.types.retain(|name, _| name.as_str() == "c3.large");
    catalogue.types.values_mut().for_each(|kind| kind.vcpus = 1);
    let runtime = [("c3.large".into(), minutes(WORK as u64))];
    let task = Task {
        name: "t".into(),
        memory: Bytes::new(1),
        runtime: runtime.into(),
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    let bag = Bag { tasks: vec![task; 6].into(), deadline: minutes(60 * 24) };
    let plans = LifetimePlans {
        laws: vec![OfType { kind: None, of: law() }],
        notice: Span::ZERO,
        step: minutes(1),
        restart: minutes(1),
        mode: DpMode::Conditional,
    };
    let checkpoint = CheckpointConfig {
        scheme: CheckpointScheme::Dp(plans),
        fixed: minutes(1),
        per_megabyte: Span::ZERO,
        on: CheckpointOn::Spot,
        ..CheckpointConfig::NONE
    };
    let model = InterruptionModel::Lifetime { kind: None, lifetimes: law() };
    let mut setup = setup(&bag, &catalogue, &checkpoint, &[model], seed);
    setup.preemption_notice = Span::ZERO;
    let fleet = Fleet { kind: "c3.large".into(), market: Market::Spot, count: 1, bid: None };
    let config = BagSchedulerConfig {
        fleet: vec![fleet],
        ..BagSchedulerConfig::paper(BagSchedulerName::Fifo)
    };
    let policy = build(&config, &catalogue, &bag, &checkpoint, seed).expect("a scheduler");
    let mut steps = Vec::new();
    let outcome = played(setup, policy, &Trouble::default(), true, |step| steps.push(step.clone()));
    assert_eq!((outcome.finished, outcome.counts.rejected), (6, 0));
    (attempts(&steps), outcome.counts.preemptions)
}

#[test]
fn checkpoints_are_kept_at_the_ages_where_the_plan_has_them() {
    let law = law();
    let survival = Survival::new(&|hours| law.law().cdf(hours), minutes(1), 2_000);
    let rules = Rules::from(DpMode::Conditional);
    let (checkpoint, restart, age) = (1, 1, 0);
    let problem = Problem { job: WORK, checkpoint, restart, age, rules, survival: &survival };
    let plan = Plan::solve(&problem).expect("a plan");
    let (mut kept, mut preempted, mut old) = (0, 0, 0);
    for seed in 0..8 {
        let (attempts, preemptions) = run(seed);
        for (ready, sent, from, at) in attempts {
            let in_minutes = |span: Span| span.as_micros() as usize / 60_000_000;
            let left = in_minutes(minutes(WORK as u64).part(from.rest_of_whole()));
            let age = in_minutes(sent.since(ready));
            let mut expected = sent;
            let mut ends = Vec::new();
            for chunk in plan.schedule(left, age) {
                expected += minutes(chunk.work as u64 + 1);
                ends.push(expected);
            }
            ends.pop();
            // An attempt that is cut short has kept the first of them.
            assert_eq!(at, ends[..at.len()], "seed {seed}, age {age}, {left} min left");
            kept += at.len();
            old += usize::from(age > 0 && !at.is_empty());
        }
        preempted += preemptions;
    }
    assert!(kept > 100 && preempted > 20 && old > 5, "{kept} {preempted} {old}");
}
