//! How a coordinator scales with its workers: a live run of 25 VMs and 250 running tasks for each worker, over real
//! gRPC with TLS; the workers send what real ones send but start no processes. For each number of workers it prints the
//! coordinator's delay from a report to the command that follows, how much the coordinator wrote, and its use of CPU
//! time and memory.

#[path = "../../tests/service/common/mod.rs"]
mod common;
mod experiment;
mod measured;
mod ramp;
mod table;
mod usage;
mod workers;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use experiment::Size;
use measured::Row;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// First argument of a process that this program starts as a coordinator.
const COORDINATOR: &str = "coordinator";
const WORKERS: &str = "workers";

fn main() -> Result<()> {
    // cargo says `--bench`, too.
    let args: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [COORDINATOR, workers, task, window, folder] => {
            let size = Size::new(workers.parse()?, seconds(task)?);
            let row = runtime.block_on(ramp::measure(size, seconds(window)?, Path::new(folder)))?;
            println!("{}", row.to_json());
        }
        [WORKERS, address, folder, first, many, latencies] => {
            let at = common::At { address: address.parse()?, folder: folder.into() };
            let names = first.parse()?..first.parse::<u32>()? + many.parse::<u32>()?;
            runtime.block_on(workers::all(&at, names, Path::new(latencies)))?;
        }
        ref given => return all(given),
    }
    Ok(())
}

fn seconds(text: &str) -> Result<Duration> {
    Ok(Duration::try_from_secs_f64(text.parse()?)?)
}

/// Measures each number of workers in a separate process, and prints the rows.
fn all(given: &[&str]) -> Result<()> {
    let mut given = given.iter().copied();
    let sizes = given.next().unwrap_or("10,20,50,100,200");
    let (task, window) = (given.next().unwrap_or("60"), given.next().unwrap_or("20"));
    let (json, parent) = (given.next(), std::env::current_dir()?);
    let mut rows = Vec::new();
    println!("{}", table::head());
    for size in sizes.split(',') {
        // On the disk, not in a memory file system: the syncs are part of what is measured.
        let folder = tempfile::Builder::new().prefix("scale-").tempdir_in(&parent)?;
        let mut coordinator = Command::new(std::env::current_exe()?);
        coordinator.args([COORDINATOR, size, task, window]).arg(folder.path());
        let done = coordinator.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        if !done.status.success() {
            return Err(format!("with {size} workers it failed: {}", done.status).into());
        }
        let row = Row::from_json(&String::from_utf8(done.stdout)?)?;
        println!("{}", table::line(&row));
        rows.push(row);
    }
    if let Some(path) = json {
        std::fs::write(path, measured::to_file(&rows))?;
    }
    Ok(())
}
