//! Single cases of displaced VMs, at exact times.

use dormouse_cloud::{
    ChargedInterval, Interruption, InterruptionAction, InterruptionModel, InterruptionTarget,
    Market, PreemptionAction, ProviderVmState,
};
use dormouse_engine::{Run, tenants_part, tenants_view};
use dormouse_model::{
    Command, Decision, Effect, Event, Notice, Report, StartReason, TenantWork, Tenants, VmEnd,
    VmRequest,
};
use dormouse_units::{Mode, Money, Ppm, RequestId, Seats, Span, TaskId, TenantId};

use super::world::{
    BOTH, HOST, Script, begun, created, end, frozen, join, launch, made, s, setup, tell, tick, vm,
    wake,
};

/// Plays a run in which spot VM 1 has the whole host from 0 s on and runs from 60 s on, and on-demand VM 2 is launched
/// at `at` s.
fn one_for_another(preemption: PreemptionAction, script: &Script, at: u64, more: &[u64]) -> Run {
    let wakes = std::iter::once(at).chain(more.iter().copied()).map(wake);
    script
        .on(Notice::Begin, [launch(1, Market::Spot)].into_iter().chain(wakes))
        .at(at, [launch(2, Market::OnDemand)]);
    let mut run = begun(setup(preemption, vec![]), script, 1);
    created(&mut run, 1, 1);
    run
}

fn displaced(action: InterruptionAction) -> Effect {
    Effect::Displaced { vm: vm(1), by: vm(2), action }
}

fn ended(n: u32, why: VmEnd, nanos: i64) -> Effect {
    Effect::VmEnded { vm: vm(n), why, cost: Money::from_nanos(nanos) }
}

#[test]
fn a_request_is_ready_after_notice_and_boot() {
    let script = Script::default();
    let mut run = one_for_another(PreemptionAction::Terminate, &script, 100, &[]);
    tick(&mut run, 60);
    let (step, commands) = tick(&mut run, 100);
    assert_eq!(
        (step.effects.last(), made(&commands)),
        (Some(&displaced(InterruptionAction::Preempt)), vec![])
    );
    assert_eq!(step.notices.last(), Some(&Notice::VmPreempting { vm: vm(1), at: s(220) }));
    let (step, commands) = tick(&mut run, 220);
    assert_eq!(step.effects, [ended(1, VmEnd::Preempted, 16_000)]);
    assert_eq!(commands[0], Command::DestroyVm { host: HOST, vm: vm(1) });
    assert_eq!(made(&commands), [vm(2)]);
    created(&mut run, 221, 2);
    let (step, _) = tick(&mut run, 280);
    assert_eq!(step.effects, [Effect::VmReady { vm: vm(2) }], "100 + 120 + 60");
    assert_eq!((run.counts().preemptions, run.counts().hibernations), (1, 0));
}

#[test]
fn a_request_is_ready_after_a_hibernation_and_boot_and_the_vm_resumes_after_it() {
    let script = Script::default();
    script.at(300, [end(2)]);
    let mut run = one_for_another(PreemptionAction::Hibernate, &script, 100, &[300]);
    tick(&mut run, 60);
    let (step, commands) = tick(&mut run, 100);
    assert_eq!(step.effects.last(), Some(&displaced(InterruptionAction::Hibernate)));
    assert_eq!(step.notices.last(), Some(&Notice::VmHibernating { vm: vm(1) }));
    assert_eq!(commands, [Command::FreezeVm { host: HOST, vm: vm(1) }]);
    let (step, commands) = frozen(&mut run, 107, 1);
    assert_eq!(step.effects, [Effect::VmHibernated { vm: vm(1), asked: s(100) }]);
    assert_eq!(
        (step.notices, made(&commands)),
        (vec![Notice::VmHibernated { vm: vm(1) }], vec![vm(2)])
    );
    created(&mut run, 108, 2);
    let (step, commands) = tick(&mut run, 137);
    assert_eq!((step.effects, commands), (vec![], vec![]), "it could resume, and has no room");
    let (step, _) = tick(&mut run, 167);
    assert_eq!(step.effects, [Effect::VmReady { vm: vm(2) }], "100 + 7 + 60");
    let (step, commands) = tick(&mut run, 300);
    assert_eq!(step.effects.last(), Some(&Effect::GivenBack { vm: vm(1) }));
    assert_eq!(commands.last(), Some(&Command::ThawVm { host: HOST, vm: vm(1) }));
    let (step, _) = tell(&mut run, 302, Report::VmThawed { vm: vm(1), real_took_us: 0 });
    assert_eq!(step.effects, [Effect::VmResumed { vm: vm(1), asked: s(300) }]);
    assert_eq!(step.notices, [Notice::VmResumed { vm: vm(1) }]);
    let charges = run.provider().find_vm(vm(1)).expect("it").charges();
    let of = |charge: &ChargedInterval| (charge.from, charge.until);
    assert_eq!(charges.iter().map(of).collect::<Vec<_>>(), [(s(60), s(107))]);
    let counts = run.counts();
    assert_eq!((counts.preemptions, counts.hibernations, counts.resumes), (0, 1, 1));
}

/// The other VM gets the room at once, and the VM that is gone isn't killed.
#[test]
fn a_vm_that_ends_by_itself_during_its_notice_is_not_killed() {
    for way in ["its owner", "its host's failure", "another interruption"] {
        let script = Script::default();
        script.at(150, (way == "its owner").then(|| end(1)));
        let at = |at| Interruption {
            at: s(at),
            target: InterruptionTarget::Vm(vm(1)),
            action: InterruptionAction::Preempt,
        };
        let acts = vec![InterruptionModel::Schedule { acts: vec![at(150)] }];
        let acts = if way == "another interruption" { acts } else { vec![] };
        script
            .on(Notice::Begin, [launch(1, Market::Spot), wake(100), wake(150)])
            .at(100, [launch(2, Market::OnDemand)]);
        let mut run = begun(setup(PreemptionAction::Terminate, acts), &script, 1);
        created(&mut run, 1, 1);
        tick(&mut run, 60);
        tick(&mut run, 100);
        let (step, mut commands) = tick(&mut run, 150);
        let why = match way {
            "its owner" => VmEnd::Terminated,
            "its host's failure" => {
                let why = "broken".into();
                commands = tell(&mut run, 150, Report::VmFailed { vm: vm(1), why }).1;
                VmEnd::Failed
            }
            // It has its notice, and is told nothing more.
            _ => {
                let hits =
                    |e: &Effect| matches!(e, Effect::Interrupted { vms, .. } if vms.is_empty());
                assert!(step.effects.iter().any(hits), "{step:?}");
                let (step, commands) = tick(&mut run, 220);
                assert_eq!(step.effects, [ended(1, VmEnd::Preempted, 16_000)]);
                assert_eq!(made(&commands), [vm(2)]);
                assert_eq!(run.counts().preemptions, 1);
                continue;
            }
        };
        assert_eq!(made(&commands), [vm(2)], "{way}");
        created(&mut run, 151, 2);
        assert_eq!(tick(&mut run, 210).0.effects, [Effect::VmReady { vm: vm(2) }], "{why:?}");
        let (step, commands) = tick(&mut run, 220);
        assert_eq!((step.effects, step.notices, commands), (vec![], vec![], vec![]), "{way}");
        assert_eq!(run.counts().preemptions, 0);
    }
}

/// Once notice is given the VM ends even if the displacing VM has ended: the VM's owner has already acted on the
/// notice.
#[test]
fn who_has_notice_ends_though_the_other_has_ended_while_it_waited() {
    let script = Script::default();
    script.at(130, [end(2)]);
    let mut run = one_for_another(PreemptionAction::Terminate, &script, 100, &[130]);
    tick(&mut run, 60);
    tick(&mut run, 100);
    let (step, _) = tick(&mut run, 130);
    assert_eq!(step.effects, [ended(2, VmEnd::Terminated, 0)], "it was never charged for");
    let (step, commands) = tick(&mut run, 220);
    assert_eq!(step.effects, [ended(1, VmEnd::Preempted, 16_000)]);
    assert_eq!(made(&commands), []);
    assert_eq!(run.next_wakeup(), None);
}

#[test]
fn who_hibernates_resumes_though_the_other_never_came() {
    let script = Script::default();
    script.at(103, [end(2)]);
    let mut run = one_for_another(PreemptionAction::Hibernate, &script, 100, &[103]);
    tick(&mut run, 60);
    tick(&mut run, 100);
    tick(&mut run, 103);
    let (_, commands) = frozen(&mut run, 107, 1);
    assert_eq!(commands, []);
    let (step, commands) = tick(&mut run, 137);
    assert_eq!(step.effects, [Effect::GivenBack { vm: vm(1) }]);
    assert_eq!(commands, [Command::ThawVm { host: HOST, vm: vm(1) }]);
}

#[test]
fn a_host_that_is_lost_takes_those_who_wait_and_those_who_leave() {
    for preemption in BOTH {
        let script = Script::default();
        let mut run = one_for_another(preemption, &script, 100, &[]);
        tick(&mut run, 60);
        tick(&mut run, 100);
        if preemption == PreemptionAction::Hibernate {
            frozen(&mut run, 101, 1);
            created(&mut run, 102, 2);
        }
        let (step, commands) = run.handle_event(
            s(110),
            Event::HostLost { host: HOST, why: "gone".into(), unheard: false },
        );
        let of = |effect: &Effect| matches!(effect, Effect::VmEnded { why: VmEnd::HostLost, .. });
        assert_eq!(step.effects.iter().filter(|effect| of(effect)).count(), 2);
        assert_eq!(commands, []);
        while let Some(at) = run.next_wakeup() {
            let (step, commands) = run.handle_event(at, Event::Tick);
            assert_eq!((step.effects, step.notices, commands), (vec![], vec![], vec![]));
        }
    }
}

#[test]
fn of_several_that_wait_the_first_has_room_first_whoever_leaves_it() {
    for preemption in BOTH {
        let script = Script::default();
        script
            .on(
                Notice::Begin,
                [launch(1, Market::Spot), launch(2, Market::Spot), wake(100), wake(110), wake(115)],
            )
            .at(100, [launch(3, Market::OnDemand)])
            .at(110, [launch(4, Market::OnDemand)])
            // The one of which the later one has the room leaves first.
            .at(115, [end(1)]);
        let mut run = begun(setup(preemption, vec![]), &script, 2);
        created(&mut run, 1, 1);
        created(&mut run, 1, 2);
        tick(&mut run, 60);
        let by = |n, by| move |e: &Effect| matches!(e, Effect::Displaced { vm: v, by: b, .. } if (*v, *b) == (vm(n), vm(by)));
        let (step, _) = tick(&mut run, 100);
        assert!(step.effects.iter().any(by(2, 3)), "{step:?}");
        let (step, _) = tick(&mut run, 110);
        assert!(step.effects.iter().any(by(1, 4)), "{step:?}");
        assert_eq!(made(&tick(&mut run, 115).1), [vm(3)]);
        created(&mut run, 116, 3);
        let (_, commands) = match preemption {
            PreemptionAction::Terminate => {
                tick(&mut run, 175);
                tick(&mut run, 220)
            }
            PreemptionAction::Hibernate => frozen(&mut run, 120, 2),
        };
        assert_eq!(made(&commands), [vm(4)], "{preemption:?}");
    }
}

#[test]
fn a_hibernation_that_fails_leaves_all_room() {
    let mut run = one_for_another(PreemptionAction::Hibernate, &Script::default(), 100, &[]);
    tick(&mut run, 60);
    tick(&mut run, 100);
    let (step, commands) =
        tell(&mut run, 105, Report::VmFailed { vm: vm(1), why: "can't freeze".into() });
    assert_eq!(step.effects, [ended(1, VmEnd::Failed, 4_500)]);
    assert_eq!(made(&commands), [vm(2)]);
}

#[test]
fn a_vm_that_boots_ends_at_once_to_make_room() {
    for preemption in BOTH {
        let mut run = one_for_another(preemption, &Script::default(), 30, &[]);
        let (step, commands) = tick(&mut run, 30);
        let told = step.effects.iter().skip(1);
        assert!(
            told.eq(&[displaced(InterruptionAction::Preempt), ended(1, VmEnd::Preempted, 0)]),
            "{step:?}"
        );
        assert_eq!(
            (step.notices.last(), made(&commands)),
            (Some(&Notice::VmLost { vm: vm(1) }), vec![vm(2)])
        );
        created(&mut run, 31, 2);
        tick(&mut run, 60);
        assert_eq!(tick(&mut run, 90).0.effects, [Effect::VmReady { vm: vm(2) }]);
    }
}

#[test]
fn a_run_is_not_stuck_while_a_vm_is_to_have_its_room_again() {
    let (script, task) = (Script::default(), TaskId::new(0));
    let start = |n| Decision::Start {
        task,
        on: Seats::first_free(vm(n)),
        mode: Mode::Burst,
        reason: StartReason::Planned,
    };
    script
        .on(Notice::VmReady { vm: vm(1) }, [start(1)])
        .on(Notice::VmHibernated { vm: vm(1) }, [Decision::Stop { task, vm: vm(1), keep: false }])
        .on(Notice::VmResumed { vm: vm(1) }, [start(1)])
        .at(110, [end(2)]);
    let mut run = one_for_another(PreemptionAction::Hibernate, &script, 100, &[110]);
    tick(&mut run, 60);
    let (vm1, attempt, done) = (vm(1), dormouse_units::Attempt::new(1), Ppm::ZERO);
    tell(
        &mut run,
        61,
        Report::TaskStarted { vm: vm1, task, attempt, done, real_took_us: 0, real_inputs_us: 0 },
    );
    tick(&mut run, 100);
    frozen(&mut run, 101, 1);
    tick(&mut run, 110);
    // Its room is there, and it must be frozen for some time yet.
    assert!(!run.is_stuck());
    tick(&mut run, 131);
    assert_eq!(run.provider().find_vm(vm1).map(|vm| vm.state), Some(ProviderVmState::Resuming));
    assert!(!run.is_stuck());
    let (_, commands) = tell(&mut run, 131, Report::VmThawed { vm: vm1, real_took_us: 0 });
    assert!(commands.iter().any(|command| matches!(command, Command::StartTask(_))));
    assert_eq!(run.counts().rejected, 0);
}

/// VM 1 of the first of two tenants is the run's VM 2, and VM 1 of the second the run's VM 3.
#[test]
fn tenants_hear_of_their_own_in_their_own_numbers() {
    let [preempts, hibernates] = BOTH.map(|preemption| {
        let (bag, requests) = (Script::default(), Script::default());
        bag.on(Notice::Begin, [launch(1, Market::Spot)]);
        requests
            .on(Notice::Begin, [wake(100), wake(300)])
            .at(100, [launch(1, Market::OnDemand)])
            .at(300, [end(1)]);
        let setup = dormouse_model::Setup { requests: true, ..setup(preemption, vec![]) };
        let policies: Vec<(TenantWork, Box<dyn dormouse_policies::Policy>)> = vec![
            (TenantWork::Bag, Box::new(bag.clone())),
            (TenantWork::Requests, Box::new(requests.clone())),
        ];
        let (mut run, mut steps) = (Run::of_tenants(setup, policies), Vec::new());
        join(&mut run, 1);
        run.handle_event(s(0), Event::Begin);
        for n in 0..2 {
            let (request, duration) = (RequestId::new(n), Span::from_secs(200));
            let asks = VmRequest { kind: "small".into(), market: Market::OnDemand, duration };
            run.handle_event(s(0), Event::Requested { request, asks });
        }
        created(&mut run, 1, 2);
        while let Some(at) = run.next_wakeup() {
            let (step, commands) = run.handle_event(at, Event::Tick);
            steps.push(step);
            for command in commands {
                let report = match command {
                    Command::FreezeVm { vm, .. } => Report::VmFrozen { vm, real_took_us: 0 },
                    Command::ThawVm { vm, .. } => Report::VmThawed { vm, real_took_us: 0 },
                    Command::CreateVm { vm, .. } => Report::VmCreated { vm },
                    _ => continue,
                };
                let (step, commands) =
                    run.handle_event(at, Event::Machine { host: HOST, number: 0, report });
                steps.push(step);
                for vm in made(&commands) {
                    let report = Report::VmCreated { vm };
                    run.handle_event(at, Event::Machine { host: HOST, number: 0, report });
                }
            }
        }
        (bag.heard(), requests.heard(), steps)
    });
    let own = vm(1);
    let of = |heard: &[(dormouse_units::Time, Notice)]| heard.to_vec();
    let (bag, requests, steps) = hibernates;
    assert_eq!(
        of(&bag)[1..],
        [
            (s(60), Notice::VmReady { vm: own }),
            (s(100), Notice::VmHibernating { vm: own }),
            (s(100), Notice::VmHibernated { vm: own }),
            (s(300), Notice::VmResumed { vm: own }),
        ]
    );
    let is_own = |notice: &Notice| matches!(notice, Notice::VmReady { .. });
    let ready: Vec<_> = requests.iter().filter(|(_, notice)| is_own(notice)).collect();
    assert_eq!(ready, [&(s(160), Notice::VmReady { vm: own })]);
    // The first is not told for whom.
    let works = Tenants::from([TenantWork::Bag, TenantWork::Requests]);
    let [of_bag, of_customers] = [0, 1].map(TenantId::new);
    let at_100 = steps.iter().find(|step| step.at == s(100)).expect("it");
    let act = |action, vm| Effect::Interrupted {
        asked: s(100),
        action,
        target: InterruptionTarget::Vm(vm),
        vms: vec![vm],
        left: vec![],
    };
    assert_eq!(
        tenants_view(at_100, &works, of_bag).effects,
        [act(InterruptionAction::Hibernate, own)]
    );
    let whole = Effect::Displaced { vm: vm(2), by: vm(3), action: InterruptionAction::Hibernate };
    assert_eq!(tenants_part(at_100, &works, of_bag).effects, [whole]);
    assert!(
        tenants_view(at_100, &works, of_customers)
            .effects
            .iter()
            .all(|e| matches!(e, Effect::VmLaunched { .. }))
    );
    let back = steps.iter().find(|step| step.at == s(300)).expect("it");
    assert_eq!(tenants_view(back, &works, of_bag).effects, [Effect::GivenBack { vm: own }]);

    let (bag, requests, steps) = preempts;
    assert_eq!(
        of(&bag)[1..],
        [
            (s(60), Notice::VmReady { vm: own }),
            (s(100), Notice::VmPreempting { vm: own, at: s(220) }),
            (s(220), Notice::VmLost { vm: own }),
        ]
    );
    let ready: Vec<_> = requests.iter().filter(|(_, notice)| is_own(notice)).collect();
    assert_eq!(ready, [&(s(280), Notice::VmReady { vm: own })]);
    let at_100 = steps.iter().find(|step| step.at == s(100)).expect("it");
    assert_eq!(
        tenants_view(at_100, &works, of_bag).effects,
        [act(InterruptionAction::Preempt, own)]
    );
    assert!(Span::from_secs(180) == s(280).since(s(100)));
}
