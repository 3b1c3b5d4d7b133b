//! How many no-op tasks a second go through the real gRPC path: conductor, journal with its
//! syncs, session, loopback TCP, and a fake worker that answers at once.
//!
//!     cargo bench -p dormouse-coordinator --bench dispatch [-- TASKS VCPUS REPEATS]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use common::{FakeWorker, Under, live};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).filter_map(|arg| arg.parse::<usize>().ok());
    let tasks = numbers.next().unwrap_or(10_000);
    let vcpus = u32::try_from(numbers.next().unwrap_or(256))?;
    let repeats = numbers.next().unwrap_or(5);
    let parent = std::env::current_dir()?;
    for _ in 0..repeats {
        // On the disk, not in a memory file system: the syncs are part of what is measured.
        let dir = tempfile::Builder::new().prefix("dispatch-").tempdir_in(&parent)?;
        let coordinator = Under::start(live(tasks, vcpus, dir.path())).await;
        let mut worker = FakeWorker::new("bench", 1, coordinator.address);
        worker.millicores = vcpus * 2_000;
        worker.join().await;
        let first = worker.commands().await;
        let began = Instant::now();
        first.into_iter().for_each(|command| worker.carry_out(command));
        worker.flush().await;
        worker.obey().await;
        let took = began.elapsed();
        let done = coordinator.outcome().await?;
        assert_eq!(done.run.unfinished(), 0, "every task is done");
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let rate = tasks as f64 / took.as_secs_f64();
        println!("{tasks} tasks on {vcpus} vCPUs in {took:.3?}: {rate:.0} tasks/s");
    }
    Ok(())
}
