//! What a peer can hold, and for how long.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod common;

use std::io::Read as _;
use std::net::TcpStream;

use common::*;
use dormouse_proto::v1;

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_nothing_are_few_and_leave_soon() {
    const MANY: usize = 400;
    const MOST: usize = 128;
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, vm) = begun("w", live(1, 1, dir.path())).await;
    let address = coordinator.at.address;
    let mut silent: Vec<_> = (0..MANY).map(|_| TcpStream::connect(address).unwrap()).collect();
    // Those that have waited longest make room at once, the others have their time.
    let closed = |mut stream: TcpStream| {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // What the server says first, if anything, and then the end.
        let mut said = Vec::new();
        match stream.read_to_end(&mut said) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    };
    let last = silent.split_off(MANY - MOST);
    let first = tokio::task::spawn_blocking(move || silent.into_iter().all(closed));
    assert!(within("room for others", first).await.unwrap());
    // Neither the worker that is there nor one that comes is kept from anything by them.
    worker.report(vm_created(vm)).await;
    started(&worker.commands().await);
    let mut other = FakeWorker::new("x", 1, &coordinator.at);
    other.join().await;
    let last = tokio::task::spawn_blocking(move || last.into_iter().all(closed));
    assert!(within("the end of their time", last).await.unwrap());
    // Those that have shown the secret stay.
    other.on_record().await;
    worker.on_record().await;
    coordinator.cancel.cancel();
    let end = tokio::spawn(async move { other.obey().await });
    worker.obey().await;
    within("the other's end", end).await.unwrap();
    coordinator.outcome().await.unwrap();
}

/// More than the threads that a runtime has for what blocks.
#[tokio::test(flavor = "multi_thread")]
async fn seven_hundred_downloads_that_nobody_reads_keep_nobody_else_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, welcome) = joined("w", live(2, 1, dir.path())).await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (_, task, attempt) = started(&worker.commands().await);
    let of = v1::CheckpointRef { run: welcome.run, task, checkpoint: 1, attempt };
    let chunk = |n| v1::CheckpointChunk {
        checkpoint: (n == 0).then(|| of.clone()),
        data: vec![7; 1 << 20].into(),
    };
    let says = Says { secret: Some(coordinator.at.secret.clone()), host: Some(welcome.host) };
    let mut client = client(coordinator.at.address, says.clone()).await;
    let chunks: Vec<_> = (0..8).map(chunk).collect();
    client.put_checkpoint(tokio_stream::iter(chunks)).await.unwrap();
    worker.report(checkpoint_taken(vm, task, attempt, 1)).await;
    worker.report(task_failed(vm, task, attempt)).await;
    // The other task's turn first.
    let (_, other, first) = started(&worker.commands().await);
    worker.report(task_failed(vm, other, first)).await;
    let (_, again, second) = started(&worker.commands().await);
    assert_eq!((again, second), (task, attempt + 1));
    let mut unread = tokio::task::JoinSet::new();
    let (got, mut gets) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..7 {
        let client = common::client(coordinator.at.address, says.clone()).await;
        for _ in 0..100 {
            let (mut client, of, got) = (client.clone(), of.clone(), got.clone());
            unread.spawn(async move {
                let stream = client.get_checkpoint(of).await;
                let _ = got.send(());
                std::future::pending::<()>().await;
                drop(stream);
            });
        }
    }
    within("a download", gets.recv()).await.unwrap();
    for _ in 0..20 {
        worker.report(task_failed(vm, task, attempt)).await;
        worker.on_record().await;
    }
    worker.report(finished(vm, task, second)).await;
    worker.obey_to_the_end().await;
    unread.shutdown().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished(), done.run.counts().hosts_lost), (0, 0));
}
