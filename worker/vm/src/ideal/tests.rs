use super::*;
use crate::{CheckpointHold, MachineSpec, ModelTask, VmModel, WorkEvent};
use dormouse_units::{Attempt, Bytes, Mode, Ppm, Span, Speedup, TaskId, Tier, Time, Usage};

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn program(runtime: u64, phases: u32, usage: &[f64]) -> JobProgram {
    let usage = usage.iter().map(|u| (u * 1e6) as u32).collect();
    JobProgram { runtime: secs(runtime), phases, usage }
}

/// Time, in seconds, at which the job of key 1 has ended.
fn end(machine: &mut IdealMachine<u32>) -> f64 {
    machine.advance_to_end(1, secs(10_000));
    machine.ended_at(1).map_or(f64::NAN, |end| end.as_secs_f64())
}

fn start(
    machine: &mut IdealMachine<u32>,
    key: u32,
    program: JobProgram,
    on: &[u32],
    foreground: bool,
) {
    machine.apply_change(MachineChange::Start { key, program, on: on.to_vec(), foreground });
}

#[test]
fn a_job_alone_takes_its_run_time_whatever_its_usage() {
    for usage in [&[1.0][..], &[0.3], &[0.6; 5], &[1.0, 0.4], &[0.1, 0.2]] {
        for tier in [true, false] {
            let mut machine = IdealMachine::default();
            let on = &[0, 1, 2, 3, 4][..usage.len()];
            start(&mut machine, 1, program(10, 7, usage), on, tier);
            assert!((end(&mut machine) - 10.0).abs() < 1e-5, "{usage:?}");
        }
    }
}

#[test]
fn the_background_has_what_the_foreground_leaves() {
    let mut machine = IdealMachine::default();
    start(&mut machine, 2, program(10, 10, &[0.4]), &[0], true);
    start(&mut machine, 1, program(6, 6, &[1.0]), &[0], false);
    // .6 s of each second, of which the last is the end of a phase of the foreground.
    assert!((end(&mut machine) - 10.0).abs() < 1e-5);
    assert!(machine.ended_at(2).is_some_and(|end| end == secs(10)));
    assert_eq!(machine.work_done(2), [secs(4)]);
}

#[test]
fn a_busy_foreground_leaves_nothing_until_it_is_gone() {
    let mut machine = IdealMachine::default();
    start(&mut machine, 2, program(100, 1, &[1.0]), &[0], true);
    start(&mut machine, 1, program(4, 2, &[1.0, 1.0]), &[0, 1], false);
    machine.advance_to(secs(5));
    assert_eq!(machine.work_done(1), [Duration::ZERO, secs(2)], "the barrier holds the other one");
    machine.apply_change(MachineChange::Kill(2));
    machine.apply_change(MachineChange::Promote(1));
    assert!((end(&mut machine) - 9.0).abs() < 1e-5);
}

#[test]
fn what_is_left_of_a_job_does_not_count_its_neighbours() {
    let mut machine = IdealMachine::default();
    start(&mut machine, 2, program(100, 1, &[1.0]), &[0], true);
    start(&mut machine, 1, program(4, 2, &[1.0, 1.0]), &[0, 1], false);
    machine.advance_to(secs(5));
    assert_eq!(machine.left_alone(1), Some(secs(4)));
    assert_eq!(machine.left_alone(2), Some(secs(95)));
    machine.apply_change(MachineChange::Stand(1));
    assert_eq!(machine.left_alone(1), Some(secs(4)));
    machine.advance_to(secs(100));
    assert_eq!(machine.left_alone(2), None);
    machine.forget_gone(|_| true);
    assert_eq!((machine.left_alone(1), machine.ended_at(2)), (None, None));
}

/// A user of the reference machine may know that a job has ended while the reference still has the job stopped for its
/// checkpoint.
#[test]
fn who_stands_still_for_a_checkpoint_is_in_the_way_of_others_even_when_it_is_gone() {
    let mut machine = IdealMachine::default();
    start(&mut machine, 2, program(10, 10, &[1.0]), &[0], true);
    start(&mut machine, 1, program(3, 3, &[1.0]), &[0], false);
    machine.advance_to(secs(4));
    machine.apply_change(MachineChange::Hold(2, secs(2)));
    machine.advance_to(secs(5));
    machine.forget_gone(|key| key == 2);
    assert!((end(&mut machine) - 15.0).abs() < 1e-5);
    machine.forget_gone(|key| key == 2);
    assert_eq!(machine.ended_at(2), None, "it is through, and gone");
}

#[test]
fn time_stops_at_the_first_end_and_again_at_the_next() {
    let mut machine = IdealMachine::default();
    start(&mut machine, 2, program(10, 10, &[0.4]), &[0], true);
    start(&mut machine, 1, program(3, 3, &[1.0]), &[0], false);
    assert!(!machine.advance_to_an_end(secs(4)));
    assert_eq!(machine.now(), secs(4));
    // .6 s of each second.
    assert!(machine.advance_to_an_end(secs(100)));
    assert_eq!((machine.now(), machine.ended_at(1)), (secs(5), Some(secs(5))));
    assert!(machine.advance_to_an_end(secs(100)));
    assert_eq!((machine.now(), machine.ended_at(2)), (secs(10), Some(secs(10))));
    assert!(!machine.advance_to_an_end(secs(100)));
}

#[test]
fn a_job_that_stands_for_its_checkpoint_keeps_its_processors() {
    let mut machine = IdealMachine::default();
    start(&mut machine, 1, program(10, 4, &[0.5]), &[0], true);
    start(&mut machine, 2, program(10, 1, &[1.0]), &[0], false);
    machine.advance_to(secs(4));
    // It computes for 1.25 s of each 2.5 s.
    let below = [Duration::from_millis(1_500)];
    assert_eq!(machine.work_done(2), below);
    let done = machine.part_done(1);
    machine.apply_change(MachineChange::Hold(1, secs(3)));
    machine.advance_to(secs(6));
    assert_eq!((machine.part_done(1), machine.held_until(1)), (done, Some(secs(7))));
    machine.advance_to(secs(7));
    assert_eq!((machine.work_done(2), machine.held_until(1)), (below.to_vec(), None));
    assert!((end(&mut machine) - 13.0).abs() < 1e-5);
}

#[test]
fn a_job_that_begins_with_work_done_takes_what_is_left() {
    for (usage, phases) in [(&[1.0][..], 4), (&[0.3, 0.9], 7), (&[0.6; 3], 1)] {
        let mut whole = IdealMachine::default();
        let on = &[0, 1, 2][..usage.len()];
        start(&mut whole, 1, program(10, phases, usage), on, true);
        for s in 1..10 {
            whole.advance_to(secs(s));
            let done = whole.part_done(1).unwrap_or(0);
            let mut machine = IdealMachine::default();
            start(&mut machine, 1, program(10, phases, usage), on, false);
            machine.apply_change(MachineChange::HasDone(1, done));
            let left = machine.left_alone(1).map_or(0.0, |left| left.as_secs_f64());
            let expected = whole.left_alone(1).map_or(0.0, |left| left.as_secs_f64());
            // While all wait for the network nothing is done.
            let network =
                10.0 / f64::from(phases) * (1.0 - usage.iter().fold(0.0, |a: f64, b| a.max(*b)));
            assert!(
                (-1e-4..=network + 1e-4).contains(&(left - expected)),
                "{usage:?} {s} {left} {expected}"
            );
        }
    }
}

#[test]
fn a_job_that_is_moved_loses_the_time_that_takes_and_no_work() {
    let mut machine = IdealMachine::default();
    start(&mut machine, 1, program(10, 4, &[1.0]), &[0], false);
    machine.advance_to(secs(3));
    machine.apply_change(MachineChange::Stand(1));
    machine.advance_to(secs(5));
    assert_eq!(machine.work_done(1), [secs(3)]);
    machine.apply_change(MachineChange::GoOn { key: 1, on: vec![4], anew: false });
    assert!((end(&mut machine) - 12.0).abs() < 1e-5);
    machine.advance_to(secs(1));
    assert_eq!(machine.ended_at(1), Some(secs(12)), "time does not go back");
    machine.apply_change(MachineChange::Stand(1));
    machine.advance_to(secs(20));
    machine.apply_change(MachineChange::GoOn { key: 1, on: vec![2], anew: true });
    assert!((end(&mut machine) - 30.0).abs() < 1e-5);
}

const fn spec(baseline: u32, earned_per_hour: u64, initial_s: u64) -> CreditSpec {
    CreditSpec {
        baseline: Ppm::new(baseline),
        earned_per_hour: Balance::whole_credits(earned_per_hour),
        initial: Balance::from_vcpu_micros(initial_s * 1_000_000),
        cap: Balance::whole_credits(1_000),
    }
}

/// A burstable machine whose clock runs as fast as emulated time.
fn burstable(spec: CreditSpec) -> IdealMachine<u32> {
    IdealMachine::with_credits(Some(spec), Speedup::ONE)
}

#[test]
fn without_credits_a_processor_is_at_its_baseline_until_a_whole_one_is_there() {
    let mut machine = burstable(spec(200_000, 0, 10));
    start(&mut machine, 1, program(20, 4, &[1.0]), &[0], true);
    machine.advance_to(secs(9));
    assert_eq!(machine.credits(), Some((Balance::from_vcpu_micros(1_000_000), false)));
    assert!((end(&mut machine) - 60.0).abs() < 1e-4);
    assert_eq!((machine.credits(), machine.speed_ppm()), (Some((Balance::ZERO, true)), 200_000));
    // One is earned each minute.
    let mut machine = burstable(spec(200_000, 60, 0));
    machine.advance_to(secs(59));
    assert_eq!(machine.speed_ppm(), 200_000);
    machine.advance_to(secs(61));
    assert_eq!(machine.speed_ppm(), 1_000_000);
    // A new one has what new ones have.
    machine.apply_change(MachineChange::Made);
    assert_eq!(machine.credits(), Some((Balance::ZERO, true)));
}

#[test]
fn only_computing_is_slower_and_only_that_and_checkpoints_take_credits() {
    // Two processes that compute for .75 s of each second together, one after the other.
    let mut machine = burstable(spec(250_000, 0, 3));
    start(&mut machine, 1, program(10, 10, &[0.5, 0.25]), &[0, 1], true);
    // 4 s of 1 s, and 6 of .75 s × 4 and .25 s in which nobody computes.
    assert!((end(&mut machine) - 23.5).abs() < 1e-3);
    // A checkpoint in the foreground uses its processor, one in the background does not.
    for (foreground, left) in [(true, 3), (false, 6)] {
        let mut machine = burstable(spec(250_000, 0, 10));
        start(&mut machine, 1, program(10, 1, &[1.0]), &[0], foreground);
        machine.advance_to(secs(4));
        machine.apply_change(MachineChange::Hold(1, secs(3)));
        machine.advance_to(secs(7));
        let left = Balance::from_vcpu_micros(left * 1_000_000);
        assert_eq!(machine.credits(), Some((left, false)), "{foreground}");
    }
    // One that is moved uses nothing.
    let mut machine = burstable(spec(250_000, 0, 10));
    start(&mut machine, 1, program(10, 1, &[1.0]), &[0], false);
    machine.advance_to(secs(4));
    machine.apply_change(MachineChange::Stand(1));
    machine.advance_to(secs(7));
    machine.apply_change(MachineChange::GoOn { key: 1, on: vec![4], anew: false });
    assert!((end(&mut machine) - 13.0).abs() < 1e-4);
}

/// Emulated time may pass faster than the machine's time.
#[test]
fn credits_are_those_of_emulated_time() {
    let mut machine =
        IdealMachine::with_credits(Some(spec(500_000, 0, 60)), Speedup::times_real(30));
    start(&mut machine, 1, program(4, 1, &[1.0]), &[0], true);
    // 60 s of full speed are 2 s here.
    assert!((end(&mut machine) - 6.0).abs() < 1e-4);
}

/// The reference agrees with the model of virtual time on the same jobs and processors: the model spreads a job's use
/// of its processors over its time, which makes a difference of a phase or two.
#[test]
fn it_agrees_with_the_model_of_virtual_time() {
    const PHASES: u32 = 2_000;
    let (above, below) = (TaskId::new(2), TaskId::new(1));
    let cases = [
        (spec(200_000, 12, 100), vec![1.0, 1.0], 1.0),
        (spec(300_000, 36, 400), vec![0.6, 0.4], 1.0),
        (spec(500_000, 0, 50), vec![0.8, 0.4], 1.0),
        (spec(100_000, 400, 0), vec![0.9, 0.9], 1.0),
        (spec(250_000, 90, 3_000), vec![0.7, 0.5], 1.0),
    ];
    for (spec, usage, single) in cases {
        let machine_spec = MachineSpec { vcpus: 2, memory: Bytes::ZERO, credits: Some(spec) };
        let mut model = VmModel::new(Time::ZERO, machine_spec);
        let mut machine = burstable(spec);
        let jobs = [(above, Tier::Foreground, usage), (below, Tier::Background, vec![single])];
        for (task, tier, usage) in jobs {
            let on: Vec<u32> = (0..).take(usage.len()).collect();
            let program = program(1_000, PHASES, &usage);
            let of = program.usage.iter().map(|ppm| Ppm::new(*ppm)).collect();
            start(&mut machine, task.get(), program, &on, tier == Tier::Foreground);
            let work = ModelTask {
                task,
                attempt: Attempt::new(1),
                memory: Bytes::ZERO,
                runtime: Span::from_secs(1_000),
                done: Ppm::ZERO,
                mode: Mode::Burst,
                on: on.into(),
                tier,
                usage: Usage::each_process(of),
                checkpoints: Vec::new(),
                checkpoint_cost: Span::ZERO,
                hold: CheckpointHold::WhenDue,
            };
            model.start_task(Time::ZERO, work).expect("they are free");
        }
        let mut told = Vec::new();
        while let Some(at) = model.next_at() {
            let before = told.len();
            model.step_until(at, &mut told);
            for event in &told[before..] {
                let WorkEvent::Finished { task, attempt } = *event else { continue };
                machine.advance_to_end(task.get(), secs(1_000_000));
                let by_machine =
                    machine.ended_at(task.get()).map_or(f64::NAN, |at| at.as_secs_f64());
                let by_model = at.since(Time::ZERO).as_secs_f64();
                assert!(
                    (by_machine / by_model - 1.0).abs() < 5e-3,
                    "{spec:?}: {task} ends at {by_machine}, by the model at {by_model}"
                );
                model.stop_task(at, task, attempt);
            }
        }
        let ends = told.iter().filter(|event| matches!(event, WorkEvent::Finished { .. }));
        assert_eq!(ends.count(), 2, "{spec:?}");
    }
}

#[test]
fn a_job_with_a_rank_that_has_no_processor_stays_where_it_is() {
    // Only a log that somebody has changed has one.
    let mut machine = IdealMachine::default();
    start(&mut machine, 1, program(10, 2, &[1.0, 1.0]), &[0], true);
    machine.advance_to(secs(1));
    machine.apply_change(MachineChange::HasDone(1, 500_000));
    assert_eq!(machine.work_done(1), [secs(1), Duration::ZERO]);
}
