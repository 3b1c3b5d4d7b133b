//! Bounds on the resources that a peer can hold, and for how long.

use std::io::Read as _;
use std::net::TcpStream;

use crate::common::*;
use dormouse_proto::v1;

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_nothing_are_few_and_leave_soon() {
    const MANY: usize = 400;
    const MAX_CANDIDATES: usize = 128;
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
    let last = silent.split_off(MANY - MAX_CANDIDATES);
    let first = tokio::task::spawn_blocking(move || silent.into_iter().all(closed));
    assert!(within("room for others", first).await.unwrap());
    // Neither the worker that is there nor one that comes is kept from anything by them.
    worker.report(vm_created(vm)).await;
    started(&worker.commands().await);
    let mut other = FakeWorker::new("x", &coordinator.at);
    other.join().await;
    let last = tokio::task::spawn_blocking(move || last.into_iter().all(closed));
    assert!(within("the end of their time", last).await.unwrap());
    // Those that have shown who they are stay.
    other.on_record().await;
    worker.on_record().await;
    coordinator.cancel.cancel();
    let end = tokio::spawn(async move { other.obey().await });
    worker.obey().await;
    within("the other's end", end).await.unwrap();
    coordinator.outcome().await.unwrap();
}

/// The downloads outnumber the runtime's threads for blocking work.
#[tokio::test(flavor = "multi_thread")]
async fn seven_hundred_downloads_that_nobody_reads_keep_nobody_else_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, welcome) = joined("w", live(2, 1, dir.path())).await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (_, task, attempt) = started(&worker.commands().await);
    let of = v1::CheckpointRef { run: welcome.run.clone(), task, checkpoint: 1, attempt };
    let mut client = worker.client().await;
    let chunks = checkpoint::chunks(&welcome, &of, &vec![7; 8 << 20]);
    let bytes = client.put_checkpoint(chunks).await.unwrap().into_inner().bytes;
    worker.report(checkpoint_taken((vm, task, attempt), 1, bytes)).await;
    worker.report(task_failed(vm, task, attempt)).await;
    // The other task's turn first.
    let (_, other, first) = started(&worker.commands().await);
    worker.report(task_failed(vm, other, first)).await;
    let (_, again, second) = started(&worker.commands().await);
    assert_eq!((again, second), (task, attempt + 1));
    let mut unread = tokio::task::JoinSet::new();
    let (got, mut gets) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..7 {
        let client = worker.client().await;
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
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 0));
}

/// A worker that sends 2.5 GB of a checkpoint would fill a disk in 12 s; its task has only 1 MiB of memory.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_is_no_larger_than_its_task_s_memory_explains() {
    const MIB: usize = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, welcome) = joined("w", live(1, 1, dir.path())).await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (_, task, attempt) = started(&worker.commands().await);
    let of = v1::CheckpointRef { run: welcome.run.clone(), task, checkpoint: 1, attempt };
    let head = checkpoint::head(&welcome, &of, 2_500 * MIB);
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counts = std::sync::Arc::clone(&sent);
    let chunks = (0..2_500).map(move |n| {
        counts.fetch_add(MIB, std::sync::atomic::Ordering::Relaxed);
        v1::CheckpointChunk {
            checkpoint: (n == 0).then(|| of.clone()),
            data: if n == 0 { head.clone().into() } else { vec![7; MIB].into() },
            ..v1::CheckpointChunk::default()
        }
    });
    let mut client = worker.client().await;
    let no = client.put_checkpoint(tokio_stream::iter(chunks)).await.unwrap_err();
    assert_eq!(no.code(), tonic::Code::ResourceExhausted, "{no}");
    assert!(no.message().contains("the most for a task of its memory"), "{no}");
    // What was under way when it was refused came, too.
    let sent = sent.load(std::sync::atomic::Ordering::Relaxed);
    assert!(sent < 700 * MIB, "{sent}");
    let left = || {
        let task = dir.path().join("checkpoints").join(task.to_string());
        std::fs::read_dir(task).is_ok_and(|mut files| files.next().is_some())
    };
    within("what came of it goes", async {
        while left() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // The run is unharmed.
    worker.report(finished(vm, task, attempt)).await;
    worker.obey_to_the_end().await;
    assert_eq!(coordinator.outcome().await.unwrap().run.unfinished_count(), 0);
}

/// Formerly texts of 3.9 MB went into the log, and to every terminal on which they were shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_s_text_is_short_and_plain_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, vm) = begun("w", live(1, 1, dir.path())).await;
    worker.report(vm_created(vm)).await;
    let (_, task, attempt) = started(&worker.commands().await);
    let why = "\u{1b}[2J\u{202e}".to_owned() + &"x".repeat(3_900_000);
    let failed = v1::TaskFailed {
        task: Some(v1::TaskRef { vm, task, attempt }),
        why,
        ..v1::TaskFailed::default()
    };
    worker.report(v1::report::Report::TaskFailed(failed)).await;
    let (_, _, again) = started(&worker.commands().await);
    worker.report(finished(vm, task, again)).await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    let log = std::fs::read_to_string(&done.log).unwrap();
    let line = log.lines().find(|line| line.contains("u001b[2J")).unwrap();
    // Once as it was heard, once as the scheduler was told.
    assert!(line.len() < 10_000 && !line.contains('\u{202e}'), "{}", line.len());
    // Its escape is a text, and no character of it.
    assert!(line.contains(r"\\u001b[2J\\u202exxx"), "{line:.200}");
}

/// Reports that answer no command are limited: a worker that sends them without end is given up, and no other worker
/// is.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_floods_the_log_is_given_up_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut wanted = live(2, 1, dir.path());
    wanted.workers = 2;
    let coordinator = Under::start(wanted).await;
    let mut honest = FakeWorker::new("honest", &coordinator.at);
    let mut floods = FakeWorker::new("floods", &coordinator.at);
    tokio::join!(honest.join(), floods.join());
    let load = || {
        v1::report::Report::HostLoad(v1::HostLoad {
            machine: "m".to_owned(),
            millicores: 1_000,
            ..v1::HostLoad::default()
        })
    };
    let goodbye = async {
        for _ in 0..30 {
            (0..1_000).for_each(|_| floods.make(load()));
            floods.flush().await;
        }
        loop {
            // The VM may have been its own until then.
            if let Said::Goodbye(goodbye) = floods.hear().await {
                return goodbye;
            }
        }
    };
    let goodbye = within("it was cancelled", goodbye).await;
    assert!(goodbye.why.contains("unsolicited messages a second") && !goodbye.over, "{goodbye:?}");
    honest.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 1));
    let bytes = std::fs::metadata(&done.log).unwrap().len();
    assert!(bytes < 20_000_000, "{bytes}");
}
