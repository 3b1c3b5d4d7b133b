use dormouse_units::{Bytes, Cpus, Mode, Ppm, Span, Tier};

use super::*;

const HOST: HostId = HostId::new(3);
const VM: VmId = VmId::new(7);
const WITHIN: Duration = Duration::from_secs(10);

fn start(task: u32, memory: u64) -> Command {
    Command::StartTask(dormouse_model::TaskStart {
        host: HOST,
        seats: Seats::first_free(VM),
        task: TaskId::new(task),
        attempt: Attempt::new(1),
        memory: Bytes::new(memory),
        runtime: Span::from_secs(1),
        from: None,
        from_attempt: Attempt::new(1),
        checkpoints: Vec::new(),
        checkpoint_cost: Span::ZERO,
        mode: Mode::Burst,
        job: None,
    })
}

fn started(task: u32) -> Report {
    let (task, attempt, done) = (TaskId::new(task), Attempt::new(1), Ppm::ZERO);
    Report::TaskStarted { vm: VM, task, attempt, done, real_took_us: 1, real_inputs_us: 0 }
}

fn failed(task: u32) -> Report {
    let (task, attempt, why) = (TaskId::new(task), Attempt::new(1), String::new());
    Report::TaskFailed { vm: VM, task, attempt, why, real_cpu_us: 0, could_not_restore: false }
}

fn heard(all: &mut Outstanding, report: &Report, began: Option<&Seats>) {
    all.heard(HOST, report, began, Time::ZERO);
}

/// Returns the number of looks, one second apart, after which the worker is given up, and the reason; `None`: not
/// within `most` looks.
fn given_up(all: &mut Outstanding, most: u32) -> Option<(u32, String)> {
    (1..=most).find_map(|n| {
        let (host, why) = all.look(Duration::from_secs(1), WITHIN).pop()?;
        assert_eq!(host, HOST);
        Some((n, why))
    })
}

#[test]
fn a_command_without_an_answer_is_noticed_in_time() {
    for command in [
        Command::FreezeVm { host: HOST, vm: VM },
        Command::ThawVm { host: HOST, vm: VM },
        Command::DestroyVm { host: HOST, vm: VM },
    ] {
        let mut all = Outstanding::default();
        all.order(&command, Time::ZERO);
        let (after, why) = given_up(&mut all, 99).expect("nobody answers");
        assert_eq!(after, 11, "{command:?}");
        assert!(why.contains("vm7 and has not answered for 10 s"), "{why}");
    }
}

#[test]
fn an_answered_command_is_no_longer_waited_for() {
    let freeze = Command::FreezeVm { host: HOST, vm: VM };
    let mut all = Outstanding::default();
    all.order(&freeze, Time::ZERO);
    assert_eq!(given_up(&mut all, 8), None);
    heard(&mut all, &Report::VmFrozen { vm: VM, real_took_us: 1 }, None);
    assert_eq!(given_up(&mut all, 99), None);
    // Nor what a host that is gone was told.
    all.order(&freeze, Time::ZERO);
    all.forget(HOST);
    assert_eq!(given_up(&mut all, 99), None);
}

#[test]
fn a_start_may_take_as_long_as_all_tasks_of_its_worker_take_at_criu() {
    let mut all = Outstanding::default();
    all.order(&start(1, 0), Time::ZERO);
    heard(&mut all, &started(1), None);
    all.order(&start(2, 100 << 20), Time::ZERO);
    // Ten seconds, a minute for either task, a second for each of 100 MiB.
    let (after, why) = given_up(&mut all, 999).expect("it never starts");
    assert_eq!(after, 231);
    assert!(why.contains("start task2"), "{why}");
    // What comes to an end unasked is an answer, too, and takes no turn any more.
    heard(&mut all, &failed(2), None);
    assert_eq!(given_up(&mut all, 999), None);
    heard(&mut all, &failed(1), None);
    all.order(&Command::FreezeVm { host: HOST, vm: VM }, Time::ZERO);
    assert_eq!(given_up(&mut all, 99).map(|(after, _)| after), Some(11));
}

#[test]
fn what_is_to_happen_on_a_frozen_vm_waits_for_its_thaw() {
    let mut all = Outstanding::default();
    all.order(&start(1, 0), Time::ZERO);
    all.order(&Command::FreezeVm { host: HOST, vm: VM }, Time::ZERO);
    heard(&mut all, &Report::VmFrozen { vm: VM, real_took_us: 1 }, None);
    assert_eq!(given_up(&mut all, 9_999), None);
    all.order(&Command::ThawVm { host: HOST, vm: VM }, Time::ZERO);
    heard(&mut all, &Report::VmThawed { vm: VM, real_took_us: 1 }, None);
    assert_eq!(given_up(&mut all, 999).map(|(after, _)| after), Some(71));
}

#[test]
fn a_stop_is_answered_by_any_end_of_the_attempt() {
    let stop = Command::StopTask {
        host: HOST,
        vm: VM,
        task: TaskId::new(1),
        attempt: Attempt::new(1),
        keep: true,
    };
    let mut all = Outstanding::default();
    all.order(&start(1, 0), Time::ZERO);
    heard(&mut all, &started(1), None);
    all.order(&stop, Time::ZERO);
    let (after, why) = given_up(&mut all, 999).expect("it never stops");
    assert!(after == 71 && why.contains("stop task1"), "{after}: {why}");
    heard(&mut all, &failed(1), None);
    assert_eq!(given_up(&mut all, 999), None);
    // It crossed with that.
    all.order(&stop, Time::ZERO);
    assert_eq!(given_up(&mut all, 999), None);
}

#[test]
fn a_move_that_overtakes_a_start_is_owed_until_it_is_done() {
    let (task, attempt) = (TaskId::new(1), Attempt::new(1));
    let to: Cpus = [2, 3].into_iter().collect();
    let seats = |tier, cpus: [u32; 2]| Seats { vm: VM, tier, cpus: cpus.into_iter().collect() };
    let orders = [
        Command::MoveTask { host: HOST, vm: VM, task, attempt, on: to },
        Command::PromoteTask { host: HOST, vm: VM, task, attempt },
    ];
    // Where it has begun, and whether that is where it was told to go.
    for (began, order, is_done) in [
        (None, 0, true),
        (Some(seats(Tier::Foreground, [2, 3])), 0, true),
        (Some(seats(Tier::Foreground, [0, 1])), 0, false),
        (Some(seats(Tier::Background, [2, 3])), 0, false),
        (Some(seats(Tier::Foreground, [0, 1])), 1, true),
        (Some(seats(Tier::Background, [0, 1])), 1, false),
    ] {
        let mut all = Outstanding::default();
        all.order(&start(1, 0), Time::ZERO);
        all.order(&orders[order], Time::ZERO);
        heard(&mut all, &started(1), began.as_ref());
        assert_eq!(given_up(&mut all, 999).is_none(), is_done, "{began:?} {order}");
    }
}

#[test]
fn of_a_vm_that_is_destroyed_only_that_is_waited_for() {
    let mut all = Outstanding::default();
    all.order(&start(1, 0), Time::ZERO);
    all.order(&Command::DestroyVm { host: HOST, vm: VM }, Time::ZERO);
    heard(&mut all, &Report::VmDestroyed { vm: VM }, None);
    assert_eq!(given_up(&mut all, 999), None);
}

#[test]
fn a_vm_is_there_until_the_run_has_heard_of_its_end_and_its_host_is_known_for_ever() {
    let mut all = Outstanding::default();
    let create = Command::CreateVm {
        host: HOST,
        vm: VM,
        kind: "a".into(),
        market: dormouse_cloud::Market::Spot,
        vcpus: 2,
        memory: Bytes::ZERO,
        burstable: None,
        two_tier: false,
    };
    all.order(&create, Time::ZERO);
    all.order(&Command::DestroyVm { host: HOST, vm: VM }, Time::ZERO);
    heard(&mut all, &Report::VmDestroyed { vm: VM }, None);
    assert_eq!((all.vms(), all.host_of(VM)), (1, Some(HOST)), "it waits for its turn");
    all.destroyed(HOST, VM);
    assert_eq!((all.vms(), all.host_of(VM)), (0, Some(HOST)));
    all.order(&create, Time::ZERO);
    all.forget(HOST);
    assert_eq!((all.vms(), all.host_of(VM)), (0, Some(HOST)));
}

#[test]
fn what_a_lost_worker_was_told_is_not_under_way() {
    let (mut all, other, s) = (Outstanding::default(), HostId::new(4), Time::from_secs);
    all.order(&Command::FreezeVm { host: HOST, vm: VM }, s(3));
    all.order(&Command::ThawVm { host: other, vm: VmId::new(8) }, s(5));
    assert_eq!(all.under_way_since(s(1)), Some(s(3)));
    all.forget(HOST);
    assert_eq!(all.under_way_since(s(1)), Some(s(5)));
}

#[test]
fn nobody_waits_for_what_takes_its_time() {
    let (task, attempt, s) = (TaskId::new(1), Attempt::new(1), Time::from_secs);
    let stop = |keep| Command::StopTask { host: HOST, vm: VM, task, attempt, keep };
    for (two_tier, keep, since) in
        [(false, false, Some(s(3))), (false, true, None), (true, false, None)]
    {
        let mut all = Outstanding::default();
        all.order(&start(1, 0), s(1));
        all.on_vm(HOST, VM).expect("a task is on it").is_two_tier = two_tier;
        all.order(&stop(keep), s(3));
        assert_eq!(all.under_way_since(s(1)), since, "{two_tier} {keep}");
        let report = Report::TaskStopped { vm: VM, task, attempt, kept: None, real_cpu_us: 0 };
        heard(&mut all, &report, None);
        assert_eq!(all.under_way_since(s(1)), None);
    }
}
