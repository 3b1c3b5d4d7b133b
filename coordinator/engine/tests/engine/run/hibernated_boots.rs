//! VMs that the provider hibernates while they boot.

use super::*;

/// The provider's act at 10 s hits a VM that boots. The VM freezes as soon as it has booted, at 60 s, and the log
/// records that as a separate act; the task that the scheduler sends at 60 s waits on the VM.
#[test]
fn a_vm_that_was_hibernated_while_it_booted_hibernates_once_it_has() {
    let script = Script::default();
    script
        .on(Notice::Begin, [launch(1, Market::Spot), launch(2, Market::OnDemand)])
        .on(Notice::VmReady { vm: vm(1) }, [start(T0, 1, StartReason::Planned)]);
    let mut run = begun(&script, acts(&[(10, InterruptionAction::Hibernate)]));
    up(&mut run, 1);
    up(&mut run, 2);
    run.handle_event(s(10), Event::Tick);
    let (step, commands) = run.handle_event(s(60), Event::Tick);
    assert_eq!(
        step.notices,
        [
            Notice::VmReady { vm: vm(1) },
            Notice::VmHibernating { vm: vm(1) },
            Notice::VmReady { vm: vm(2) }
        ]
    );
    let (target, vms) = (InterruptionTarget::Vm(vm(1)), vec![vm(1)]);
    let (asked, action, left) = (s(60), InterruptionAction::Hibernate, vec![]);
    assert!(step.effects.contains(&Effect::Interrupted { asked, action, target, vms, left }));
    assert_eq!(commands, [Command::FreezeVm { host: HOST, vm: vm(1) }]);
    tell(&mut run, 60, Report::VmFrozen { vm: vm(1), real_took_us: 0 });
    assert_eq!((run.counts().hibernations, task(&run, 0).state), (1, TaskState::Sent(vm(1))));
}

/// The capacity that was lost at 10 s is back at 20 s, before the VM has booted, so that the VM runs.
#[test]
fn a_resume_during_the_boot_takes_a_hibernation_back() {
    let script = Script::default();
    script.on(Notice::Begin, [launch(1, Market::Spot), launch(2, Market::OnDemand)]);
    let mut run = begun(
        &script,
        acts(&[(10, InterruptionAction::Hibernate), (20, InterruptionAction::Resume)]),
    );
    up(&mut run, 1);
    up(&mut run, 2);
    for at in [10, 20] {
        run.handle_event(s(at), Event::Tick);
    }
    let (step, commands) = run.handle_event(s(60), Event::Tick);
    assert_eq!(step.notices, [Notice::VmReady { vm: vm(1) }, Notice::VmReady { vm: vm(2) }]);
    assert_eq!((commands, run.counts().hibernations), (vec![], 0));
}
