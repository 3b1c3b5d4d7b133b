//! Measures one coordinator, from its workers' first calls until all vCPUs have been busy for the window.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dormouse_coordinator::RunProgress;
use tokio::sync::{mpsc, watch};

use crate::experiment::{RAMP, SETTLE, Size};
use crate::measured::{Latencies, Row, Sample};
use crate::{Result, WORKERS, usage};

/// Number of workers in a process.
const IN_A_PROCESS: u32 = 50;
/// Name of the thread that feeds the run its events.
const CONDUCTOR: &str = "conductor";

/// Resources that the process has used up to an instant.
struct Mark {
    at: Instant,
    unix_us: u64,
    cpu: Duration,
    conductor: Duration,
    log: u64,
}

impl Mark {
    fn now(log: &Path) -> Result<Self> {
        Ok(Self {
            at: Instant::now(),
            unix_us: usage::unix_us(),
            cpu: usage::cpu()?,
            conductor: usage::cpu_of_threads(CONDUCTOR)?,
            log: std::fs::metadata(log)?.len(),
        })
    }
}

/// Conducts a run of this size in this folder until the window is over; returns the measured row.
pub(crate) async fn measure(size: Size, window: Duration, folder: &Path) -> Result<Row> {
    let out = folder.join("run");
    let (progress, mut shown) = watch::channel(RunProgress::default());
    let mut live = size.run(window, &out)?;
    live.observer.progress = Some(progress);
    let cancel = live.cancel.clone();
    let bound = live.bind_run().await?;
    let address = bound.address().to_string();
    let began = Instant::now();
    let conducting = tokio::spawn(bound.conduct_run());
    let (busy, all_busy) = mpsc::unbounded_channel();
    let (mut workers, files) = start(size, &address, (&out, folder), &busy)?;
    let begun = tokio::time::timeout(RAMP, shown.wait_for(|it| it.begun)).await;
    if !begun.is_ok_and(|it| it.is_ok()) {
        return Err("the workers did not all join in time".into());
    }
    let joined = began.elapsed();
    // Of a coordinator that can't keep up it is measured all the same what it does.
    let ramp = tokio::time::timeout(RAMP, all_of(size.workers, all_busy)).await;
    let ramp = ramp.map_or(f64::NAN, |()| (began.elapsed() - joined).as_secs_f64());
    tokio::time::sleep(SETTLE).await;
    let log = out.join(dormouse_log::FILE);
    let from = Mark::now(&log)?;
    tokio::time::sleep(window).await;
    let to = Mark::now(&log)?;
    let (memory, peak) = (usage::memory("VmRSS")?, usage::memory("VmHWM")?);
    let at_the_end = *shown.borrow_and_update();
    cancel.cancel();
    let done = conducting.await??;
    if at_the_end.over || done.facts.hosts.values().any(|host| host.lost.is_some()) {
        return Err(format!("the run broke before it was measured: {at_the_end:?}").into());
    }
    let mut samples = Vec::new();
    for (worker, file) in workers.iter_mut().zip(&files) {
        if !worker.wait()?.success() {
            return Err("workers failed".into());
        }
        samples.append(&mut Sample::read(file)?);
    }
    let latencies = Latencies::from_samples(&samples, &(from.unix_us..to.unix_us));
    let seconds = (to.at - from.at).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let per_second = |count: u64| count as f64 / seconds;
    let percent = |used: Duration| used.as_secs_f64() / seconds * 100.0;
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    Ok(Row::new(&[
        ("workers", size.workers.into()),
        ("vms", size.vms().into()),
        ("running", at_the_end.running.into()),
        ("ends_per_s", per_second(latencies.count() as u64)),
        ("steps_per_s", per_second(lines(&log, from.log, to.log)?)),
        ("p50_ms", latencies.percentile_ms(50)),
        ("p99_ms", latencies.percentile_ms(99)),
        ("worst_ms", latencies.worst_ms()),
        ("journal_bytes_per_s", per_second(to.log - from.log)),
        ("cpu_percent", percent(to.cpu - from.cpu)),
        ("conductor_percent", percent(to.conductor - from.conductor)),
        ("memory_mib", mebibytes(memory)),
        ("peak_mib", mebibytes(peak)),
        ("join_s", joined.as_secs_f64()),
        ("ramp_s", ramp),
    ]))
}

/// Starts all workers, fifty to a process, and returns the processes and the files with their samples. `busy` gets a
/// message for each worker whose vCPUs are busy.
fn start(
    size: Size,
    address: &str,
    (out, folder): (&Path, &Path),
    busy: &mpsc::UnboundedSender<()>,
) -> Result<(Vec<Child>, Vec<PathBuf>)> {
    let (mut all, mut files) = (Vec::new(), Vec::new());
    for first in (0..size.workers).step_by(IN_A_PROCESS as usize) {
        let many = IN_A_PROCESS.min(size.workers - first);
        let file = folder.join(format!("latencies-{first}"));
        let mut workers = Command::new(std::env::current_exe()?);
        workers.args([WORKERS, address]).arg(out).args([first, many].map(|it| it.to_string()));
        let mut child = workers.arg(&file).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("it has no output")?).lines();
        let busy = busy.clone();
        std::thread::spawn(move || lines.map_while(|_| busy.send(()).ok()).for_each(drop));
        all.push(child);
        files.push(file);
    }
    Ok((all, files))
}

/// Waits for this many messages from workers, or forever if there are fewer.
async fn all_of(workers: u32, mut heard: mpsc::UnboundedReceiver<()>) {
    for _ in 0..workers {
        if heard.recv().await.is_none() {
            return std::future::pending().await;
        }
    }
}

/// Counts the lines of a file between two byte offsets.
fn lines(file: &Path, from: u64, to: u64) -> Result<u64> {
    let (mut file, mut part) = (File::open(file)?, Vec::new());
    file.seek(SeekFrom::Start(from))?;
    file.take(to - from).read_to_end(&mut part)?;
    Ok(part.iter().filter(|byte| **byte == b'\n').count() as u64)
}
