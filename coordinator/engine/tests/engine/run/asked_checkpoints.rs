//! Checkpoints that a policy requests, and a host that was lost while no coordinator ran.

use super::*;

fn checkpoint(task: TaskId, n: u32) -> Decision {
    Decision::Checkpoint { task, vm: vm(n) }
}

fn now_of(task: TaskId) -> Command {
    Command::CheckpointNow { host: HOST, vm: vm(1), task, attempt: FIRST, saved_by: None }
}

/// A checkpoint that a scheduler requests is commanded once its task runs, once until there is an answer, and again
/// after an outage, in which the command or the answer may be lost.
#[test]
fn a_checkpoint_that_is_asked_for_is_passed_on_until_it_is_answered() {
    let script = Script::default();
    let wake = |at| Decision::Wake { at: s(at), token: at };
    let ready = [start(T0, 1, StartReason::Planned), checkpoint(T0, 1), wake(70), wake(90)];
    script
        .on(Notice::Begin, [launch(1, Market::OnDemand)])
        .on(Notice::VmReady { vm: vm(1) }, ready)
        .on(Notice::Wake { token: 70 }, [checkpoint(T0, 1)])
        .on(Notice::Wake { token: 90 }, [checkpoint(T0, 1)]);
    let mut run = begun(&script, vec![]);
    up(&mut run, 1);
    let (step, commands) = run.handle_event(s(60), Event::Tick);
    assert!(matches!(&commands[..], [Command::StartTask(_)]), "it is not running yet: {step:?}");
    let started = Report::TaskStarted {
        vm: vm(1),
        task: T0,
        attempt: FIRST,
        done: Ppm::ZERO,
        real_took_us: 1,
        real_inputs_us: 0,
    };
    let (step, commands) = tell(&mut run, 61, started);
    assert_eq!(commands, [now_of(T0)]);
    let asked = Effect::CheckpointAsked { task: T0, attempt: FIRST, vm: vm(1) };
    assert!(step.effects.contains(&asked), "{step:?}");
    let (_, commands) = run.handle_event(s(70), Event::Tick);
    assert_eq!(commands, [], "the one that is being taken will do");
    let resumed = Event::Resumed { outage: Span::from_secs(9), away_real_us: 9 };
    let (step, commands) = run.handle_event(s(80), resumed);
    assert_eq!((commands, step.effects), (vec![now_of(T0)], vec![asked]));
    tell(&mut run, 85, taken(1, T0, FIRST, 10_000));
    assert_eq!(task(&run, 0).kept_checkpoint(), Some((CheckpointSeq::new(1), Ppm::new(10_000))));
    let (_, commands) = run.handle_event(s(90), Event::Tick);
    assert_eq!(commands, [now_of(T0)]);
    // What comes of it after the task's end is of a former life.
    tell(&mut run, 100, finished(1, T0, FIRST));
    let (step, _) = tell(&mut run, 101, taken(1, T0, FIRST, 20_000));
    assert_eq!(step.effects, [Effect::Stale]);
    assert_eq!((run.counts().rejected, run.counts().checkpoints), (0, 1));
}

/// No coordinator conducted the run when the host was lost: the host's VMs ended then, and schedulers are notified when
/// the run continues, together with the host that has replaced it.
#[test]
fn a_host_that_was_lost_unheard_ends_its_vms_then_and_is_heard_of_later() {
    let script = Script::default();
    script
        .on(Notice::Begin, [launch(1, Market::OnDemand)])
        .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)])
        .on(Notice::VmLost { vm: vm(1) }, [launch(2, Market::OnDemand)]);
    let mut run = begun(&script, vec![]);
    up(&mut run, 1);
    run.handle_event(s(60), Event::Tick);
    let lost = Event::HostLost { host: HOST, why: "gone".into(), unheard: true };
    let (step, commands) = run.handle_event(s(130), lost);
    assert!(matches!(step.effects[..], [Effect::VmEnded { why: VmEnd::HostLost, .. }]), "{step:?}");
    assert_eq!((step.notices, step.decisions, commands), (vec![], vec![], vec![]));
    let owed = run.owed_now(s(130));
    let (host, offer) = (HostId::new(7), ResourceVector::new(100, Bytes::new(10_000)));
    let joined = Event::HostJoined { host, name: "other".into(), offer };
    let (step, commands) = run.handle_event(s(130), joined);
    assert_eq!((step.notices, step.decisions, commands), (vec![], vec![], vec![]));
    let resumed = Event::Resumed { outage: Span::from_secs(170), away_real_us: 9 };
    let (step, commands) = run.handle_event(s(300), resumed);
    assert!(step.notices.contains(&Notice::VmLost { vm: vm(1) }), "{step:?}");
    assert!(
        matches!(commands[..], [Command::CreateVm { host: on, .. }] if on == host),
        "{commands:?}"
    );
    assert_eq!((run.owed_now(s(300)), run.counts().rejected), (owed, 0));
}

#[test]
fn a_checkpoint_of_what_is_not_there_or_does_not_run_is_refused() {
    let script = Script::default();
    let wake = |at| Decision::Wake { at: s(at), token: at };
    script
        .on(Notice::Begin, [launch(1, Market::Spot), wake(130), checkpoint(T0, 1)])
        .on(
            Notice::VmReady { vm: vm(1) },
            [start(T0, 1, StartReason::Planned), checkpoint(T1, 1), checkpoint(T0, 7)],
        )
        .on(Notice::VmHibernating { vm: vm(1) }, [checkpoint(T0, 1)])
        .on(Notice::VmHibernated { vm: vm(1) }, [checkpoint(T0, 1)]);
    let mut run = begun(&script, acts(&[(130, InterruptionAction::Hibernate)]));
    up(&mut run, 1);
    run.handle_event(s(60), Event::Tick);
    assert_eq!(run.counts().rejected, 3, "not started, never started, no such VM");
    let (step, commands) = run.handle_event(s(130), Event::Tick);
    let moot =
        |effect: &Effect| matches!(effect, Effect::Moot { why, .. } if why.contains("hiber"));
    assert!(step.effects.iter().any(moot), "it could not know: {step:?}");
    assert_eq!(commands, [Command::FreezeVm { host: HOST, vm: vm(1) }]);
    tell(&mut run, 131, Report::VmFrozen { vm: vm(1), real_took_us: 9 });
    assert_eq!(run.counts().rejected, 4, "it has heard of it");
}
