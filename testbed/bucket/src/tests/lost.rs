//! A run whose coordinator and folder of checkpoints are lost, and that goes on from a bucket on a real server.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::Path;
use std::sync::Arc;

use dormouse_coordinator::{CoordinatorError, CoordinatorWorld, LiveRunPlan, ObjectStorage};
use dormouse_model::{BucketUrl, CheckpointStore, ServerAddress};
use dormouse_proto::v1;
use dormouse_units::Span;
use tonic::Code;

use super::common::*;
use super::s3::{KEY, SECRET, Server};
use crate::Bucket;

/// The memory in a checkpoint: as much as goes to the bucket in parts.
fn memory(number: u32) -> Vec<u8> {
    (0..2_500_000_u32).flat_map(|n| (n ^ number).to_le_bytes()).collect()
}

async fn get(client: &mut Client, of: v1::CheckpointRef) -> Result<Vec<u8>, tonic::Status> {
    let (mut stream, mut all) = (client.get_checkpoint(of).await?.into_inner(), Vec::new());
    while let Some(chunk) = within("a chunk", stream.message()).await? {
        all.extend_from_slice(&chunk.data);
    }
    Ok(all)
}

/// The run of one task, whose checkpoints are in the bucket of this server.
fn run(out: &Path, server: &str, secret: &str) -> LiveRunPlan {
    let store = CheckpointStore {
        url: BucketUrl::try_from("s3://runs/mine".to_owned()).unwrap(),
        endpoint: Some(ServerAddress::try_from(server.to_owned()).unwrap()),
        region: None,
        // A server that is built without optimisation, beside other tests, answers late.
        timeout: Span::from_secs(10),
    };
    let environment = |name: &str| match name {
        "AWS_ACCESS_KEY_ID" => Some(KEY.to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some(secret.to_owned()),
        _ => None,
    };
    let bucket: Arc<dyn ObjectStorage> = Arc::new(Bucket::open_in(&store, &environment).unwrap());
    LiveRunPlan {
        world: CoordinatorWorld { objects: Some(bucket), ..CoordinatorWorld::default() },
        ..live(1, 1, out)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_goes_on_from_the_bucket_when_the_coordinator_and_its_folder_are_lost() {
    let (dir, buckets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let objects = buckets.path().join("runs/mine");
    std::fs::create_dir(buckets.path().join("runs")).unwrap();
    let server = Server::start(buckets.path()).await;
    let first = run(dir.path(), &server.address, SECRET);
    let pause = first.pause.clone();
    let (coordinator, mut worker, welcome) =
        joined("w", LiveRunPlan { workers_stay: true, ..first }).await;
    let address = coordinator.at.address;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    let mut client = worker.client().await;
    let of = |checkpoint| v1::CheckpointRef { run: welcome.run.clone(), task, checkpoint, attempt };
    let chunks = |number| checkpoint::chunks(&welcome, &of(number), &memory(number));
    let image = |number| checkpoint::image(&welcome, &of(number), &memory(number));
    for number in [1, 2] {
        let receipt = client.put_checkpoint(chunks(number)).await.unwrap().into_inner();
        assert_eq!(receipt.bytes, image(number).len() as u64);
        worker.report(checkpoint_taken((vm, task, attempt), number, receipt.bytes)).await;
    }
    let at = |number| objects.join(format!("{}/checkpoints/0/{number}.1", welcome.run));
    let stored = std::fs::read(at(2)).unwrap();
    assert!(stored.len() == image(2).len(), "it is there before the worker hears so");
    assert!(
        stored.ends_with(&memory(2)) && stored != image(2),
        "under a seal of the coordinator's own"
    );
    // The server is away when the third is sent: it is stored nowhere, and the others are as they were.
    let (endpoint, listens) = (server.address.clone(), server.address.replace("http://", ""));
    server.stop().await;
    let refused = client.put_checkpoint(chunks(3)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Internal, "{refused}");
    let why = format!("the object store: s3://runs/mine at {endpoint} can't be reached");
    assert!(refused.message().starts_with(&why) && !refused.message().contains('\n'), "{refused}");
    pause.cancel();
    assert!(matches!(worker.hear().await, Said::Ended(_)));
    let stopped = coordinator.outcome().await.unwrap_err();
    assert!(matches!(stopped, CoordinatorError::Paused { .. }), "{stopped}");
    worker.disconnect();
    for lost in ["checkpoints", "contents"] {
        std::fs::remove_dir_all(dir.path().join(lost)).unwrap();
    }

    let again = || {
        let again = run(dir.path(), &endpoint, SECRET);
        LiveRunPlan { listen: address, resume: true, ..again }
    };
    let away = Under::start(again()).await.outcome().await.unwrap_err();
    assert!(matches!(away, CoordinatorError::Objects(_)), "{away}");
    assert!(away.to_string().contains("check that the server is running"), "{away}");
    let server = Server::start_at(buckets.path(), &listens).await;
    let coordinator = Under::start(again()).await;
    worker.connect().await.unwrap();
    worker.welcome().await;
    worker.report(task_failed(vm, task, attempt)).await;
    let commands = worker.commands().await;
    let [v1::command::Command::StartTask(start)] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!(start.from.unwrap().checkpoint, 2, "work is not begun anew");
    let mut client = worker.client().await;
    // The server goes once more: who asks is told to ask again.
    server.stop().await;
    let away = get(&mut client, of(2)).await.unwrap_err();
    assert_eq!(away.code(), Code::Unavailable, "{away}");
    let _server = Server::start_at(buckets.path(), &listens).await;
    assert!(get(&mut client, of(2)).await.unwrap() == image(2));
    worker.carry_out(commands[0].clone());
    worker.flush().await;
    assert!(matches!(worker.obey().await, Said::Goodbye(v1::Goodbye { over: true, .. })));
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().restores), (0, 1));
    assert!(!at(2).exists(), "all goes when the run is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_cannot_be_used_ends_a_run_before_it_begins() {
    let (dir, buckets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::start(buckets.path()).await;
    for (secret, said) in
        [("another", "SignatureDoesNotMatch"), (SECRET, "NoSuchBucket); make the bucket")]
    {
        let live = run(dir.path(), &server.address, secret);
        let error = Under::start(live).await.outcome().await.unwrap_err();
        assert!(matches!(error, CoordinatorError::Objects(_)), "{error}");
        let why = error.to_string();
        assert!(why.starts_with("the checkpoint store: s3://runs/mine at http://"), "{why}");
        assert!(why.contains(said) && !why.contains('\n'), "{why}");
    }
}
