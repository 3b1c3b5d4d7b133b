//! Observation of a run: its events, its progress, and its end.

use crate::common::*;
use dormouse_coordinator::{LiveRunPlan, RemoteCoordinator, RemoteError, address_of};
use dormouse_identity::Role;
use dormouse_proto::v1;

async fn remote(coordinator: &Under) -> RemoteCoordinator {
    RemoteCoordinator::dial_coordinator(
        &coordinator.at.address.to_string(),
        coordinator.at.token(Role::Operator),
    )
    .await
    .unwrap()
}

fn wanted(from_seq: u64, header: bool) -> v1::EventsRequest {
    v1::EventsRequest { from_seq, header, follow: true }
}

#[tokio::test(flavor = "multi_thread")]
async fn however_often_a_reader_comes_back_it_hears_every_event_once() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(300, 4, dir.path())).await;
    let address = address_of(dir.path()).unwrap();
    assert_eq!(address, Some(coordinator.at.address.to_string()));
    let mut remote = remote(&coordinator).await;
    // From before the first event on, breaking off after ever more lines.
    let reading = tokio::spawn(async move {
        let (mut heard, mut next, mut visits) = (Vec::new(), 0, 0_usize);
        'visits: loop {
            visits += 1;
            let mut events = remote.read_events(wanted(next, visits == 1)).await.unwrap();
            for _ in 0..10 * visits {
                let Some(v1::EventLine { seq, line }) = events.next().await.unwrap() else {
                    break 'visits;
                };
                next = seq.map_or(next, |seq| seq + 1);
                heard.push(line);
            }
        }
        (heard, visits)
    });
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    assert!(matches!(worker.obey().await, Said::Goodbye(v1::Goodbye { over: true, .. })));
    let done = coordinator.outcome().await.unwrap();
    let (heard, visits) = within("the last event", reading).await.unwrap();
    let log = std::fs::read_to_string(&done.log).unwrap();
    assert!(heard.iter().eq(log.lines()), "{} lines of {}", heard.len(), log.lines().count());
    assert!(visits > 3, "{visits}");
    assert_eq!(address_of(dir.path()).unwrap(), None, "nobody serves it any more");
}

#[tokio::test]
async fn whoever_may_not_go_on_with_a_run_leaves_its_address_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, _) = joined("w", live(1, 1, dir.path())).await;
    let address = Some(coordinator.at.address.to_string());
    let again = LiveRunPlan { resume: true, ..live(1, 1, dir.path()) };
    let no = again.conduct_run().await.unwrap_err().to_string();
    assert!(no.contains("under way") || no.contains("another"), "{no}");
    assert_eq!(address_of(dir.path()).unwrap(), address);
    worker.obey_to_the_end().await;
    coordinator.outcome().await.unwrap();
    assert_eq!(address_of(dir.path()).unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_never_reads_does_not_slow_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(2_000, 16, dir.path())).await;
    let mut remote = remote(&coordinator).await;
    let _unread = remote.read_events(wanted(0, true)).await.unwrap();
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    // All of it, and its goodbye, while nothing is read.
    assert!(matches!(worker.obey().await, Said::Goodbye(v1::Goodbye { over: true, .. })));
    let done = coordinator.outcome().await.unwrap();
    assert_eq!(done.run.unfinished_count(), 0);
    // More than the connection, and what is read ahead, can hold.
    assert!(std::fs::metadata(&done.log).unwrap().len() > 1 << 20);
}

/// The setup has no spot VMs: an interruption that would hit no VM is refused, and leaves nothing in the log.
#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_that_hits_nothing_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, _) = joined("w", live(1, 1, dir.path())).await;
    let mut remote = remote(&coordinator).await;
    let request = v1::InterruptRequest {
        action: v1::interrupt_request::Action::Preempt.into(),
        target: Some(v1::interrupt_request::Target::All(true)),
        why: String::new(),
    };
    let no = remote.interrupt_vms(request).await.unwrap_err();
    assert!(no.to_string().contains("no VM matches: only spot VMs"), "{no}");
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    let log = std::fs::read_to_string(&done.log).unwrap();
    assert!(log.contains("\"begin\"") && !log.contains("\"interrupt\""), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_may_end_a_run_an_observer_looks_on_and_a_worker_does_neither() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(1, 1, dir.path())).await;
    let address = coordinator.at.address.to_string();
    let dial = |role| {
        let token = coordinator.at.token(role);
        let address = address.clone();
        async move { RemoteCoordinator::dial_coordinator(&address, token).await.unwrap() }
    };
    let mut observer = dial(Role::Observer).await;
    assert_eq!(observer.get_status().await.unwrap().tasks, 1);
    assert!(observer.read_events(wanted(0, true)).await.is_ok());
    for no in [
        observer.cancel_run(String::new()).await.unwrap_err(),
        observer.close().await.unwrap_err(),
        observer.submit_job(v1::SubmitRequest::default()).await.map(drop).unwrap_err(),
    ] {
        let said = no.to_string();
        assert!(said.contains("not that of this run's operator"), "{said}");
        assert!(said.contains("`secret.operator`"), "{said}");
    }
    let mut stranger = dial(Role::Worker).await;
    for no in [
        stranger.cancel_run(String::new()).await.unwrap_err(),
        stranger.get_status().await.unwrap_err(),
        stranger.read_events(wanted(0, true)).await.map(drop).unwrap_err(),
    ] {
        assert!(matches!(&no, RemoteError::Refused(why) if why.contains("--secret-file")), "{no}");
    }
    let mut remote = remote(&coordinator).await;
    assert_eq!(remote.get_status().await.unwrap().tasks, 1);
    let hibernate = |target| v1::InterruptRequest {
        action: v1::interrupt_request::Action::Hibernate.into(),
        target: Some(target),
        why: "to see".to_owned(),
    };
    use v1::interrupt_request::Target;
    let vm = hibernate(Target::Vm(0));
    let no = dial(Role::Worker).await.interrupt_vms(vm.clone()).await.unwrap_err();
    assert!(matches!(&no, RemoteError::Refused(why) if why.contains("--secret-file")), "{no}");
    let no = remote.interrupt_vms(vm).await.unwrap_err();
    assert!(no.to_string().contains("the run has not begun"), "{no}");
    let no = remote.interrupt_vms(v1::InterruptRequest::default()).await.unwrap_err();
    assert!(no.to_string().contains("the request names no action"), "{no}");
    let no = remote.cancel_run("a\nb".to_owned()).await.unwrap_err();
    assert!(no.to_string().contains("control characters"), "{no}");
    remote.cancel_run("it is late".to_owned()).await.unwrap();
    let done = coordinator.outcome().await.unwrap();
    assert_eq!(done.run.cancel_reason(), Some("it is late"));
}
