//! Which claims a coordinator believes, and from whom.

use std::time::Duration;

use crate::common::*;
use dormouse_coordinator::RemoteCoordinator;
use dormouse_identity::{Role, Token};
use dormouse_proto::v1;
use tokio_stream::StreamExt as _;
use tonic::Code;

fn memory() -> Vec<u8> {
    (0..700_001_u32).map(|n| u8::try_from(n % 251).unwrap()).collect()
}

/// Makes the stream of a checkpoint as the worker with this welcome sends it.
fn chunks(
    welcome: &v1::Welcome,
    of: v1::CheckpointRef,
) -> impl tonic::IntoStreamingRequest<Message = v1::CheckpointChunk> + use<> {
    checkpoint::chunks(welcome, &of, &memory())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_token_does_not_join_and_who_has_not_joined_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(1, 1, dir.path())).await;
    let at = &coordinator.at;
    let (authority, day) = (at.token(Role::Worker).authority, Duration::from_secs(86_400));
    let wrong = Token::generate(Role::Worker, authority, day).unwrap();
    for (token, word) in [
        (None, "no token"),
        (Some(wrong), "not that of this run's worker"),
        (Some(at.token(Role::Observer)), "not that of this run's worker"),
        (Some(at.token(Role::Operator)), "not that of this run's worker"),
    ] {
        let no = at.join(token.as_ref(), None, "w").await.unwrap_err();
        assert_eq!(no.code(), Code::Unauthenticated, "{no}");
        assert!(no.message().contains(word) && no.message().contains("--secret-file"), "{no}");
    }
    // The token joins, and opens nothing else.
    let of = v1::CheckpointRef { run: "r".to_owned(), task: 0, checkpoint: 1, attempt: 1 };
    let mut client = client(at, None, Some(at.token(Role::Worker))).await;
    let stranger = v1::Welcome { image_key: vec![0; 32].into(), ..v1::Welcome::default() };
    let all = [
        client.put_checkpoint(chunks(&stranger, of.clone())).await.map(drop),
        client.get_checkpoint(of).await.map(drop),
        within("an answer", client.session(tokio_stream::pending())).await.map(drop),
    ];
    for answer in all {
        let no = answer.unwrap_err();
        assert_eq!(no.code(), Code::Unauthenticated, "{no}");
        assert!(no.message().contains("certificate"), "{no}");
    }
    coordinator.cancel.cancel();
    coordinator.outcome().await.unwrap();
}

/// A caller with only the token can neither end an honest worker's session nor act for that worker.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_no_worker_that_has_joined() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut honest, vm) = begun("w", live(1, 1, dir.path())).await;
    honest.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&honest.commands().await);
    let mut bad = FakeWorker::new("w", &coordinator.at);
    bad.certify().await.unwrap();
    let own = std::mem::replace(&mut bad.incarnation, honest.incarnation);
    // A Hello under the other's incarnation is not what the certificate says.
    let no = bad.connect().await.unwrap_err();
    assert_eq!(no.code(), Code::PermissionDenied, "{no}");
    assert!(no.message().contains("its certificate is that of"), "{no}");
    // Under its own it is another of that name.
    bad.incarnation = own;
    let no = bad.connect().await.unwrap_err();
    assert_eq!(no.code(), Code::AlreadyExists, "{no}");
    // Nor is it taken for the other while that one's cable is pulled.
    honest.disconnect();
    let waits = async {
        loop {
            match bad.connect().await.unwrap_err() {
                no if no.code() == Code::AlreadyExists => {}
                no => break no,
            }
        }
    };
    let no = within("an answer", waits).await;
    assert_eq!(no.code(), Code::Unavailable, "{no}");
    assert!(no.message().contains("did not prove to be the same"), "{no}");
    // A certificate by which nobody has said Hello is no host's: it stores and fetches nothing.
    let of = v1::CheckpointRef { run: "r".to_owned(), task, checkpoint: 1, attempt };
    let mut theirs = bad.client().await;
    let stranger = v1::Welcome { image_key: vec![0; 32].into(), ..v1::Welcome::default() };
    for no in [
        theirs.put_checkpoint(chunks(&stranger, of.clone())).await.map(drop).unwrap_err(),
        theirs.get_checkpoint(of).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(no.code(), Code::PermissionDenied, "{no}");
        assert!(no.message().contains("is not a host of run"), "{no}");
    }
    assert!(!dir.path().join("checkpoints/0").exists());
    // The honest one is none the worse for it.
    honest.connect().await.unwrap();
    honest.welcome().await;
    honest.report(finished(vm, task, attempt)).await;
    honest.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_has_joined_stays_when_its_token_expires_and_comes_back_with_its_certificate()
{
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(1, 1, dir.path())).await;
    dormouse_coordinator::renew_token(dir.path(), Role::Worker, Duration::from_secs(4)).unwrap();
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    while !coordinator.at.token(Role::Worker).has_expired() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut late = FakeWorker::new("late", &coordinator.at);
    let no = late.connect().await.unwrap_err();
    assert_eq!(no.code(), Code::Unauthenticated, "{no}");
    assert!(no.message().contains("was over") && no.message().contains("--renew"), "{no}");
    created(&worker.commands().await);
    let mut anew = worker.anew();
    worker.disconnect();
    assert_eq!(anew.take_over().await.host, 1);
    // Another's certificate is no proof of this name.
    let shows = anew.credential.clone();
    let no = coordinator.at.join(None, shows.as_ref(), "another").await.unwrap_err();
    assert_eq!(no.code(), Code::Unauthenticated, "{no}");
    coordinator.cancel.cancel();
    anew.obey().await;
    coordinator.outcome().await.unwrap();
}

/// Waits for the end of a worker's session.
async fn ended(worker: &mut FakeWorker) {
    while !matches!(worker.hear().await, Said::Ended(_)) {}
}

/// A caller that has found a lost token can use neither the token nor certificates obtained with it once the token is
/// renewed; and a single worker's token can be revoked alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_renewed_or_refused_closes_all_that_was_opened_with_it() {
    const MINUTE: Duration = Duration::from_secs(60);
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(1, 1, dir.path())).await;
    let at = &coordinator.at;
    let mut thief = FakeWorker::new("thief", at);
    thief.join().await;
    let former = at.token(Role::Worker);
    let mut looking =
        RemoteCoordinator::dial_coordinator(&at.address.to_string(), at.token(Role::Observer))
            .await
            .unwrap();
    let mut events = looking.read_events(v1::EventsRequest::default()).await.unwrap();
    for role in [Role::Worker, Role::Observer] {
        dormouse_coordinator::renew_token(dir.path(), role, MINUTE).unwrap();
    }
    // The session and the stream that are open end.
    within("the session's end", ended(&mut thief)).await;
    let ends = async { while events.next().await.is_ok_and(|line| line.is_some()) {} };
    within("the stream's end", ends).await;
    // The certificate opens none, and joins nobody; the token neither.
    let no = thief.connect().await.unwrap_err();
    assert!(no.code() == Code::Unauthenticated && no.message().contains("renewed"), "{no}");
    let shows = thief.credential.clone();
    let (shows, former_token) = (shows.as_ref(), Some(&former));
    for (token, shows) in [(None, shows), (former_token, shows), (former_token, None)] {
        let no = at.join(token, shows, "thief").await.unwrap_err();
        assert_eq!(no.code(), Code::Unauthenticated, "{no}");
    }
    // The new one is taken, and one for one worker once.
    let mut honest = FakeWorker::new("honest", at);
    honest.connect().await.unwrap();
    honest.welcome().await;
    let once = dormouse_coordinator::make_token_for_one(dir.path(), MINUTE).unwrap();
    let (credential, incarnation) = at.join(Some(&once), None, "one").await.unwrap();
    let no = at.join(Some(&once), None, "two").await.unwrap_err();
    assert_eq!(no.code(), Code::Unauthenticated, "{no}");
    let mut one = FakeWorker::new("one", at);
    (one.credential, one.incarnation) = (Some(credential), incarnation);
    one.connect().await.unwrap();
    one.welcome().await;
    dormouse_coordinator::refuse_token(dir.path(), once.id()).unwrap();
    within("its session's end", ended(&mut one)).await;
    let no = one.connect().await.unwrap_err();
    assert_eq!(no.code(), Code::Unauthenticated, "{no}");
    honest.beat().await;
    // What is refused stays so, whoever reads the folder next; and who wanted what is on record.
    let refused = dormouse_coordinator::refused_tokens(dir.path()).unwrap();
    assert!(refused.contains(&former.id()) && refused.contains(&once.id()), "{refused:?}");
    let record = std::fs::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    let has = |id: dormouse_identity::TokenId, let_in: bool| {
        let words = [format!("\"token\":\"{id}\""), format!("\"let_in\":{let_in}")];
        record.lines().any(|line| words.iter().all(|word| line.contains(word)))
    };
    for (id, what) in [(former.id(), "former"), (once.id(), "once")] {
        assert!(has(id, true) && has(id, false), "{what}: {record}");
    }
    assert!(!record.contains(former.line().trim().rsplit('.').next().unwrap()), "{record}");
    coordinator.cancel.cancel();
    coordinator.outcome().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_are_stored_whole_and_fetched_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, welcome) = joined("w", live(1, 1, dir.path())).await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    let mut client = worker.client().await;
    let run = welcome.run.clone();
    let of = |checkpoint| v1::CheckpointRef { run: run.clone(), task, checkpoint, attempt };
    let chunks = |of| chunks(&welcome, of);
    let whole = checkpoint::image(&welcome, &of(1), &memory());
    let receipt = client.put_checkpoint(chunks(of(1))).await.unwrap().into_inner();
    assert_eq!(receipt.bytes, whole.len() as u64);
    let zeroth = client.put_checkpoint(chunks(of(0))).await.unwrap_err();
    assert_eq!(zeroth.code(), Code::InvalidArgument);
    let former = v1::CheckpointRef { run: "another".to_owned(), ..of(1) };
    let former = client.put_checkpoint(chunks(former)).await.unwrap_err();
    assert_eq!(former.code(), Code::FailedPrecondition);
    // Eight bytes, a part, one of another number, and one that is sealed by another host: they count for nothing.
    let send = |of: v1::CheckpointRef, data: Vec<u8>| {
        let chunk =
            v1::CheckpointChunk { checkpoint: Some(of), data: data.into(), ..Default::default() };
        tokio_stream::iter([chunk])
    };
    let other = v1::Welcome { image_key: vec![9; 32].into(), ..welcome.clone() };
    for (data, why) in [
        (b"DORMCKP3".to_vec(), "8 bytes"),
        (whole[..whole.len() - 1].to_vec(), "its manifest lists"),
        (checkpoint::image(&welcome, &of(7), b"m"), "another one: checkpoint 7"),
        (checkpoint::image(&other, &of(2), b"m"), "seal is not that of host0"),
    ] {
        let no =
            client.put_checkpoint(send(of(if why == "its manifest lists" { 1 } else { 2 }), data));
        let no = no.await.unwrap_err();
        assert!(no.code() == Code::InvalidArgument && no.message().contains(why), "{no}");
    }
    // Of the second nothing is ever said. The next attempt begins with the third, which got lost, and makes do with the
    // first: the log does not have the second.
    client.put_checkpoint(chunks(of(2))).await.unwrap();
    let third = client.put_checkpoint(chunks(of(3))).await.unwrap().into_inner();
    worker.report(checkpoint_taken((vm, task, attempt), 1, receipt.bytes)).await;
    worker.report(checkpoint_taken((vm, task, attempt), 3, third.bytes)).await;
    worker.on_record().await;
    std::fs::remove_file(dir.path().join(format!("checkpoints/{task}/3.{attempt}"))).unwrap();
    worker.report(task_failed(vm, task, attempt)).await;
    let (_, _, next) = started(&worker.commands().await);
    assert_eq!(next, attempt + 1);
    for (number, why) in [(3, "there is no such checkpoint"), (2, "the log has no checkpoint 2")] {
        let not_there = client.get_checkpoint(of(number)).await.unwrap_err();
        assert_eq!(not_there.code(), Code::NotFound);
        assert!(not_there.message().contains(why), "{not_there}");
    }
    let mut stream = client.get_checkpoint(of(1)).await.unwrap().into_inner();
    let mut fetched = Vec::new();
    while let Some(chunk) = within("a chunk", stream.next()).await {
        fetched.extend_from_slice(&chunk.unwrap().data);
    }
    assert!(fetched == whole);
    coordinator.cancel.cancel();
    worker.obey().await;
    coordinator.outcome().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_comes_only_from_who_runs_the_task_and_goes_only_to_who_begins_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(2, 1, dir.path())).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    let welcome = worker.join().await;
    let run = welcome.run.clone();
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    assert_eq!(started(&worker.commands().await), (vm, 0, 1));
    let mut other = FakeWorker::new("x", &coordinator.at);
    let told = other.join().await;
    assert!(told.host == 1 && told.image_key != welcome.image_key);
    let (sealed_by_other, chunks) = (|of| chunks(&told, of), |of| chunks(&welcome, of));
    let (mut mine, mut theirs) = (worker.client().await, other.client().await);
    let of = |task, checkpoint, attempt| {
        let run = run.clone();
        v1::CheckpointRef { run, task, checkpoint, attempt }
    };
    // Another host, another attempt, another task, and one that nobody was told to begin with.
    for no in [
        theirs.put_checkpoint(chunks(of(0, 1, 1))).await.map(drop),
        mine.put_checkpoint(chunks(of(0, 1, 2))).await.map(drop),
        mine.put_checkpoint(chunks(of(1, 1, 1))).await.map(drop),
        mine.get_checkpoint(of(0, 1, 1)).await.map(drop),
    ] {
        let no = no.unwrap_err();
        assert_eq!(no.code(), Code::PermissionDenied, "{no}");
    }
    assert!(!dir.path().join("checkpoints/0").exists());
    // Nobody seals as another does, whatever checkpoint he has got hold of.
    let no = mine.put_checkpoint(sealed_by_other(of(0, 1, 1))).await.unwrap_err();
    assert!(no.message().contains("seal is not that of host0, which sends it"), "{no}");
    let no = mine.get_checkpoint(of(0, 1, 1)).await.map(drop).unwrap_err();
    assert_eq!(no.code(), Code::PermissionDenied, "{no}");
    // In the same life it is the same, however often it is welcomed.
    worker.disconnect();
    worker.connect().await.unwrap();
    assert_eq!(worker.welcome().await.image_key, welcome.image_key);
    let bytes = mine.put_checkpoint(chunks(of(0, 1, 1))).await.unwrap().into_inner().bytes;
    worker.report(checkpoint_taken((vm, 0, 1), 1, bytes)).await;
    worker.report(task_failed(vm, 0, 1)).await;
    // The other task's turn; the attempt is over, and nobody has begun the next one.
    assert_eq!(started(&worker.commands().await), (vm, 1, 1));
    let no = mine.put_checkpoint(chunks(of(0, 2, 1))).await.unwrap_err();
    assert!(no.message().contains("no host runs that attempt"), "{no}");
    worker.report(finished(vm, 1, 1)).await;
    assert_eq!(started(&worker.commands().await), (vm, 0, 2));
    let no = theirs.get_checkpoint(of(0, 1, 1)).await.unwrap_err();
    assert!(no.message().contains("host0 runs attempt 2 from checkpoint 1"), "{no}");
    mine.get_checkpoint(of(0, 1, 1)).await.unwrap();
    coordinator.cancel.cancel();
    let end = tokio::spawn(async move { other.obey().await });
    worker.obey().await;
    within("the other's end", end).await.unwrap();
    coordinator.outcome().await.unwrap();
}
