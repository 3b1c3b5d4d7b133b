//! Workers of other versions than the coordinator's: the messages that they may send, and those that they needn't know.

use crate::common::*;
use dormouse_proto::{PROTOCOLS, Protocols, v1};
use v1::{command::Command as C, report::Report as R};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_welcome_if_it_speaks_a_version_in_common() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(1, 1, dir.path())).await;
    let ours = PROTOCOLS;
    let range = |oldest, newest| Protocols { oldest, newest };
    let too_old = range(ours.oldest - 2, ours.oldest - 1);
    let too_new = range(ours.newest + 1, ours.newest + 3);
    for (name, theirs, word) in [("old", too_old, "too old"), ("new", too_new, "too new")] {
        let mut worker = FakeWorker::new(name, &coordinator.at);
        worker.protocols = theirs;
        let no = worker.connect().await.unwrap_err();
        assert_eq!(no.code(), tonic::Code::FailedPrecondition, "{no}");
        let speaks = format!("{word} for this coordinator: it speaks protocol {theirs}, the");
        assert!(no.message().contains(&speaks), "{no}");
        assert!(no.message().contains(&format!("the coordinator {ours};")), "{no}");
    }
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.protocols = range(1, ours.newest + 9);
    assert_eq!(worker.join().await.protocol, ours.newest);
    assert!(matches!(worker.obey().await, Said::Goodbye(v1::Goodbye { over: true, .. })));
    assert_eq!(coordinator.outcome().await.unwrap().run.unfinished_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_does_not_know_has_failed_with_the_reason_and_it_lives_on() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(1, 1, dir.path())).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    let unsupported = |command| {
        let what = "no such thing here".to_owned();
        R::Unsupported(v1::Unsupported { command, what })
    };
    // The first VM can't be made: another is asked for.
    let first = created(&worker.commands().await);
    worker.report(unsupported(worker.taken)).await;
    let mut commands = worker.take(2).await;
    let Some(C::CreateVm(second)) = commands.pop() else { panic!("{commands:?}") };
    assert!(matches!(commands[..], [C::DestroyVm(v1::VmRef { vm })] if vm == first));
    worker.carry_out(commands[0].clone());
    worker.report(vm_created(second.vm)).await;
    // Its task can't be started: it is started again.
    let (vm, task, attempt) = started(&worker.commands().await);
    worker.report(unsupported(worker.taken)).await;
    assert_eq!(started(&worker.commands().await), (vm, task, attempt + 1));
    // Of a command that was never sent nothing comes.
    worker.make(unsupported(99));
    worker.report(finished(vm, task, attempt + 1)).await;
    assert!(matches!(worker.obey().await, Said::Goodbye(v1::Goodbye { over: true, .. })));
    let done = coordinator.outcome().await.unwrap();
    let counts = done.run.counts();
    assert_eq!((done.run.unfinished_count(), counts.hosts_lost, counts.attempts_failed), (0, 0, 1));
    let log = std::fs::read_to_string(&done.log).unwrap();
    for asked in [format!("make vm{first}"), format!("start task{task}")] {
        assert!(log.contains(&format!("its worker can't {asked}")), "{asked}");
    }
    assert!(log.contains("no such thing here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_even_give_back_a_vm_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(1, 1, dir.path())).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(R::VmFailed(v1::VmFailed { vm, why: "no room".to_owned() })).await;
    worker.take(2).await;
    let destroy = worker.taken - 1;
    let what = "nothing is given back here".to_owned();
    worker.report(R::Unsupported(v1::Unsupported { command: destroy, what })).await;
    let goodbye = worker.goodbye().await;
    assert!(!goodbye.over && goodbye.why.contains(&format!("can't destroy vm{vm}")), "{goodbye:?}");
    coordinator.cancel.cancel();
    assert_eq!(coordinator.outcome().await.unwrap().run.counts().hosts_lost, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_an_unknown_kind_is_dropped_and_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(2, 1, dir.path())).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    let vm = created(&worker.commands().await);
    // As newer ones come in here.
    worker.reports.push(v1::Report::default());
    worker.report(vm_created(vm)).await;
    worker.reports.push(v1::Report::default());
    worker.flush().await;
    assert!(matches!(worker.obey().await, Said::Goodbye(v1::Goodbye { over: true, .. })));
    assert_eq!(worker.acked, worker.reports.len() as u64);
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 0));
}
