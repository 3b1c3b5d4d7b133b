//! Tasks that hang after their launch.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{Program, StartTask, TaskFailed, command::Command, report::Report};

use crate::{
    agent::Agent,
    await_report,
    coordinator::{Fake, Seat, welcome},
    tasks::{create, is_task, over, vector},
};

/// Time limit of a task on half a core.
const GIVEN: Duration = Duration::from_secs(30);

/// A program that reports once that it is at work, and then computes (as `ep`), sleeps (as `is`) or ends (as `cg`)
/// without another report.
const PROGRAM: &str = r#"#!/bin/sh
does=$1
while [ "$1" != --progress ]; do shift; done
zero='\0\0\0\0\0\0\0'
printf "DORMPROG\\1$zero\\1$zero\\0$zero\\0$zero\\0$zero\\1$zero" 1<>"$2"
case $does in
    ep) while :; do :; done ;;
    is) exec sleep 3600 ;;
esac
"#;

/// A command to start a task that should run for long, on half a core.
fn hanging(task: u32, does: &str) -> Command {
    let args = vec![does.to_owned()];
    Command::StartTask(StartTask { program: Some(Program { args }), ..vector(1, task, 1, 9_000) })
}

/// A worker whose tasks run `PROGRAM`, with one VM of two vCPUs.
fn with_vm(fake: &Fake) -> (Agent, Seat<'_>) {
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join("hangs");
    fs::write(&program, PROGRAM).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start_program(&fake.address.to_string(), "w1", &program);
    // By then the worker has a copy of the program.
    assert!(seat.ready().is_empty());
    seat.command(create(1, 2));
    await_report!(seat, VmCreated);
    (agent, seat)
}

/// Starts these tasks and waits until they run; returns when that began.
fn hang(seat: &mut Seat<'_>, tasks: &[(u32, &str)]) -> Instant {
    let begun = Instant::now();
    seat.commands(tasks.iter().map(|(task, does)| hanging(*task, does)).collect());
    for (task, _) in tasks {
        await_report!(seat, TaskStarted, s => is_task(s.task, *task));
    }
    begun
}

/// Waits until no process is left in a slot: the next task there ends at once, without a result.
fn await_free(seat: &mut Seat<'_>, tasks: &[u32]) {
    seat.commands(tasks.iter().map(|task| hanging(*task, "cg")).collect());
    for task in tasks {
        let failed: TaskFailed = await_report!(seat, TaskFailed, f => is_task(f.task, *task));
        assert!(failed.why.contains("no result"), "{failed:?}");
    }
}

pub(crate) fn a_hang_is_noticed() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    let begun = hang(&mut seat, &[(7, "ep"), (8, "is")]);
    seat.listen(Duration::from_secs(28).saturating_sub(begun.elapsed()));
    for task in [7, 8] {
        let failed: TaskFailed = await_report!(seat, TaskFailed, f => is_task(f.task, task));
        println!("  after {:?}: {}", begun.elapsed(), failed.why);
        assert!(failed.why.contains("it hangs"), "{failed:?}");
        assert!(begun.elapsed() > GIVEN, "{failed:?}");
    }
    await_free(&mut seat, &[9, 10]);
    over(agent, &seat);
}

/// A hang is reported if its process does not die. A frozen group stands for such a process: under version 1 of
/// control groups, signals to it wait.
pub(crate) fn a_hang_that_does_not_die_is_reported() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    let begun = hang(&mut seat, &[(7, "ep")]);
    let states = agent.groups().into_iter().map(|group| group.join("vm1/freezer.state"));
    let Some(state) = states.into_iter().find(|state| state.exists()) else {
        println!("  not with version 2 of control groups, where the frozen die");
        return over(agent, &seat);
    };
    fs::write(&state, "FROZEN").unwrap();
    seat.listen(Duration::from_secs(28).saturating_sub(begun.elapsed()));
    let failed: TaskFailed = await_report!(seat, TaskFailed);
    println!("  after {:?}: {}", begun.elapsed(), failed.why);
    assert!(failed.why.contains("it hangs") && failed.why.contains("still there"), "{failed:?}");
    fs::write(&state, "THAWED").unwrap();
    await_free(&mut seat, &[8, 9]);
    let twice = seat.heard().iter().any(|r| matches!(r, Report::TaskFailed(_)));
    assert!(!twice, "{:?}", seat.heard());
    over(agent, &seat);
}
