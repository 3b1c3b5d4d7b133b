//! Impossible decisions are refused, and change nothing.

use super::*;

#[test]
fn decisions_that_cannot_be_are_refused_and_change_nothing() {
    let stop = |task, keep| Decision::Stop { task, vm: vm(1), keep };
    let bad = [
        ("not running", start(T0, 1, StartReason::Planned)),
        ("no vm9", start(T0, 9, StartReason::Planned)),
        ("not on", stop(T0, false)),
        ("no vm9", Decision::Terminate { vm: vm(9), reason: None }),
    ];
    let script = Script::default();
    script.on(
        Notice::Begin,
        std::iter::once(launch(1, Market::OnDemand)).chain(bad.clone().map(|b| b.1)),
    );
    let good = [start(T0, 1, StartReason::Planned)];
    let worse = [
        ("no free vCPU", start(T1, 1, StartReason::Planned)),
        ("no task7", start(TaskId::new(7), 1, StartReason::Planned)),
    ];
    script.on(Notice::VmReady { vm: vm(1) }, good.into_iter().chain(worse.clone().map(|b| b.1)));
    let mut run = Run::new(setup(vec![]), Box::new(script));
    let offer = ResourceVector::new(100, Bytes::new(10_000));
    run.handle_event(s(0), Event::HostJoined { host: HOST, name: "h".into(), offer });
    let check = |step: &Step, expected: &[(&str, Decision)]| {
        let whys: Vec<_> = step
            .effects
            .iter()
            .filter_map(|e| {
                if let Effect::Rejected { why, .. } = e { Some(why.as_str()) } else { None }
            })
            .collect();
        assert_eq!(whys.len(), expected.len(), "{whys:?}");
        for (why, (part, _)) in whys.iter().zip(expected) {
            assert!(why.contains(part), "{why:?} should say {part:?}");
        }
    };
    let (step, _) = run.handle_event(s(0), Event::Begin);
    check(&step, &bad);
    up(&mut run, 1);
    let (step, commands) = run.handle_event(s(60), Event::Tick);
    check(&step, &worse);
    assert_eq!(commands.len(), 1);
    assert_eq!(run.counts().rejected, 6);
}

#[test]
fn refused_launches_are_heard_of() {
    let script = Script::default();
    script.on(Notice::Begin, (1..=3).map(|n| launch(n, Market::Spot)));
    let mut run = Run::new(setup(vec![]), Box::new(script));
    let offer = ResourceVector::new(100, Bytes::new(10_000));
    run.handle_event(s(0), Event::HostJoined { host: HOST, name: "h".into(), offer });
    let (step, _) = run.handle_event(s(0), Event::Begin);
    assert!(
        matches!(&step.notices[..], [Notice::Begin, Notice::LaunchRefused { vm: refused, why, .. }]
        if *refused == vm(3) && why.contains("limit of 2 spot small"))
    );
}

/// Test policy that at the beginning requests wake-ups at an earlier time and at once, and another whenever it is
/// woken.
#[derive(Debug)]
struct Sleepless;

impl Policy for Sleepless {
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            match notice {
                Notice::Begin => out.extend([now, s(1)].map(|at| Decision::Wake { at, token: 0 })),
                Notice::Wake { token } => out.push(Decision::Wake { at: now, token: *token }),
                _ => {}
            }
        }
    }
}

#[test]
fn a_wake_up_that_is_not_after_now_is_refused() {
    let mut run = Run::new(setup(vec![]), Box::new(Sleepless));
    let (mut now, mut ticks) = (s(2), 0);
    run.handle_event(now, Event::Begin);
    // As a clock would: at each wake-up, and never backwards.
    while let Some(at) = run.next_wakeup().filter(|_| ticks < 100) {
        now = now.max(at);
        run.handle_event(now, Event::Tick);
        ticks += 1;
    }
    assert_eq!((ticks, run.counts().rejected), (0, 2));
}

#[test]
fn a_stop_that_nobody_asked_for_is_a_failure_and_one_that_was_asked_for_is_a_stop() {
    for is_asked in [false, true] {
        let script = Script::default();
        script
            .on(Notice::Begin, [launch(1, Market::OnDemand)])
            .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)]);
        if is_asked {
            let stop = Decision::Stop { task: T0, vm: vm(1), keep: true };
            script.on(Notice::Credits { vm: vm(1), balance: Credits::ZERO }, [stop]);
        }
        let mut run = begun(&script, vec![]);
        up(&mut run, 1);
        run.handle_event(s(60), Event::Tick);
        let balance = Credits::ZERO;
        tell(&mut run, 70, Report::Credits { vm: vm(1), balance, as_of: None });
        let (task_id, attempt) = (T0, FIRST);
        let stopped =
            Report::TaskStopped { vm: vm(1), task: task_id, attempt, kept: None, real_cpu_us: 7 };
        let (step, _) = tell(&mut run, 80, stopped);
        let failed = run.counts().attempts_failed;
        match &step.notices[..] {
            [Notice::TaskStopped { task: T0, .. }] => assert_eq!((is_asked, failed), (true, 0)),
            [Notice::TaskFailed { task: T0, why, .. }] => {
                assert_eq!((is_asked, failed), (false, 1));
                assert!(why.contains("nobody had asked"), "{why}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(task(&run, 0).state, TaskState::Waiting);
    }
}
