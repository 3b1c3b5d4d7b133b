use super::*;
use crate::{CheckpointHold, CreditSpec};
use dormouse_units::{Credits, Tier, Usage};

fn work(task: u32, secs: u64, checkpoints: &[u32]) -> ModelTask {
    ModelTask {
        task: TaskId::new(task),
        attempt: Attempt::new(1),
        memory: Bytes::new(10),
        runtime: Span::from_secs(secs),
        done: Ppm::ZERO,
        mode: Mode::Burst,
        on: Cpus::default(),
        tier: Tier::Foreground,
        usage: Usage::FULL,
        checkpoints: checkpoints.iter().map(|&ppm| Ppm::new(ppm)).collect(),
        checkpoint_cost: Span::from_secs(10),
        hold: CheckpointHold::WhenDue,
    }
}

fn run(vm: &mut VmModel, until: Time) -> Vec<(u64, WorkEvent)> {
    let mut all = Vec::new();
    while let Some(at) = vm.next_at().filter(|&at| at <= until) {
        let mut told = Vec::new();
        vm.step_until(at, &mut told);
        all.extend(told.into_iter().map(|e| (at.as_micros() / 1_000_000, e)));
    }
    all
}

fn regular() -> VmModel {
    VmModel::new(Time::ZERO, MachineSpec { vcpus: 2, memory: Bytes::new(100), credits: None })
}

#[test]
fn a_task_takes_its_time_and_its_checkpoints() {
    let mut vm = regular();
    vm.start_task(Time::ZERO, work(1, 100, &[250_000, 500_000])).expect("room");
    let (task, attempt, memory) = (TaskId::new(1), Attempt::new(1), Bytes::new(10));
    let events = run(&mut vm, Time::from_secs(1_000));
    assert_eq!(
        events,
        [
            (35, WorkEvent::Checkpointed { task, attempt, done: Ppm::new(250_000), memory }),
            (70, WorkEvent::Checkpointed { task, attempt, done: Ppm::new(500_000), memory }),
            (120, WorkEvent::Finished { task, attempt }),
        ]
    );
    assert!(
        vm.task_progress(task, attempt)
            .is_some_and(|p| p.finished.is_some() && p.done == p.runtime)
    );
    assert!(vm.stop_task(Time::from_secs(1_000), task, attempt).is_some());
    assert!(vm.is_empty());
}

/// A checkpoint requested while the task runs holds the work done by then, in addition to planned checkpoints; if a
/// checkpoint is under way, that one counts.
#[test]
fn a_checkpoint_is_taken_when_it_is_asked_for() {
    let mut vm = regular();
    vm.start_task(Time::ZERO, work(1, 100, &[500_000])).expect("room");
    let (task, attempt, memory) = (TaskId::new(1), Attempt::new(1), Bytes::new(10));
    assert!(!vm.checkpoint_task(Time::from_secs(1), task, Attempt::new(2)), "a former life's");
    assert!(vm.checkpoint_task(Time::from_secs(20), task, attempt));
    assert!(vm.checkpoint_task(Time::from_secs(25), task, attempt), "it is that one");
    assert_eq!(vm.task_progress(task, attempt).and_then(|p| p.hold), Some(Span::from_secs(5)));
    // Nothing is taken in a frozen VM.
    vm.freeze_vm(Time::from_secs(26));
    vm.thaw_vm(Time::from_secs(126));
    let mut events = run(&mut vm, Time::from_secs(165));
    // The planned one is under way.
    assert!(vm.checkpoint_task(Time::from_secs(165), task, attempt));
    events.extend(run(&mut vm, Time::from_secs(220)));
    // All is done at this instant.
    assert!(!vm.checkpoint_task(Time::from_secs(220), task, attempt));
    assert_eq!(
        events,
        [
            (130, WorkEvent::Checkpointed { task, attempt, done: Ppm::new(200_000), memory }),
            (170, WorkEvent::Checkpointed { task, attempt, done: Ppm::new(500_000), memory }),
            (220, WorkEvent::Finished { task, attempt }),
        ]
    );
}

/// 36 credits an hour are 0.6 a minute, and a used vCPU costs 1 a minute: 10 + 3.6 - 6 after a task of 300 s and its
/// checkpoint of 60 s. A finished task uses nothing.
#[test]
fn a_checkpoint_uses_the_processor() {
    let credits = CreditSpec {
        baseline: Ppm::new(200_000),
        earned_per_hour: Credits::whole_credits(36),
        initial: Credits::whole_credits(10),
        cap: Credits::whole_credits(100),
    };
    let spec = MachineSpec { vcpus: 2, memory: Bytes::new(100), credits: Some(credits) };
    let minute = Span::from_secs(60);
    let (task, attempt) = (TaskId::new(1), Attempt::new(1));
    let finished = WorkEvent::Finished { task, attempt };
    let mut due = VmModel::new(Time::ZERO, spec.clone());
    due.start_task(Time::ZERO, ModelTask { checkpoint_cost: minute, ..work(1, 300, &[500_000]) })
        .expect("room");
    assert_eq!(run(&mut due, Time::from_secs(400)).last(), Some(&(360, finished)));
    // As a worker has it.
    let mut told = VmModel::new(Time::ZERO, spec);
    told.start_task(Time::ZERO, ModelTask { hold: CheckpointHold::WhenTold, ..work(1, 300, &[]) })
        .expect("room");
    told.hold_task(Time::from_secs(100), task, attempt, minute);
    assert_eq!(run(&mut told, Time::from_secs(400)).last(), Some(&(360, finished)));
    for mut vm in [due, told] {
        let tenths = |vm: &VmModel| vm.machine().credits().map(|c| c.as_vcpu_micros() / 6_000_000);
        assert_eq!(tenths(&vm), Some(76));
        vm.pass_until(Time::from_secs(960));
        assert_eq!(tenths(&vm), Some(136));
    }
}

#[test]
fn a_task_stands_still_when_it_is_told_to() {
    let mut vm = regular();
    let (task, attempt) = (TaskId::new(1), Attempt::new(1));
    let told = ModelTask { hold: CheckpointHold::WhenTold, ..work(1, 100, &[250_000]) };
    vm.start_task(Time::ZERO, told).expect("room");
    let due = WorkEvent::Due { task, attempt, done: Ppm::new(250_000) };
    assert_eq!(run(&mut vm, Time::from_secs(30)), [(25, due)]);
    vm.hold_task(Time::from_secs(30), task, attempt, Span::from_secs(10));
    vm.step_until(Time::from_secs(35), &mut Vec::new());
    let at = |vm: &VmModel| vm.task_progress(task, attempt).map(|p| (p.done, p.hold));
    assert_eq!(at(&vm), Some((Span::from_secs(30), Some(Span::from_secs(5)))));
    let time_to = |done| vm.time_to(task, attempt, Span::from_secs(done));
    assert_eq!((time_to(30), time_to(40)), (Some(Span::ZERO), Some(Span::from_secs(15))));
    let finished = WorkEvent::Finished { task, attempt };
    assert_eq!(run(&mut vm, Time::from_secs(110)), [(110, finished)]);
    let finished_at = vm.task_progress(task, attempt).and_then(|p| p.finished);
    assert_eq!(finished_at, Some(Time::from_secs(110)));
    // It should have stood still once more: it finishes that much later.
    vm.hold_task(Time::from_secs(112), task, attempt, Span::from_secs(10));
    assert_eq!(run(&mut vm, Time::from_secs(200)), [(122, finished)]);
    assert_eq!(run(&mut vm, Time::from_secs(300)), []);
    // A hold that came to nothing.
    vm.hold_task(Time::from_secs(300), task, attempt, Span::from_secs(10));
    vm.release_task(Time::from_secs(301), task, attempt);
    assert_eq!(run(&mut vm, Time::from_secs(400)), [(301, finished)]);
}

#[test]
fn a_late_start_is_promised_what_it_missed() {
    let mut vm = regular();
    let (task, attempt) = (TaskId::new(1), Attempt::new(1));
    vm.start_task(Time::from_secs(7), work(1, 100, &[])).expect("room");
    vm.head_start(task, attempt, Span::from_secs(7));
    let finished = WorkEvent::Finished { task, attempt };
    assert_eq!(run(&mut vm, Time::from_secs(200)), [(100, finished)]);
}

/// A task that begins with a checkpoint is promised work, and uses credits, from the decision to start it on, however
/// long its restore takes, as in virtual time, where a restore takes no time.
#[test]
fn a_restored_task_uses_credits_from_its_decision_on() {
    let spec = |initial: u64| MachineSpec {
        vcpus: 2,
        memory: Bytes::new(100),
        credits: Some(CreditSpec {
            baseline: Ppm::new(250_000),
            earned_per_hour: Credits::ZERO,
            initial: Credits::from_vcpu_micros(initial * 1_000_000),
            cap: Credits::whole_credits(100),
        }),
    };
    let (task, attempt) = (TaskId::new(1), Attempt::new(1));
    let restored = || ModelTask { done: Ppm::new(400_000), ..work(1, 100, &[]) };
    let finished = WorkEvent::Finished { task, attempt };
    let seconds = |vm: &VmModel| vm.machine().credits().map(|c| c.as_vcpu_micros() / 1_000_000);
    // 60 s of work are left: with credits for more, for less, and for none of it.
    for (initial, end, left) in [(90, 80, 30), (30, 170, 0), (0, 260, 0)] {
        let mut modelled = VmModel::new(Time::ZERO, spec(initial));
        modelled.start_task(Time::from_secs(20), restored()).expect("room");
        // The worker hears of it 7 s late.
        let mut beside = VmModel::new(Time::ZERO, spec(initial));
        beside.start_task(Time::from_secs(27), restored()).expect("room");
        beside.head_start(task, attempt, Span::from_secs(7));
        for at in [27, 40, 300] {
            for vm in [&mut modelled, &mut beside] {
                let told = run(vm, Time::from_secs(at));
                let has_ended = told.iter().any(|(_, event)| *event == finished);
                assert_eq!(has_ended, at == 300, "{initial}: {told:?}");
                vm.pass_until(Time::from_secs(at));
            }
            assert_eq!(seconds(&modelled), seconds(&beside), "{initial} at {at}");
        }
        for vm in [&modelled, &beside] {
            let ended = vm.task_progress(task, attempt).and_then(|p| p.finished);
            assert_eq!((ended, seconds(vm)), (Some(Time::from_secs(end)), Some(left)));
        }
    }
}

/// A task of 100 s that waits 40 s for its inputs is promised no work and uses no credits in these 40 s, and ends 40 s
/// later. The 5 s that its start took afterwards are promised in full.
#[test]
fn a_task_that_waits_for_what_it_begins_with_is_owed_nothing() {
    let mut vm = burstable(4);
    let (task, attempt, at) = (TaskId::new(1), Attempt::new(1), Time::from_secs);
    let thousandths = |vm: &VmModel| vm.machine().credits().map(|c| c.as_vcpu_micros() / 60_000);
    let done = |vm: &VmModel| vm.task_progress(task, attempt).map(|progress| progress.done);
    vm.start_task(Time::ZERO, work(1, 100, &[])).expect("room");
    vm.wait_for_release(Time::ZERO, task, attempt);
    assert_eq!(run(&mut vm, at(40)), []);
    vm.pass_until(at(45));
    // .6 credits a minute are earned, and none is used.
    assert_eq!((done(&vm), thousandths(&vm)), (Some(Span::ZERO), Some(4_450)));
    vm.release_task(at(45), task, attempt);
    vm.head_start(task, attempt, Span::from_secs(5));
    assert_eq!(done(&vm), Some(Span::from_secs(5)));
    assert_eq!(thousandths(&vm), Some(4_366));
    assert_eq!(run(&mut vm, at(200)), [(140, finished(1))]);
}

#[test]
fn nothing_moves_while_hibernated() {
    let mut vm = regular();
    vm.start_task(Time::ZERO, work(1, 100, &[])).expect("room");
    vm.freeze_vm(Time::from_secs(40));
    assert_eq!(vm.next_at(), None);
    vm.thaw_vm(Time::from_secs(1_000));
    assert_eq!(vm.next_at(), Some(Time::from_secs(1_060)));
    assert_eq!(
        vm.stop_task(Time::from_secs(1_010), TaskId::new(1), Attempt::new(1)),
        Some(Ppm::new(500_000))
    );
    assert_eq!(vm.next_at(), None);
}

#[test]
fn a_task_taken_over_goes_on_from_what_was_kept() {
    let mut vm = regular();
    vm.start_task(
        Time::ZERO,
        ModelTask { done: Ppm::new(500_000), ..work(1, 100, &[250_000, 500_000, 750_000]) },
    )
    .expect("room");
    let at: Vec<_> = run(&mut vm, Time::from_secs(1_000)).iter().map(|e| e.0).collect();
    assert_eq!(at, [35, 60]);
}

/// A burstable VM with this many initial credits, which earns 36 credits an hour, 0.6 a minute.
fn burstable(initial: u64) -> VmModel {
    let credits = CreditSpec {
        baseline: Ppm::new(200_000),
        earned_per_hour: Credits::whole_credits(36),
        initial: Credits::whole_credits(initial),
        cap: Credits::whole_credits(864),
    };
    let credits = Some(credits);
    VmModel::new(Time::ZERO, MachineSpec { vcpus: 2, memory: Bytes::new(100), credits })
}

/// Work of as many processes as `on` names vCPUs.
fn gang(task: u32, secs: u64, on: &[u32]) -> ModelTask {
    ModelTask { memory: Bytes::ZERO, on: on.into(), ..work(task, secs, &[]) }
}

const ATTEMPT: Attempt = Attempt::new(1);

fn speed(vm: &VmModel, task: u32) -> Option<u32> {
    vm.task_speed(TaskId::new(task), ATTEMPT).map(Ppm::get)
}

fn finished(task: u32) -> WorkEvent {
    WorkEvent::Finished { task: TaskId::new(task), attempt: ATTEMPT }
}

fn back(work: ModelTask) -> ModelTask {
    ModelTask { tier: Tier::Background, ..work }
}

#[test]
fn one_process_a_slot_and_memory_for_all() {
    let mut vm = burstable(1);
    let first = |task| ModelTask { memory: Bytes::new(30), ..work(task, 10, &[]) };
    let start = |vm: &mut VmModel, work: ModelTask| {
        let (task, attempt) = (work.task, work.attempt);
        vm.start_task(Time::ZERO, work)?;
        Ok(vm.task_cpus(task, attempt).expect("it is there").to_vec())
    };
    assert_eq!(start(&mut vm, first(1)), Ok(vec![0]));
    // Its vCPU is still being left.
    assert_eq!(start(&mut vm, ModelTask { on: [0].into(), ..first(2) }), Ok(vec![1]));
    assert_eq!(start(&mut vm, first(3)), Err(SeatError::NoCpu(2)));
    assert_eq!(start(&mut vm, back(first(3))), Ok(vec![0]));
    let (need, free) = (Bytes::new(30), Bytes::new(10));
    assert_eq!(start(&mut vm, back(first(4))), Err(SeatError::NoMemory { need, free }));
    assert_eq!(start(&mut vm, back(gang(4, 10, &[0, 1]))), Err(SeatError::Taken(0)));
    assert_eq!(vm.stop_task(Time::ZERO, TaskId::new(1), Attempt::new(2)), None);
    assert!(vm.stop_task(Time::ZERO, TaskId::new(1), ATTEMPT).is_some());
    assert_eq!(start(&mut vm, gang(4, 10, &[0, 2])), Err(SeatError::Taken(2)));
    assert_eq!(start(&mut vm, gang(4, 10, &[0, 0])), Err(SeatError::Taken(0)));
    assert_eq!(start(&mut vm, first(4)), Ok(vec![0]));
}

/// It makes no difference to other tasks whether finished tasks leave by themselves or are stopped at once.
#[test]
fn who_leaves_by_itself_is_as_one_that_is_stopped() {
    let mut stays = regular().with_sharing(ProcessorSharing::default(), 7);
    let mut leaves = stays.clone().leaving_when_done();
    for vm in [&mut stays, &mut leaves] {
        vm.start_task(Time::ZERO, gang(1, 50, &[0, 1])).expect("room");
        vm.start_task(Time::ZERO, back(gang(2, 100, &[1]))).expect("room");
        vm.start_task(Time::ZERO, back(gang(3, 90, &[0]))).expect("room");
    }
    for _ in 0..3 {
        let at = stays.next_at().expect("one is left");
        assert_eq!(leaves.next_at(), Some(at));
        let (mut told, mut told_too) = (Vec::new(), Vec::new());
        stays.step_until(at, &mut told);
        leaves.step_until(at, &mut told_too);
        assert_eq!(told, told_too);
        let [WorkEvent::Finished { task, attempt }] = told[..] else { panic!("{told:?}") };
        assert!(leaves.task_progress(task, attempt).is_none());
        assert_eq!(stays.stop_task(at, task, attempt), Some(Ppm::ONE));
    }
    assert!(stays.is_empty() && leaves.is_empty());
}

#[test]
fn out_of_credits_is_the_baseline_until_a_whole_one_is_earned() {
    let mut vm = burstable(4);
    vm.start_task(Time::ZERO, work(1, 10_000, &[])).expect("room");
    assert_eq!(vm.next_at(), Some(Time::from_secs(600)));
    vm.pass_until(Time::from_secs(600));
    assert_eq!(speed(&vm, 1), Some(200_000));
    let mut told = Vec::new();
    vm.step_until(Time::from_secs(600), &mut told);
    assert_eq!(told, [WorkEvent::CreditsTurned(Credits::ZERO)]);
    // .6 earned a minute, .2 spent: a whole credit after 2.5 minutes.
    assert_eq!(vm.next_at(), Some(Time::from_secs(750)));
    vm.pass_until(Time::from_secs(749));
    assert_eq!(speed(&vm, 1), Some(200_000));
    vm.pass_until(Time::from_secs(750));
    assert_eq!(speed(&vm, 1), Some(1_000_000));
}

/// A task in the background of a task at its baseline, and of that task's checkpoint.
#[test]
fn the_background_gets_what_the_foreground_leaves() {
    let mut vm = burstable(4);
    let baseline = ModelTask { mode: Mode::Baseline, on: [0].into(), ..work(1, 100, &[]) };
    vm.start_task(Time::ZERO, baseline).expect("room");
    vm.start_task(Time::ZERO, back(gang(2, 100, &[0]))).expect("room");
    assert_eq!((speed(&vm, 1), speed(&vm, 2)), (Some(200_000), Some(800_000)));
    vm.set_mode(Time::ZERO, TaskId::new(1), ATTEMPT, Mode::Burst);
    assert_eq!(speed(&vm, 2), Some(0));
    vm.hold_task(Time::ZERO, TaskId::new(1), ATTEMPT, Span::from_secs(10));
    assert_eq!(speed(&vm, 2), Some(0));
    assert_eq!(run(&mut vm, Time::from_secs(110)), [(110, finished(1))]);
    // It keeps its seat and uses nothing.
    assert_eq!(speed(&vm, 2), Some(1_000_000));
    vm.freeze_vm(Time::from_secs(120));
    assert_eq!((speed(&vm, 2), vm.next_at()), (Some(0), None));
    vm.thaw_vm(Time::from_secs(200));
    assert_eq!(run(&mut vm, Time::from_secs(300)), [(290, finished(2))]);
}

/// A foreground of usage 0.4 leaves a background of usage 0.5, at a utilisation of 0.7, the speed 0.7 x 0.6 / 0.5; the
/// foreground itself loses 0.1.
#[test]
fn a_gang_goes_as_fast_as_its_slowest_process() {
    let sharing = ProcessorSharing {
        loss: (0.1, 0.1),
        several_normal: (0.7, 0.0),
        ..ProcessorSharing::default()
    };
    let mut vm = regular().with_sharing(sharing, 1);
    let front = ModelTask { usage: Usage::Uniform(Ppm::new(400_000)), ..gang(1, 90, &[1]) };
    let behind =
        ModelTask { usage: Usage::Uniform(Ppm::new(500_000)), ..back(gang(2, 100, &[0, 1])) };
    vm.start_task(Time::ZERO, front).expect("room");
    assert_eq!(speed(&vm, 1), Some(1_000_000));
    vm.start_task(Time::ZERO, behind).expect("room");
    assert_eq!((speed(&vm, 1), speed(&vm, 2)), (Some(900_000), Some(840_000)));
    // 84 are done when it is alone.
    assert_eq!(run(&mut vm, Time::from_secs(200)), [(100, finished(1)), (116, finished(2))]);
    assert_eq!(vm.stop_task(Time::from_secs(200), TaskId::new(2), ATTEMPT), Some(Ppm::ONE));
}

#[test]
fn a_gang_comes_to_the_foreground_and_stands_while_it_is_moved() {
    let mut vm = regular();
    vm.start_task(Time::ZERO, gang(1, 50, &[0])).expect("room");
    vm.start_task(Time::ZERO, back(gang(2, 100, &[0]))).expect("room");
    let two = TaskId::new(2);
    // Its foreground is taken.
    assert!(!vm.promote_task(Time::ZERO, two, ATTEMPT));
    assert!(!vm.move_to(Time::ZERO, two, ATTEMPT, [0, 1].into(), Span::ZERO));
    assert!(vm.move_to(Time::from_secs(10), two, ATTEMPT, [1].into(), Span::from_secs(20)));
    vm.freeze_vm(Time::from_secs(15));
    vm.thaw_vm(Time::from_secs(115));
    assert_eq!(run(&mut vm, Time::from_secs(300)), [(150, finished(1)), (230, finished(2))]);
    vm.start_task(Time::from_secs(300), back(gang(3, 10, &[1]))).expect("room");
    vm.stop_task(Time::from_secs(300), two, ATTEMPT);
    assert!(vm.promote_task(Time::from_secs(301), TaskId::new(3), ATTEMPT));
    vm.start_task(Time::from_secs(301), back(gang(4, 10, &[1]))).expect("room");
    assert_eq!((speed(&vm, 3), speed(&vm, 4)), (Some(1_000_000), Some(0)));
}

/// Two processes at .2 each use .4 vCPUs; .6 credits a minute are earned.
#[test]
fn a_gang_at_the_baseline_of_a_burstable_vm_freezes_and_thaws() {
    let mut vm = burstable(1);
    vm.start_task(Time::ZERO, ModelTask { mode: Mode::Baseline, ..gang(1, 20, &[0, 1]) })
        .expect("room");
    assert_eq!(speed(&vm, 1), Some(200_000));
    vm.freeze_vm(Time::from_secs(60));
    vm.pass_until(Time::from_secs(500));
    let tenths = |vm: &VmModel| vm.machine().credits().map(|c| c.as_vcpu_micros() / 6_000_000);
    assert_eq!((tenths(&vm), vm.next_at()), (Some(12), None));
    vm.thaw_vm(Time::from_secs(560));
    assert_eq!(run(&mut vm, Time::from_secs(700)), [(600, finished(1))]);
}

/// All processes of a gang are stopped for its checkpoints, which use their vCPUs.
#[test]
fn a_gang_is_checkpointed() {
    let mut vm = burstable(10);
    let checkpoints = vec![Ppm::new(500_000)];
    vm.start_task(Time::ZERO, ModelTask { checkpoints, ..gang(1, 40, &[0, 1]) }).expect("room");
    vm.start_task(Time::ZERO, back(gang(2, 10, &[1]))).expect("room");
    let (task, attempt, memory) = (TaskId::new(1), ATTEMPT, Bytes::ZERO);
    let checkpointed = WorkEvent::Checkpointed { task, attempt, done: Ppm::new(500_000), memory };
    assert_eq!(run(&mut vm, Time::from_secs(29)), []);
    assert_eq!(speed(&vm, 2), Some(0));
    let events = run(&mut vm, Time::from_secs(70));
    assert_eq!(events, [(30, checkpointed), (50, finished(1)), (60, finished(2))]);
    // 100 + 10 vCPU-seconds at one credit a minute against .6 a minute.
    let left = vm.machine().credits().map(|c| c.as_vcpu_micros());
    assert_eq!(left, Some(600_000_000 - 110_000_000 + 36_000_000));
}

#[test]
fn a_vcpu_has_a_share_of_a_real_processor() {
    let mut vm = regular();
    vm.start_task(Time::ZERO, gang(1, 100, &[0, 1])).expect("room");
    vm.start_task(Time::ZERO, back(gang(2, 100, &[0]))).expect("room");
    vm.set_supply(Time::from_secs(10), 0, Ppm::new(500_000));
    assert_eq!((speed(&vm, 1), speed(&vm, 2)), (Some(500_000), Some(0)));
    vm.set_supply(Time::from_secs(30), 0, Ppm::ZERO);
    assert_eq!((speed(&vm, 1), vm.next_at()), (Some(0), None));
    vm.set_supply(Time::from_secs(70), 0, Ppm::ONE);
    assert_eq!(run(&mut vm, Time::from_secs(200)), [(150, finished(1))]);
    let mut vm = burstable(1);
    vm.start_task(Time::ZERO, gang(1, 100, &[0])).expect("room");
    vm.set_supply(Time::ZERO, 0, Ppm::new(500_000));
    vm.pass_until(Time::from_secs(60));
    // One, .6 earned and .5 spent.
    let left = vm.machine().credits().map(|c| c.as_vcpu_micros());
    assert_eq!(left, Some(66_000_000));
}

#[test]
fn a_supply_that_is_heard_of_late_counts_from_when_it_was_so() {
    let (mut punctual, mut late) = (regular(), regular());
    for vm in [&mut punctual, &mut late] {
        vm.start_task(Time::ZERO, gang(1, 100, &[0])).expect("room");
    }
    for (at, share) in [(10, 250_000), (40, 900_000), (60, 1_000_000)] {
        let at = Time::from_secs(at);
        punctual.set_supply(at, 0, Ppm::new(share));
        late.set_supply_since(at + Span::from_secs(3), at, 0, Ppm::new(share));
    }
    let until = Time::from_secs(500);
    let ended = run(&mut punctual, until);
    // 10 + 7.5 + 18 by then.
    assert_eq!(ended, [(124, finished(1))]);
    assert_eq!(run(&mut late, until), ended);
}
