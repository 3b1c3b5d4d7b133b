//! The engine with a scheduler that follows a script: which decisions and reports the engine refuses or ignores, its
//! notices and its charges.

mod asked_checkpoints;
mod hibernated_boots;
mod refused;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dormouse_cloud::{
    Catalogue, InstanceType, Interruption, InterruptionAction, InterruptionModel,
    InterruptionTarget, Market, ProviderTerms, ResourceVector, VmLimits,
};
use dormouse_engine::{Run, TaskState};
use dormouse_model::{
    Bag, CheckpointConfig, CheckpointOn, CheckpointScheme, Command, Decision, Effect, Event,
    Notice, Report, Setup, StartReason, Step, Task, VmEnd,
};
use dormouse_policies::Policy;
use dormouse_units::{
    Attempt, Bytes, CheckpointSeq, Credits, HostId, Mode, Money, Ppm, Price, Seats, Span, TaskId,
    Time, VmId,
};

/// Test policy that answers each notice with the decisions that the test has set for it.
#[derive(Debug, Default, Clone)]
struct Script(Arc<Mutex<Vec<Answer>>>);

type Answer = (Notice, Vec<Decision>);

impl Script {
    fn on(&self, notice: Notice, decisions: impl IntoIterator<Item = Decision>) -> &Self {
        self.0.lock().expect("unpoisoned").push((notice, decisions.into_iter().collect()));
        self
    }
}

impl Policy for Script {
    fn handle(&mut self, _: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        let mut script = self.0.lock().expect("unpoisoned");
        for notice in heard {
            if let Some(place) = script.iter().position(|(on, _)| on == notice) {
                out.extend(script.remove(place).1);
            }
        }
    }
}

const HOST: HostId = HostId::new(0);
const T0: TaskId = TaskId::new(0);
const T1: TaskId = TaskId::new(1);
const FIRST: Attempt = Attempt::new(1);
const SECOND: Attempt = Attempt::new(2);

fn task(run: &Run, n: u32) -> &dormouse_engine::TaskRecord {
    run.tasks().get(TaskId::new(n)).expect("it is there")
}

fn vm(n: u32) -> VmId {
    VmId::new(n)
}

fn s(secs: u64) -> Time {
    Time::from_secs(secs)
}

fn setup(interruptions: Vec<InterruptionModel>) -> Setup {
    let kind = InstanceType {
        name: "small".into(),
        vcpus: 1,
        memory: Bytes::new(100),
        disk: Bytes::ZERO,
        mflops: 1,
        on_demand: Some(Price::from_nanos_per_hour(3_600_000)),
        spot: Some(Price::from_nanos_per_hour(360_000)),
        limits: VmLimits { spot: 2, on_demand: 2 },
        burstable: None,
    };
    let runtime = BTreeMap::from([(kind.name.clone(), Span::from_secs(100))]);
    let task = |name: &str, memory| Task {
        name: name.into(),
        memory: Bytes::new(memory),
        runtime: runtime.clone(),
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    Setup {
        seed: 1,
        catalogue: Catalogue {
            types: [(kind.name.clone(), kind)].into(),
            boot: Span::from_secs(60),
            hibernation: Span::from_secs(30),
        },
        bag: Bag { tasks: [task("a", 40), task("b", 80)].into(), deadline: Span::from_secs(1_000) },
        checkpoint: CheckpointConfig {
            scheme: CheckpointScheme::Budget(Ppm::new(100_000)),
            fixed: Span::from_secs(10),
            per_megabyte: Span::ZERO,
            on: dormouse_model::CheckpointOn::All,
            ..CheckpointConfig::NONE
        },
        interruptions,
        preemption_notice: Span::from_secs(120),
        terms: ProviderTerms::default(),
        noise: None,
        jobs: None,
        requests: false,
    }
}

fn launch(n: u32, market: Market) -> Decision {
    Decision::Launch { vm: vm(n), kind: "small".into(), market, bid: None }
}

fn start(task: TaskId, n: u32, reason: StartReason) -> Decision {
    Decision::Start { task, on: Seats::first_free(vm(n)), mode: Mode::Burst, reason }
}

fn acts(acts: &[(u64, InterruptionAction)]) -> Vec<InterruptionModel> {
    let acts = acts
        .iter()
        .map(|&(at, action)| Interruption {
            at: s(at),
            target: InterruptionTarget::Type("small".into()),
            action,
        })
        .collect();
    vec![InterruptionModel::Schedule { acts }]
}

/// Makes a run that has begun, with one host of ample room; the test plays the host's machines.
fn begun(script: &Script, interruptions: Vec<InterruptionModel>) -> Run {
    begun_of(script, setup(interruptions))
}

/// Makes a run that has begun, with this setup and one host of ample room.
fn begun_of(script: &Script, setup: Setup) -> Run {
    let mut run = Run::new(setup, Box::new(script.clone()));
    let offer = ResourceVector::new(100, Bytes::new(10_000));
    run.handle_event(s(0), Event::HostJoined { host: HOST, name: "h".into(), offer });
    run.handle_event(s(0), Event::Begin);
    run
}

fn tell(run: &mut Run, at: u64, report: Report) -> (Step, Vec<Command>) {
    run.handle_event(s(at), Event::Machine { host: HOST, number: 0, report })
}

/// Reports that VM `n` is created; it has booted by 60 s.
fn up(run: &mut Run, n: u32) {
    tell(run, 1, Report::VmCreated { vm: vm(n) });
}

fn finished(n: u32, task: TaskId, attempt: Attempt) -> Report {
    Report::TaskFinished {
        vm: vm(n),
        task,
        attempt,
        verified: true,
        reported: false,
        program_failed: false,
        result: None,
        real_cpu_us: 7,
    }
}

fn taken(n: u32, task: TaskId, attempt: Attempt, done: u32) -> Report {
    Report::CheckpointTaken {
        vm: vm(n),
        task,
        attempt,
        checkpoint: CheckpointSeq::new(1),
        done: Ppm::new(done),
        bytes: Bytes::new(1),
        real_held_us: 0,
        real_dump_us: 0,
        real_owed_us: 0,
        held_at: None,
        real_criu_us: 0,
    }
}

/// The provider never takes an on-demand VM away, so its tasks need no checkpoints.
#[test]
fn checkpoints_are_taken_where_work_can_be_lost() {
    for (on, counts) in [(CheckpointOn::Spot, [1, 0]), (CheckpointOn::All, [1, 1])] {
        let script = Script::default();
        script
            .on(Notice::Begin, [launch(1, Market::Spot), launch(2, Market::OnDemand)])
            .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)])
            .on(Notice::VmReady { vm: vm(2) }, [start(T1, 2, StartReason::Planned)]);
        let mut setup = setup(vec![]);
        setup.checkpoint.on = on;
        let mut run = begun_of(&script, setup);
        up(&mut run, 1);
        up(&mut run, 2);
        let (_, commands) = run.handle_event(s(60), Event::Tick);
        let count = |c: &Command| match c {
            Command::StartTask(start) => Some(start.checkpoints.len()),
            _ => None,
        };
        assert_eq!(commands.iter().filter_map(count).collect::<Vec<_>>(), counts);
    }
}

#[test]
fn a_task_is_not_started_before_it_is_submitted() {
    for (at, is_there) in [(59, true), (60, true), (61, false)] {
        let script = Script::default();
        script
            .on(Notice::Begin, [launch(1, Market::OnDemand)])
            .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)]);
        let mut setup = setup(vec![]);
        let tasks = setup.bag.tasks.iter().cloned();
        setup.bag.tasks = tasks.map(|t| Task { submitted: Span::from_secs(at), ..t }).collect();
        let mut run = begun_of(&script, setup);
        up(&mut run, 1);
        let (step, commands) = run.handle_event(s(60), Event::Tick);
        assert_eq!(matches!(&commands[..], [Command::StartTask(_)]), is_there, "{at}");
        let is_rejected =
            |e: &Effect| matches!(e, Effect::Rejected { why, .. } if why.contains("submitted at"));
        assert_eq!(step.effects.iter().any(is_rejected), !is_there, "{at}");
    }
}

#[test]
fn a_task_that_follows_another_is_due_at_its_end() {
    let script = Script::default();
    let early = [start(T1, 1, StartReason::Planned), start(T0, 1, StartReason::Planned)];
    script
        .on(Notice::Begin, [launch(1, Market::OnDemand)])
        .on(Notice::VmReady { vm: vm(1) }, early)
        .on(Notice::TaskDue { task: T1 }, [start(T1, 1, StartReason::Due)]);
    let mut setup = setup(vec![]);
    let tasks = setup.bag.tasks.iter().cloned();
    let after = |(n, task): (usize, Task)| Task { after: [T0][..n].to_vec(), ..task };
    setup.bag.tasks = tasks.enumerate().map(after).collect();
    let mut run = begun_of(&script, setup);
    up(&mut run, 1);
    let (step, commands) = run.handle_event(s(60), Event::Tick);
    assert!(matches!(&commands[..], [Command::StartTask(t)] if t.task == T0));
    let is_rejected = |e: &Effect| matches!(e, Effect::Rejected { why, .. } if why == "task1 follows task0, which is not done");
    assert!(step.effects.iter().any(is_rejected), "{:?}", step.effects);
    let (step, commands) = tell(&mut run, 160, finished(1, T0, FIRST));
    // Who gives idle VMs back hears first that there is more to do.
    let heard = [Notice::TaskDue { task: T1 }, Notice::TaskFinished { task: T0, vm: vm(1) }];
    assert_eq!(step.notices, heard);
    assert!(matches!(&commands[..], [Command::StartTask(t)] if t.task == T1));
}

#[test]
fn a_task_that_follows_another_waits_for_its_submission_too() {
    let script = Script::default();
    script
        .on(Notice::Begin, [launch(1, Market::OnDemand)])
        .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)]);
    let mut setup = setup(vec![]);
    let mut tasks = setup.bag.tasks.to_vec();
    (tasks[1].after, tasks[1].submitted) = (vec![T0], Span::from_secs(200));
    setup.bag.tasks = tasks.into();
    let mut run = begun_of(&script, setup);
    up(&mut run, 1);
    run.handle_event(s(60), Event::Tick);
    let (step, _) = tell(&mut run, 160, finished(1, T0, FIRST));
    assert_eq!(step.notices, [Notice::TaskFinished { task: T0, vm: vm(1) }]);
    assert_eq!(run.next_wakeup(), Some(s(200)));
    let (step, _) = run.handle_event(s(200), Event::Tick);
    assert_eq!(step.notices, [Notice::TaskDue { task: T1 }]);
}

#[test]
fn a_run_from_launch_to_bill() {
    let script = Script::default();
    script
        .on(Notice::Begin, [launch(1, Market::OnDemand)])
        .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)])
        .on(Notice::TaskFinished { task: T0, vm: vm(1) }, [start(T1, 1, StartReason::Planned)]);
    let mut run = begun(&script, vec![]);
    up(&mut run, 1);
    assert_eq!(run.next_wakeup(), Some(s(60)));
    let (_, commands) = run.handle_event(s(60), Event::Tick);
    assert!(matches!(&commands[..], [Command::StartTask(t)] if t.task == T0 && t.attempt == FIRST));
    tell(&mut run, 160, finished(1, T0, FIRST));
    assert_eq!(run.makespan(), None);
    let (step, commands) = tell(&mut run, 260, finished(1, T1, FIRST));
    assert_eq!(step.effects.last(), Some(&Effect::Over { complete: true }));
    assert_eq!(commands, [Command::DestroyVm { host: HOST, vm: vm(1) }]);
    assert_eq!(
        (run.makespan(), run.over_at(), run.next_wakeup()),
        (Some(s(260)), Some(s(260)), None)
    );
    // 200 s from the end of the boot at 3.6 m$/h.
    assert_eq!(run.owed_now(s(9_999)), Money::from_nanos(200_000));
    assert_eq!(run.counts().rejected, 0);
}

#[test]
fn a_hibernated_vms_task_goes_on_elsewhere_from_its_checkpoint_and_its_former_life_is_dropped() {
    let script = Script::default();
    script
        .on(Notice::Begin, [launch(1, Market::Spot), launch(2, Market::OnDemand)])
        .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)])
        .on(
            Notice::VmHibernated { vm: vm(1) },
            [
                Decision::Stop { task: T0, vm: vm(1), keep: false },
                start(T0, 2, StartReason::Migrated),
            ],
        );
    let mut run = begun(&script, acts(&[(130, InterruptionAction::Hibernate)]));
    up(&mut run, 1);
    up(&mut run, 2);
    run.handle_event(s(60), Event::Tick);
    let (vm_1, done) = (vm(1), Ppm::ZERO);
    let began = Report::TaskStarted {
        vm: vm_1,
        task: T0,
        attempt: FIRST,
        done,
        real_took_us: 0,
        real_inputs_us: 0,
    };
    tell(&mut run, 61, began);
    tell(&mut run, 120, taken(1, T0, FIRST, 500_000));
    assert_eq!(run.next_wakeup(), Some(s(130)));
    let (step, commands) = run.handle_event(s(131), Event::Tick);
    assert_eq!(commands, [Command::FreezeVm { host: HOST, vm: vm(1) }]);
    assert_eq!(step.notices, [Notice::VmHibernating { vm: vm(1) }]);
    let (step, commands) = tell(&mut run, 133, Report::VmFrozen { vm: vm(1), real_took_us: 9 });
    assert!(step.effects.contains(&Effect::VmHibernated { vm: vm(1), asked: s(130) }));
    let kept = Some((CheckpointSeq::new(1), Ppm::new(500_000)));
    assert!(matches!(&commands[..],
        [Command::StopTask { attempt: FIRST, keep: false, .. }, Command::StartTask(t)]
        if t.from == kept && t.from_attempt == FIRST && t.attempt == SECOND && t.seats.vm == vm(2)));
    // The former life thaws, and reports that it has finished.
    let (step, _) = tell(&mut run, 140, finished(1, T0, FIRST));
    assert_eq!((step.effects, step.notices), (vec![Effect::Stale], vec![]));
    assert_eq!(task(&run, 0).state, TaskState::Sent(vm(2)));
    let counted = |run: &Run| {
        let counts = run.counts();
        (counts.hibernations, counts.migrations, counts.restores)
    };
    assert_eq!(counted(&run), (1, 1, 0), "it is sent, but has not begun");
    let done = Ppm::new(500_000);
    let began = Report::TaskStarted {
        vm: vm(2),
        task: T0,
        attempt: SECOND,
        done,
        real_took_us: 0,
        real_inputs_us: 0,
    };
    tell(&mut run, 141, began);
    assert_eq!(counted(&run), (1, 1, 1));
    // Charged from 60 to 133 s only.
    let spot = run.provider().find_vm(vm(1)).expect("it");
    assert_eq!(spot.owed_at(s(500)), Money::from_nanos(7_300));
}

#[test]
fn all_hibernations_of_an_instant_are_heard_of_before_the_first_is_decided_on() {
    let script = Script::default();
    script.on(Notice::Begin, [launch(1, Market::Spot), launch(2, Market::Spot)]);
    let mut run = begun(&script, acts(&[(130, InterruptionAction::Hibernate)]));
    up(&mut run, 1);
    up(&mut run, 2);
    run.handle_event(s(60), Event::Tick);
    let (step, _) = run.handle_event(s(130), Event::Tick);
    assert_eq!(step.notices, [1, 2].map(|n| Notice::VmHibernating { vm: vm(n) }));
    let (step, _) = tell(&mut run, 130, Report::VmFrozen { vm: vm(1), real_took_us: 9 });
    assert_eq!(step.notices, [Notice::VmHibernated { vm: vm(1) }]);
}

#[test]
fn what_somebody_asks_of_the_provider_it_does_as_what_it_does_by_itself() {
    let begun = |interruptions| {
        let script = Script::default();
        script.on(Notice::Begin, [launch(1, Market::Spot), launch(2, Market::OnDemand)]);
        begun(&script, interruptions)
    };
    let target = || InterruptionTarget::Type("small".into());
    let ask = |action| Event::Interrupt { target: target(), action, why: "to see".to_owned() };
    let mut own =
        begun(acts(&[(130, InterruptionAction::Hibernate), (200, InterruptionAction::Preempt)]));
    let mut asked = begun(Vec::new());
    for run in [&mut own, &mut asked] {
        up(run, 1);
        up(run, 2);
        run.handle_event(s(60), Event::Tick);
    }
    for (at, action) in [(130, InterruptionAction::Hibernate), (200, InterruptionAction::Preempt)] {
        let (by_itself, commands) = own.handle_event(s(at), Event::Tick);
        let (on_demand, same) = asked.handle_event(s(at), ask(action));
        assert_eq!((by_itself.effects, by_itself.notices), (on_demand.effects, on_demand.notices));
        assert!(!commands.is_empty() || action == InterruptionAction::Preempt);
        assert_eq!(commands, same);
        for run in [&mut own, &mut asked] {
            tell(run, at + 1, Report::VmFrozen { vm: vm(1), real_took_us: 9 });
        }
    }
    // What fits nothing is in the log, and nothing comes of it.
    let (step, commands) = asked.handle_event(s(210), ask(InterruptionAction::Rebalance));
    assert!(
        matches!(&step.effects[..], [Effect::Interrupted { vms, .. }] if vms.is_empty()),
        "{step:?}"
    );
    assert_eq!((commands, step.notices), (vec![], vec![]));
}

/// No VM is hibernated while it boots, and the log says that the provider meant to hibernate one.
#[test]
fn a_vm_that_boots_is_left_by_a_hibernation_and_ended_by_a_preemption() {
    let script = Script::default();
    script.on(Notice::Begin, [launch(1, Market::Spot), launch(2, Market::OnDemand)]);
    let mut run = begun(
        &script,
        acts(&[(10, InterruptionAction::Hibernate), (20, InterruptionAction::Preempt)]),
    );
    up(&mut run, 1);
    let act = |at, action, vms, left| Effect::Interrupted {
        asked: s(at),
        action,
        target: InterruptionTarget::Type("small".into()),
        vms,
        left,
    };
    let (step, commands) = run.handle_event(s(10), Event::Tick);
    assert_eq!(step.effects, [act(10, InterruptionAction::Hibernate, vec![], vec![vm(1)])]);
    assert_eq!(commands, []);
    let (step, commands) = run.handle_event(s(20), Event::Tick);
    assert!(step.effects.contains(&act(20, InterruptionAction::Preempt, vec![vm(1)], vec![])));
    assert_eq!(step.notices, [Notice::VmLost { vm: vm(1) }]);
    assert_eq!(commands, [Command::DestroyVm { host: HOST, vm: vm(1) }]);
    assert_eq!((run.counts().preemptions, run.owed_now(s(20))), (1, Money::ZERO));
}

#[test]
fn what_is_sent_to_a_vm_that_freezes_waits_for_its_resume() {
    let script = Script::default();
    script
        .on(Notice::Begin, [launch(1, Market::Spot), Decision::Wake { at: s(131), token: 1 }])
        .on(
            Notice::Wake { token: 1 },
            [
                start(T0, 1, StartReason::Planned),
                Decision::Stop { task: T0, vm: vm(1), keep: false },
            ],
        )
        .on(Notice::VmHibernated { vm: vm(1) }, [start(T1, 1, StartReason::Planned)]);
    let mut run = begun(
        &script,
        acts(&[(130, InterruptionAction::Hibernate), (200, InterruptionAction::Resume)]),
    );
    up(&mut run, 1);
    run.handle_event(s(60), Event::Tick);
    run.handle_event(s(130), Event::Tick);
    let (step, commands) = run.handle_event(s(131), Event::Tick);
    assert_eq!(commands, [], "nothing is started on it, and nothing stopped: {step:?}");
    let (step, _) = tell(&mut run, 133, Report::VmFrozen { vm: vm(1), real_took_us: 9 });
    assert!(matches!(step.effects.last(), Some(Effect::Rejected { .. })), "it has heard of it");
    run.handle_event(s(200), Event::Tick);
    let (_, commands) = tell(&mut run, 201, Report::VmThawed { vm: vm(1), real_took_us: 9 });
    assert_eq!(commands, [], "what was stopped before does not start");
}

#[test]
fn what_is_sent_to_a_vm_that_freezes_starts_at_its_resume() {
    let script = Script::default();
    script
        .on(Notice::Begin, [launch(1, Market::Spot), Decision::Wake { at: s(131), token: 1 }])
        .on(Notice::Wake { token: 1 }, [start(T0, 1, StartReason::Planned)]);
    let mut run = begun(
        &script,
        acts(&[(130, InterruptionAction::Hibernate), (200, InterruptionAction::Resume)]),
    );
    up(&mut run, 1);
    run.handle_event(s(60), Event::Tick);
    run.handle_event(s(130), Event::Tick);
    run.handle_event(s(131), Event::Tick);
    tell(&mut run, 133, Report::VmFrozen { vm: vm(1), real_took_us: 9 });
    run.handle_event(s(200), Event::Tick);
    let (_, commands) = tell(&mut run, 201, Report::VmThawed { vm: vm(1), real_took_us: 9 });
    assert!(matches!(&commands[..], [Command::StartTask(t)] if t.task == T0 && t.attempt == FIRST));
}

#[test]
fn what_was_overtaken_is_nobodys_fault() {
    let script = Script::default();
    script
        .on(Notice::Begin, [launch(1, Market::OnDemand)])
        .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)])
        .on(
            Notice::VmLost { vm: vm(1) },
            [
                Decision::Stop { task: T0, vm: vm(1), keep: true },
                start(T0, 1, StartReason::Retried),
                Decision::Terminate { vm: vm(1), reason: None },
            ],
        );
    let mut run = begun(&script, vec![]);
    up(&mut run, 1);
    run.handle_event(s(60), Event::Tick);
    let (step, commands) = run
        .handle_event(s(130), Event::HostLost { host: HOST, why: "gone".into(), unheard: false });
    let moot = step.effects.iter().filter(|e| matches!(e, Effect::Moot { .. })).count();
    assert_eq!((moot, run.counts().rejected, commands.len()), (3, 0, 0));
}

#[test]
fn preemption_warns_then_kills() {
    let script = Script::default();
    script
        .on(Notice::Begin, [launch(1, Market::Spot)])
        .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)]);
    let mut run = begun(&script, acts(&[(70, InterruptionAction::Preempt)]));
    up(&mut run, 1);
    run.handle_event(s(60), Event::Tick);
    let (step, _) = run.handle_event(s(70), Event::Tick);
    assert_eq!(step.notices, [Notice::VmPreempting { vm: vm(1), at: s(190) }]);
    let (step, commands) = run.handle_event(s(190), Event::Tick);
    assert_eq!(step.notices, [Notice::VmLost { vm: vm(1) }]);
    assert_eq!(commands, [Command::DestroyVm { host: HOST, vm: vm(1) }]);
    assert_eq!((run.counts().preemptions, task(&run, 0).state), (1, TaskState::Waiting));
}

#[test]
fn a_lost_host_takes_its_vms_and_leaves_the_checkpoints() {
    let script = Script::default();
    script
        .on(Notice::Begin, [launch(1, Market::OnDemand)])
        .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)]);
    let mut run = begun(&script, vec![]);
    up(&mut run, 1);
    run.handle_event(s(60), Event::Tick);
    tell(&mut run, 120, taken(1, T0, FIRST, 400_000));
    let (step, _) = run.handle_event(
        s(130),
        Event::HostLost { host: HOST, why: "silence".into(), unheard: false },
    );
    assert_eq!(step.notices, [Notice::VmLost { vm: vm(1) }]);
    assert!(matches!(step.effects[..], [Effect::VmEnded { why: VmEnd::HostLost, .. }]));
    assert_eq!(task(&run, 0).kept_checkpoint(), Some((CheckpointSeq::new(1), Ppm::new(400_000))));
    assert!(run.is_stuck(), "nothing runs and nothing is to come");
}

#[test]
fn a_wrong_answer_is_a_failed_attempt_and_its_checkpoints_are_not_trusted() {
    let script = Script::default();
    script
        .on(Notice::Begin, [launch(1, Market::OnDemand)])
        .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)]);
    let mut run = begun(&script, vec![]);
    up(&mut run, 1);
    run.handle_event(s(60), Event::Tick);
    tell(&mut run, 100, taken(1, T0, FIRST, 400_000));
    let wrong = Report::TaskFinished {
        vm: vm(1),
        task: T0,
        attempt: FIRST,
        verified: false,
        reported: false,
        program_failed: false,
        result: None,
        real_cpu_us: 5,
    };
    let (step, _) = tell(&mut run, 160, wrong);
    assert!(matches!(step.notices[..], [Notice::TaskFailed { task: T0, .. }]));
    assert_eq!(
        (task(&run, 0).kept_checkpoint(), task(&run, 0).real_cpu_us, run.unfinished_count()),
        (None, 5, 2)
    );
}

#[test]
fn a_log_line_reads_back_as_it_was() {
    let script = Script::default();
    script.on(Notice::Begin, [launch(1, Market::Spot), Decision::Wake { at: s(5), token: 9 }]);
    let mut run = Run::new(setup(acts(&[(70, InterruptionAction::Hibernate)])), Box::new(script));
    let offer = ResourceVector::new(100, Bytes::new(10_000));
    let events = [
        Event::HostJoined { host: HOST, name: "h".into(), offer },
        Event::Begin,
        Event::Machine { host: HOST, number: 0, report: Report::VmCreated { vm: vm(1) } },
        Event::Tick,
        Event::Machine { host: HOST, number: 0, report: taken(1, T0, FIRST, 3) },
        Event::Cancel { why: "enough".into() },
    ];
    for (at, event) in (0..).zip(events) {
        let (step, _) = run.handle_event(s(at * 40), event);
        let line = serde_json::to_string(&step).expect("a step is JSON");
        assert_eq!(serde_json::from_str::<Step>(&line).expect("it reads back"), step, "{line}");
    }
}
