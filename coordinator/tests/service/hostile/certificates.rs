//! Expiry of workers' certificates, by a clock that the test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::*;
use dormouse_coordinator::{CERTIFICATE_VALID, WallClock};
use dormouse_identity::now_s;
use tonic::Code;

/// Receives messages until the worker's session has ended.
async fn ended(worker: &mut FakeWorker) {
    while !matches!(worker.hear().await, Said::Ended(_)) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_over_after_hours_unless_it_is_renewed() {
    is_over_after(CERTIFICATE_VALID).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_over_sooner_where_the_run_says_so() {
    is_over_after(CERTIFICATE_VALID / 6).await;
}

/// Plays a run whose certificates are valid for this time, and checks that they expire.
async fn is_over_after(valid: Duration) {
    let dir = tempfile::tempdir().unwrap();
    let run = live(1, 1, dir.path());
    let mut run = dormouse_coordinator::LiveRunPlan { certificates_valid: valid, ..run };
    let from = Arc::new(AtomicU64::new(now_s() * 1_000_000));
    let since = tokio::time::Instant::now();
    run.world.wall = WallClock::Running { since, from: Arc::clone(&from) };
    let twelfth_us = u64::try_from(valid.as_micros()).unwrap() / 12;
    let pass = |twelfths| from.fetch_add(twelfths * twelfth_us, Ordering::Relaxed);
    let (coordinator, mut worker, _) = joined("w", run).await;
    let at = &coordinator.at;
    let mut late = FakeWorker::new("late", at);
    late.join().await;
    // Who has joined and is no host of the run has nothing renewed.
    let mut nobody = FakeWorker::new("nobody", at);
    let no = at.renew(nobody.certify().await.unwrap()).await.unwrap_err();
    assert!(no.code() == Code::PermissionDenied && no.message().contains("not a host"), "{no}");

    pass(8);
    let former = worker.credential.clone().unwrap();
    let (renewed, incarnation) = at.renew(&former).await.unwrap();
    assert_eq!(incarnation, worker.incarnation, "it is the same life");
    pass(5);
    // The session of who has not ends. That of the other goes on, over a connection that has shown the former one.
    within("the end of its session", ended(&mut late)).await;
    worker.beat().await;
    // A connection that comes with a certificate that is over opens nothing, and is told why; one with the new one does.
    for refused in [&mut late, &mut worker] {
        refused.disconnect();
        let no = refused.connect().await.unwrap_err();
        assert_eq!(no.code(), Code::Unauthenticated, "{no}");
        let ago = twelfth_us / 60_000_000;
        let words = format!("its certificate expired {ago} min ago: start the worker again");
        assert!(no.message().contains(&words), "{no}");
    }
    worker.credential = Some(renewed);
    worker.connect().await.unwrap();
    worker.welcome().await;
    // A host that slept has it renewed while the run still has it; and a restart without a token is none of who is late.
    let over = late.credential.clone().unwrap();
    let no = at.join(None, Some(&over), "late").await.unwrap_err();
    assert!(no.message().contains("the call has no token of the run"), "{no}");
    late.credential = Some(at.renew(&over).await.unwrap().0);
    late.connect().await.unwrap();
    late.welcome().await;
    // With a token that is refused nothing is renewed.
    let token = at.token(dormouse_identity::Role::Worker);
    dormouse_coordinator::refuse_token(dir.path(), token.id()).unwrap();
    let no = at.renew(late.credential.as_ref().unwrap()).await.unwrap_err();
    assert_eq!(no.code(), Code::Unauthenticated, "{no}");
    let record = std::fs::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    let renewals = record.lines().filter(|line| line.contains("\"renew\""));
    let let_in = renewals.map(|line| line.contains("\"let_in\":true")).collect::<Vec<_>>();
    assert_eq!(let_in, [false, true, true, false], "{record}");
    coordinator.cancel.cancel();
    coordinator.outcome().await.unwrap();
}
