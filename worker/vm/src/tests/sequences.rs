//! Random sequences of changes to a VM: its vCPUs never give more than they have, finished work stays finished, credits
//! stay within the bucket's limits, and passing time in pieces or at once has the same result.

use std::collections::BTreeMap;

use dormouse_units::{Attempt, Bytes, Credits, Mode, Ppm, Span, TaskId, Tier, Time, Usage};
use proptest::prelude::*;

use crate::{
    CheckpointHold, CreditSpec, MachineSpec, ModelTask, ProcessorSharing, VmModel, WorkEvent,
};

const VCPUS: u32 = 3;
const ATTEMPT: Attempt = Attempt::new(1);
const CAP: Credits = Credits::whole_credits(3);

#[derive(Clone, Debug)]
enum Op {
    Start {
        on: Vec<u32>,
        tier: Tier,
        mode: Mode,
        usage: u32,
        secs: u64,
        points: Vec<u32>,
        hold: CheckpointHold,
    },
    Stop(usize),
    Hold(usize, u64),
    Checkpoint(usize),
    Release(usize),
    SetMode(usize, Mode),
    Promote(usize),
    Move(usize, Vec<u32>, u64),
    Freeze,
    Thaw,
    Supply(u32, u32),
    Pass(Vec<u64>),
}

fn op() -> impl Strategy<Value = Op> {
    let on = || proptest::sample::subsequence((0..VCPUS).collect::<Vec<_>>(), 1..=3);
    let tier = prop_oneof![Just(Tier::Foreground), Just(Tier::Background)];
    let mode = || prop_oneof![Just(Mode::Burst), Just(Mode::Baseline)];
    let hold = prop_oneof![Just(CheckpointHold::WhenDue), Just(CheckpointHold::WhenTold)];
    let points = proptest::collection::vec(1_u32..1_000_000, 0..3);
    let who = || 0_usize..6;
    let start = (on(), tier, mode(), 100_000_u32..=1_000_000, 1_u64..2_000, points, hold).prop_map(
        |(on, tier, mode, usage, secs, mut points, hold)| {
            points.sort_unstable();
            Op::Start { on, tier, mode, usage, secs, points, hold }
        },
    );
    prop_oneof![
        6 => start,
        2 => who().prop_map(Op::Stop),
        1 => (who(), 0_u64..50_000_000).prop_map(|(who, us)| Op::Hold(who, us)),
        1 => who().prop_map(Op::Checkpoint),
        1 => who().prop_map(Op::Release),
        1 => (who(), mode()).prop_map(|(who, mode)| Op::SetMode(who, mode)),
        1 => who().prop_map(Op::Promote),
        1 => (who(), on(), 0_u64..50_000_000).prop_map(|(who, on, us)| Op::Move(who, on, us)),
        1 => Just(Op::Freeze),
        2 => Just(Op::Thaw),
        1 => (0..VCPUS, prop_oneof![Just(0_u32), 1_u32..=1_000_000, Just(1_000_000)])
            .prop_map(|(cpu, share)| Op::Supply(cpu, share)),
        10 => proptest::collection::vec(0_u64..300_000_000, 1..5).prop_map(Op::Pass),
    ]
}

fn vm(is_burstable: bool, shares: bool) -> VmModel {
    let credits = is_burstable.then_some(CreditSpec {
        baseline: Ppm::new(200_000),
        earned_per_hour: Credits::whole_credits(36),
        initial: Credits::whole_credits(2),
        cap: CAP,
    });
    let vm =
        VmModel::new(Time::ZERO, MachineSpec { vcpus: VCPUS, memory: Bytes::new(100), credits });
    if shares {
        vm.with_sharing(ProcessorSharing { each_process: true, ..ProcessorSharing::default() }, 7)
    } else {
        vm
    }
}

/// Facts that a test knows of a task beside the model.
#[derive(Clone, Debug)]
struct Known {
    on: Vec<u32>,
    tier: Tier,
    usage: u32,
    done: Span,
}

/// A VM to which a test applies changes, with the tasks that the test expects on it.
#[derive(Clone, Debug)]
struct Bench {
    vm: VmModel,
    now: Time,
    tasks: BTreeMap<TaskId, Known>,
    started: u32,
    supply: [u32; VCPUS as usize],
    told: Vec<WorkEvent>,
}

impl Bench {
    fn new(vm: VmModel) -> Self {
        let (now, tasks, supply) = (Time::ZERO, BTreeMap::new(), [1_000_000; VCPUS as usize]);
        Self { vm, now, tasks, started: 0, supply, told: Vec::new() }
    }

    fn nth(&self, n: usize) -> Option<TaskId> {
        self.tasks.keys().nth(n).copied()
    }

    fn apply(&mut self, op: &Op) {
        let now = self.now;
        match op {
            Op::Start { on, tier, mode, usage, secs, points, hold } => {
                let task = TaskId::new(self.started);
                self.started += 1;
                let (usage, tier) = (*usage, *tier);
                let work = ModelTask {
                    task,
                    attempt: ATTEMPT,
                    memory: Bytes::new(1),
                    runtime: Span::from_secs(*secs),
                    done: Ppm::ZERO,
                    mode: *mode,
                    on: on.as_slice().into(),
                    tier,
                    usage: Usage::Uniform(Ppm::new(usage)),
                    checkpoints: points.iter().map(|&ppm| Ppm::new(ppm)).collect(),
                    checkpoint_cost: Span::from_micros(12_345_678),
                    hold: *hold,
                };
                if self.vm.start_task(now, work).is_ok() {
                    let on = self.vm.task_cpus(task, ATTEMPT).expect("it is there").to_vec();
                    let done = Span::ZERO;
                    self.tasks.insert(task, Known { on, tier, usage, done });
                }
            }
            Op::Stop(n) => {
                if let Some(task) = self.nth(*n) {
                    assert!(self.vm.stop_task(now, task, ATTEMPT).is_some());
                    self.tasks.remove(&task);
                }
            }
            Op::Hold(n, us) => {
                if let Some(task) = self.nth(*n) {
                    self.vm.hold_task(now, task, ATTEMPT, Span::from_micros(*us));
                }
            }
            Op::Checkpoint(n) => {
                if let Some(task) = self.nth(*n) {
                    let before = self.vm.task_progress(task, ATTEMPT).expect("it is there");
                    let goes_on = self.vm.checkpoint_task(now, task, ATTEMPT);
                    let after = self.vm.task_progress(task, ATTEMPT).expect("it is there");
                    assert_eq!(before.done, after.done, "{task}");
                    assert!(!goes_on || after.hold.is_some(), "{task} does not stand still");
                }
            }
            Op::Release(n) => {
                if let Some(task) = self.nth(*n) {
                    self.vm.release_task(now, task, ATTEMPT);
                }
            }
            Op::SetMode(n, mode) => {
                if let Some(task) = self.nth(*n) {
                    assert!(self.vm.set_mode(now, task, ATTEMPT, *mode));
                }
            }
            Op::Promote(n) => {
                if let Some(task) = self.nth(*n)
                    && self.vm.promote_task(now, task, ATTEMPT)
                    && let Some(known) = self.tasks.get_mut(&task)
                {
                    known.tier = Tier::Foreground;
                }
            }
            Op::Move(n, on, us) => {
                let takes = Span::from_micros(*us);
                if let Some(task) = self.nth(*n)
                    && self.vm.move_to(now, task, ATTEMPT, on.as_slice().into(), takes)
                    && let Some(known) = self.tasks.get_mut(&task)
                {
                    (known.tier, known.on) = (Tier::Foreground, on.clone());
                }
            }
            Op::Freeze => self.vm.freeze_vm(now),
            Op::Thaw => self.vm.thaw_vm(now),
            Op::Supply(cpu, share) => {
                self.vm.set_supply(now, *cpu, Ppm::new(*share));
                self.supply[*cpu as usize] = *share;
            }
            Op::Pass(_) => {}
        }
    }

    fn step(&mut self, now: Time) {
        self.now = now;
        self.vm.step_until(now, &mut self.told);
    }

    /// Checks the conditions that must hold at any time.
    fn check(&mut self) {
        if let Some(credits) = self.vm.machine().credits() {
            assert!(credits <= CAP, "{credits:?}");
        }
        assert!(self.vm.next_at().is_none_or(|at| at >= self.vm.now()));
        let mut given = [0_u64; VCPUS as usize];
        for (&task, known) in &mut self.tasks {
            let progress = self.vm.task_progress(task, ATTEMPT).expect("it is there");
            assert!(progress.done >= known.done, "{task} lost work");
            assert!(progress.done <= progress.runtime);
            known.done = progress.done;
            if progress.done < progress.runtime && progress.hold.is_none() {
                let speed = self.vm.task_speed(task, ATTEMPT).expect("it is there");
                for &cpu in &known.on {
                    given[cpu as usize] += speed.scale_number(u64::from(known.usage));
                }
            }
        }
        for (given, supply) in given.iter().zip(self.supply) {
            assert!(*given <= u64::from(supply), "{given} of {supply}");
        }
    }

    /// The observable state of the VM: its credits, the time of its next event, and its tasks.
    fn state(&mut self) -> (Option<Credits>, Option<Time>, Vec<String>) {
        let next_at = self.vm.next_at();
        let of = |&task: &TaskId| {
            let progress = self.vm.task_progress(task, ATTEMPT);
            format!("{task} {progress:?} {:?}", self.vm.task_speed(task, ATTEMPT))
        };
        (self.vm.machine().credits(), next_at, self.tasks.keys().map(of).collect())
    }
}

proptest! {
    #[test]
    fn time_can_be_passed_in_pieces(
        ops in proptest::collection::vec(op(), 1..60),
        is_burstable: bool,
        shares: bool,
    ) {
        // At once; in pieces; in pieces that are told of only at their end; from one thing that
        // happens to the next.
        let mut at_once = Bench::new(vm(is_burstable, shares));
        let (mut pieces, mut late, mut exact) =
            (at_once.clone(), at_once.clone(), at_once.clone());
        for op in &ops {
            for bench in [&mut at_once, &mut pieces, &mut late, &mut exact] {
                bench.apply(op);
                bench.check();
            }
            let Op::Pass(spans) = op else { continue };
            let end = at_once.now + spans.iter().map(|&us| Span::from_micros(us)).sum();
            at_once.step(end);
            for &us in spans {
                let to = pieces.now + Span::from_micros(us);
                pieces.step(to);
                pieces.check();
                late.vm.pass_until(to);
                late.check();
            }
            late.step(end);
            let mut before = exact.now;
            while let Some(at) = exact.vm.next_at().filter(|at| *at <= end) {
                prop_assert!(at >= before);
                before = at;
                let told = exact.told.len();
                exact.step(at);
                exact.check();
                for event in &exact.told[told..] {
                    if let WorkEvent::Finished { task, .. } = *event {
                        let finished = exact.vm.task_progress(task, ATTEMPT).and_then(|p| p.finished);
                        prop_assert_eq!(finished, Some(at));
                    }
                }
            }
            exact.step(end);
            for other in [&mut pieces, &mut late, &mut exact] {
                prop_assert_eq!(&at_once.told, &other.told);
                prop_assert_eq!(at_once.state(), other.state());
            }
        }
    }
}
