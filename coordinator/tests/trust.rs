//! Whom a coordinator believes what.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod common;

use common::*;
use dormouse_proto::{Secret, v1};
use tokio_stream::StreamExt as _;
use tonic::Code;

fn image() -> Vec<u8> {
    (0..700_001_u32).map(|n| u8::try_from(n % 251).unwrap()).collect()
}

/// A checkpoint as a worker sends it.
fn chunks(
    of: v1::CheckpointRef,
) -> impl tonic::IntoStreamingRequest<Message = v1::CheckpointChunk> {
    let mut chunks: Vec<_> = image()
        .chunks(100_000)
        .map(|data| v1::CheckpointChunk { checkpoint: None, data: data.to_vec().into() })
        .collect();
    chunks[0].checkpoint = Some(of);
    tokio_stream::iter(chunks)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_know_the_secret_is_refused_whatever_it_asks_for() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(1, 1, dir.path())).await;
    let wrong = Secret::new([7; 32]);
    for (secret, word) in [(None, "missing"), (Some(wrong), "not that of this run")] {
        let mut client = client(coordinator.at.address, Says { secret, host: Some(0) }).await;
        let of = v1::CheckpointRef { run: "r".to_owned(), task: 0, checkpoint: 1, attempt: 1 };
        let hello = tokio_stream::pending::<v1::FromWorker>();
        let all = [
            client.status(v1::StatusRequest {}).await.map(drop),
            client.put_checkpoint(chunks(of.clone())).await.map(drop),
            client.get_checkpoint(of).await.map(drop),
            within("an answer", client.session(hello)).await.map(drop),
        ];
        for answer in all {
            let no = answer.unwrap_err();
            assert_eq!(no.code(), Code::Unauthenticated, "{no}");
            assert!(no.message().contains(word) && no.message().contains("--secret-file"), "{no}");
        }
    }
    let says = Says { secret: Some(coordinator.at.secret.clone()), host: None };
    let mut client = client(coordinator.at.address, says).await;
    let status = client.status(v1::StatusRequest {}).await.unwrap().into_inner();
    assert_eq!((status.tasks, status.workers, status.over), (1, 0, false));
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
    let secret = Some(coordinator.at.secret.clone());
    let says = Says { secret, host: Some(welcome.host) };
    let mut client = client(coordinator.at.address, says).await;
    let run = welcome.run;
    let of = |checkpoint| v1::CheckpointRef { run: run.clone(), task, checkpoint, attempt };
    let receipt = client.put_checkpoint(chunks(of(1))).await.unwrap().into_inner();
    assert_eq!(receipt.bytes, image().len() as u64);
    let zeroth = client.put_checkpoint(chunks(of(0))).await.unwrap_err();
    assert_eq!(zeroth.code(), Code::InvalidArgument);
    let former = v1::CheckpointRef { run: "another".to_owned(), ..of(1) };
    let former = client.put_checkpoint(chunks(former)).await.unwrap_err();
    assert_eq!(former.code(), Code::FailedPrecondition);
    // The next attempt begins with the second, which got lost, and makes do with the first.
    worker.report(checkpoint_taken(vm, task, attempt, 2)).await;
    worker.report(task_failed(vm, task, attempt)).await;
    let (_, _, next) = started(&worker.commands().await);
    assert_eq!(next, attempt + 1);
    let not_there = client.get_checkpoint(of(2)).await.unwrap_err();
    assert_eq!(not_there.code(), Code::NotFound);
    let mut stream = client.get_checkpoint(of(1)).await.unwrap().into_inner();
    let mut fetched = Vec::new();
    while let Some(chunk) = within("a chunk", stream.next()).await {
        fetched.extend_from_slice(&chunk.unwrap().data);
    }
    assert!(fetched == image());
    coordinator.cancel.cancel();
    worker.obey().await;
    coordinator.outcome().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_comes_only_from_who_runs_the_task_and_goes_only_to_who_begins_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(2, 1, dir.path())).await;
    let mut worker = FakeWorker::new("w", 1, &coordinator.at);
    let run = worker.join().await.run;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    assert_eq!(started(&worker.commands().await), (vm, 0, 1));
    let mut other = FakeWorker::new("x", 1, &coordinator.at);
    assert_eq!(other.join().await.host, 1);
    let as_host = |host| {
        let secret = Some(coordinator.at.secret.clone());
        client(coordinator.at.address, Says { secret, host })
    };
    let (mut mine, mut theirs) = (as_host(Some(0)).await, as_host(Some(1)).await);
    let of = |task, checkpoint, attempt| {
        let run = run.clone();
        v1::CheckpointRef { run, task, checkpoint, attempt }
    };
    let no = as_host(None).await.put_checkpoint(chunks(of(0, 1, 1))).await.unwrap_err();
    assert_eq!(no.code(), Code::InvalidArgument, "{no}");
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
    mine.put_checkpoint(chunks(of(0, 1, 1))).await.unwrap();
    worker.report(checkpoint_taken(vm, 0, 1, 1)).await;
    worker.report(task_failed(vm, 0, 1)).await;
    // The other task's turn; the attempt is over, and nobody has begun the next one.
    assert_eq!(started(&worker.commands().await), (vm, 1, 1));
    let no = mine.put_checkpoint(chunks(of(0, 2, 1))).await.unwrap_err();
    assert!(no.message().contains("no host runs it"), "{no}");
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
