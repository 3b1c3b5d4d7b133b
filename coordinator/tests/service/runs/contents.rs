//! Contents of users' own programs: who may send and fetch them, and where tasks' outputs are stored.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::*;
use dormouse_coordinator::{ContentPool, LiveRunPlan};
use dormouse_proto::v1;
use dormouse_tasks::own::{FileRef, OwnProgram, Saves, TaskProgram};
use dormouse_units::Bytes;
use tokio_stream::StreamExt as _;
use tonic::{Code, Status};

const INPUT: &[u8] = b"#!/bin/sh";
const QUOTA: u64 = 1 << 20;

type Client = v1::content_store_client::ContentStoreClient<tonic::transport::Channel>;

/// Makes a run of one task that is a user's own program, with an input in the run's folder.
fn own(out: &Path) -> LiveRunPlan {
    let file = out.join("solve");
    std::fs::write(&file, INPUT).unwrap();
    let contents = ContentPool::open(&out.join(ContentPool::FOLDER)).unwrap();
    let input: FileRef = contents.take_in(&file, "solve").unwrap();
    let program = OwnProgram {
        argv: vec!["./solve".to_owned()],
        env: BTreeMap::new(),
        inputs: vec![input],
        handed: Vec::new(),
        outputs: vec!["*.csv".to_owned()],
        mounts: Vec::new(),
        quota: Bytes::new(QUOTA),
        processes: 1,
        saves: Saves::Own,
        verify: None,
        deterministic: false,
    };
    LiveRunPlan { programs: vec![TaskProgram::Own(Arc::new(program))], ..live(1, 1, out) }
}

async fn contents(at: &At, worker: &FakeWorker) -> Client {
    Client::new(at.channel(worker.credential.as_ref()).await)
}

fn digest(content: &[u8]) -> Vec<u8> {
    blake3::hash(content).as_bytes().to_vec()
}

async fn read(mut stream: tonic::Streaming<v1::ContentChunk>) -> Result<Vec<u8>, Status> {
    let mut data = Vec::new();
    while let Some(chunk) = stream.next().await {
        data.extend(chunk?.data);
    }
    Ok(data)
}

struct Of<'a> {
    run: &'a str,
    task: u32,
    attempt: u32,
}

impl Of<'_> {
    fn content(&self, content: &[u8]) -> v1::ContentRef {
        let &Of { run, task, attempt } = self;
        let (digest, bytes) = (digest(content).into(), content.len() as u64);
        v1::ContentRef { run: run.to_owned(), task, attempt, digest, bytes }
    }

    async fn put(
        &self,
        client: &mut Client,
        of: v1::ContentRef,
        data: &[u8],
    ) -> Result<u64, Status> {
        let mut chunks: Vec<_> = data
            .chunks(3)
            .map(|data| v1::ContentChunk {
                data: data.to_vec().into(),
                ..v1::ContentChunk::default()
            })
            .collect();
        chunks[0].content = Some(of);
        client.put(tokio_stream::iter(chunks)).await.map(|receipt| receipt.into_inner().bytes)
    }

    async fn get(&self, client: &mut Client, of: v1::ContentRef) -> Result<Vec<u8>, Status> {
        read(client.get(of).await?.into_inner()).await
    }

    async fn get_inputs(&self, client: &mut Client, contents: &[&[u8]]) -> Result<Vec<u8>, Status> {
        let digests = contents.iter().map(|content| digest(content).into()).collect();
        let of = v1::InputsRef { run: self.run.to_owned(), task: self.task, digests };
        read(client.get_inputs(of).await?.into_inner()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_are_those_of_whoever_runs_their_task_and_end_in_the_run_s_folder() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(own(dir.path())).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.capabilities.push(dormouse_proto::METADATA.to_owned());
    let welcome = worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let mut client = contents(&coordinator.at, &worker).await;
    let of = Of { run: &welcome.run, task: 0, attempt: 1 };
    let (vm, task, attempt) = started(&worker.commands().await);
    assert_eq!((task, attempt), (0, 1));
    // Its input is its own to have, and nothing else is before a checkpoint refers to it.
    let input = of.content(INPUT);
    assert_eq!(of.get(&mut client, input.clone()).await.unwrap(), INPUT);
    assert_eq!(of.get_inputs(&mut client, &[INPUT, INPUT]).await.unwrap(), INPUT.repeat(2));
    assert_eq!(of.put(&mut client, of.content(b"kept"), b"kept").await.unwrap(), 4);
    let no = of.get(&mut client, of.content(b"kept")).await.unwrap_err();
    assert_eq!(no.code(), Code::PermissionDenied, "{no}");
    let no = of.get_inputs(&mut client, &[INPUT, b"kept"]).await.unwrap_err();
    assert_eq!(no.code(), Code::PermissionDenied, "{no}");
    let other = Of { task: 1, ..of };
    let no = other.get_inputs(&mut client, &[INPUT]).await.unwrap_err();
    assert_eq!(no.code(), Code::PermissionDenied, "{no}");
    let asked = [INPUT, b"kept", b"never"].map(|content| digest(content).into()).to_vec();
    let lacking = client.lacks(v1::Contents { digests: asked }).await.unwrap().into_inner();
    assert_eq!(lacking.digests, [digest(b"never")]);
    // What is not what it says, or too much, or another's, is not taken.
    let no = of.put(&mut client, of.content(b"this"), b"that").await.unwrap_err();
    assert_eq!(no.code(), Code::InvalidArgument, "{no}");
    let huge = v1::ContentRef { bytes: 1 << 40, ..of.content(b"x") };
    let no = of.put(&mut client, huge, b"x").await.unwrap_err();
    assert!(no.message().contains("since its last checkpoint"), "{no}");
    let other = v1::ContentRef { attempt: 2, ..of.content(b"x") };
    let no = of.put(&mut client, other, b"x").await.unwrap_err();
    assert!(no.message().contains("runs attempt 1"), "{no}");
    // A checkpoint that refers to a content that is not here is not taken; with one that is, it is.
    let mut checkpoints = worker.client().await;
    let checkpoint = |content: &[u8]| {
        let run = welcome.run.clone();
        let of = v1::CheckpointRef { run, task, checkpoint: 1, attempt };
        let data = checkpoint::image(&welcome, &of, b"memory").into();
        let (checkpoint, contents) = (Some(of), vec![digest(content).into()]);
        tokio_stream::iter([v1::CheckpointChunk { checkpoint, data, contents, unpacked: 0 }])
    };
    let no = checkpoints.put_checkpoint(checkpoint(b"never")).await.unwrap_err();
    assert_eq!(no.code(), Code::NotFound, "{no}");
    checkpoints.put_checkpoint(checkpoint(b"kept")).await.unwrap();
    assert_eq!(of.get(&mut client, of.content(b"kept")).await.unwrap(), b"kept");
    // A damaged one is not passed off as whole.
    let hex = blake3::hash(INPUT).to_hex();
    std::fs::write(dir.path().join("contents").join(&hex[..2]).join(&hex[2..]), "#!/bin/sH")
        .unwrap();
    let no = of.get_inputs(&mut client, &[INPUT]).await.unwrap_err();
    assert_eq!(no.code(), Code::DataLoss, "{no}");
    let hex = blake3::hash(b"kept").to_hex();
    std::fs::write(dir.path().join("contents").join(&hex[..2]).join(&hex[2..]), "kepT").unwrap();
    let no = of.get(&mut client, of.content(b"kept")).await.unwrap_err();
    assert_eq!(no.code(), Code::DataLoss, "{no}");
    // What it leaves in the end.
    of.put(&mut client, of.content(b"1,2"), b"1,2").await.unwrap();
    of.put(&mut client, of.content(b"done"), b"done").await.unwrap();
    let file = |path: &str, content: &[u8]| v1::File {
        path: path.to_owned(),
        digest: digest(content).into(),
        bytes: content.len() as u64,
        executable: false,
    };
    let end = v1::OwnEnd {
        end: Some(v1::own_end::End::Status(0)),
        files: vec![file("stdout", b"done"), file("outputs/a.csv", b"1,2")],
        ..v1::OwnEnd::default()
    };
    let task = Some(v1::TaskRef { vm, task, attempt });
    let (ledger, own) = (Some(v1::Ledger::default()), Some(end));
    let finished = v1::TaskFinished { task, verified: true, ledger, own, ..Default::default() };
    worker.report(v1::report::Report::TaskFinished(finished)).await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!(done.run.unfinished_count(), 0);
    let read = |path: &str| std::fs::read_to_string(dir.path().join("tasks/0").join(path)).unwrap();
    assert_eq!(
        [read("stdout"), read("outputs/a.csv"), read("exit")],
        ["done", "1,2", "status 0\n"]
    );
    assert!(!dir.path().join("contents").exists(), "a run that is over needs none");
}
