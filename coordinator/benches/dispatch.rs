//! How many no-op tasks a second go through the real gRPC path: conductor, journal with its
//! syncs, session, loopback TCP, and a worker: a fake one that answers at once, or `dormouse
//! worker`, the program named last, in a process of its own (as root).
//!
//!     cargo bench -p dormouse-coordinator --bench dispatch [-- TASKS VCPUS REPEATS [DORMOUSE]]

#[path = "../tests/service/common/mod.rs"]
mod common;
#[path = "floor/grpc.rs"]
mod floor;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{FakeWorker, Under, live};
use dormouse_coordinator::RunObserver;
use dormouse_model::Step;
use dormouse_samples::Samples;
use tokio::sync::mpsc;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    // cargo says `--bench`, too.
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let mut number = |or| args.next().map_or(Ok(or), |arg| arg.parse::<usize>());
    let (tasks, vcpus, repeats) = (number(10_000)?, number(256)?, number(5)?);
    let (vcpus, dormouse) = (u32::try_from(vcpus)?, args.next());
    let parent = std::env::current_dir()?;
    let mut rates = Samples::default();
    for _ in 0..repeats {
        // On the disk, not in a memory file system: the syncs are part of what is measured.
        let dir = tempfile::Builder::new().prefix("dispatch-").tempdir_in(&parent)?;
        let out = dir.path().join("run");
        let (steps, heard) = mpsc::unbounded_channel();
        let observer = RunObserver { steps: Some(steps), ..RunObserver::default() };
        let coordinator = Under::start(dormouse_coordinator::LiveRunPlan {
            observer,
            ..live(tasks, vcpus, &out)
        })
        .await;
        let timing = tokio::spawn(first_to_last(heard));
        match &dormouse {
            Some(program) => {
                let at = (coordinator.at.address, &*out.join("secret"));
                let mut worker = real_worker(program, at, &dir.path().join("worker"))?;
                let done = coordinator.outcome().await?;
                assert_eq!(done.run.unfinished_count(), 0, "every task is done");
                assert!(worker.wait()?.success(), "the worker ends well");
            }
            None => {
                let mut worker = FakeWorker::new("bench", &coordinator.at);
                worker.millicores = vcpus * 2_000;
                worker.join().await;
                worker.obey().await;
                let done = coordinator.outcome().await?;
                assert_eq!(done.run.unfinished_count(), 0, "every task is done");
            }
        }
        let took = timing.await?;
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let rate = tasks as f64 / took.as_secs_f64();
        let bare = floor::dispatch(u32::try_from(tasks)?, vcpus, dir.path()).await?;
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let bare = tasks as f64 / bare.as_secs_f64();
        rates.push(rate, bare);
        let whose = if dormouse.is_some() { "dormouse worker" } else { "a fake worker" };
        println!(
            "{tasks} tasks on {vcpus} vCPUs of {whose} in {took:.3?}: {rate:.0} tasks/s, bare gRPC {bare:.0}"
        );
    }
    let of = if dormouse.is_some() { "dispatch-worker" } else { "dispatch" };
    rates.report_rates(&format!("{of}-{vcpus}"))?;
    Ok(())
}

fn real_worker(
    program: &str,
    (address, secret): (SocketAddr, &Path),
    root: &Path,
) -> Result<std::process::Child> {
    let mut command = Command::new(program);
    command.args(["worker", "--coordinator", &address.to_string(), "--root"]).arg(root);
    command.arg("--secret-file").arg(secret);
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?)
}

/// Returns the time from the first durable step, the beginning of the run, to the last one.
async fn first_to_last(mut steps: mpsc::UnboundedReceiver<Step>) -> Duration {
    let mut times: Option<(Instant, Instant)> = None;
    while steps.recv().await.is_some() {
        let now = Instant::now();
        times = Some((times.map_or(now, |(first, _)| first), now));
    }
    times.map_or(Duration::ZERO, |(first, last)| last - first)
}
