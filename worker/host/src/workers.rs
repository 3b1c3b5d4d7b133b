//! Workers of a run on this host, as child processes.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dormouse_folders::{HeldFolder, remove_abandoned};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::programs::criu_program;

/// Time for workers to clean up and leave once the run is over.
const LEAVE: Duration = Duration::from_secs(20);

/// Time after which remaining workers also get a signal to end: a worker that connects only now would find no
/// coordinator and try for ever.
const UNTOLD: Duration = Duration::from_millis(500);

/// Prefix of the folder names of runs' workers.
const PREFIX: &str = "dormouse-run-";

/// Free bytes of memory above which the workers' folders are held in memory.
const ROOM: u64 = 4 << 30;

/// The workers of a run on this host; dropping it ends them.
///
/// Use: [`LocalWorkers::start`], then [`LocalWorkers::revive`] and [`LocalWorkers::all_gone`] again
/// and again during the run, and [`LocalWorkers::leave`] once it is over.
#[derive(Debug)]
pub struct LocalWorkers {
    workers: Vec<LocalWorker>,
    /// The workers' folders, removed on drop.
    folder: HeldFolder,
}

/// One worker process, with all that is needed to restart it.
#[derive(Debug)]
struct LocalWorker {
    name: String,
    command: Command,
    child: Child,
    log: PathBuf,
    born: Instant,
    /// Number of consecutive times that the worker ended soon after its start, in less than `YOUNG`.
    died_young: u32,
}

/// A worker that runs for less than this time counts as ended soon after its start.
const YOUNG: Duration = Duration::from_secs(10);
/// A worker that ends soon after its start this many times in a row is not started again.
const OFTEN: u32 = 3;

/// Makes a new folder of this process for task files; folders of dead processes are removed. The folder is in memory if
/// there is a suitable file system, so that images are written as fast as they are dumped and their removal doesn't
/// block a disk; else among temporary files.
///
/// # Errors
///
/// The system refuses.
pub fn make_folder() -> io::Result<HeldFolder> {
    let (memory, disk) = (Path::new("/dev/shm"), std::env::temp_dir());
    for place in [memory, &disk] {
        // A folder that is missing or can't be listed has nothing to remove.
        let _ = remove_abandoned(place, PREFIX);
    }
    let roomy = nix::sys::statvfs::statvfs(memory)
        .is_ok_and(|fs| fs.blocks_available().saturating_mul(fs.fragment_size()) >= ROOM);
    if roomy && let Ok(folder) = HeldFolder::create(memory, PREFIX) {
        return Ok(folder);
    }
    Ok(HeldFolder::create(&disk, PREFIX)?)
}

impl LocalWorkers {
    /// Starts `count` processes of this program as workers that dial `coordinator` and join with
    /// the token in this file; their output goes to files in `logs`.
    ///
    /// # Errors
    ///
    /// The system refuses to make a file or a process.
    pub fn start(
        count: u32,
        coordinator: SocketAddr,
        secret: &Path,
        logs: &Path,
    ) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let folder = make_folder()?;
        let mut all = Self { workers: Vec::new(), folder };
        for n in 0..count {
            let name = format!("local-{n}");
            let log = logs.join(format!("worker-{n}.log"));
            // Append, so that a restarted worker's output follows that of its first life.
            let output = File::options().create(true).append(true).open(&log)?;
            output.set_len(0)?;
            let mut command = Command::new(&program);
            command
                .arg("worker")
                .args(["--coordinator", &coordinator.to_string(), "--name", &name, "--root"])
                .arg(all.folder.path().join(&name))
                .args(["--of", &count.to_string()])
                // The coordinator listens by now.
                .args(["--wait", "30s"])
                .args(["--parent", &std::process::id().to_string(), "--secret-file"])
                .arg(secret)
                // The one that doctor has looked at.
                .arg("--criu")
                .arg(criu_program())
                .stdin(Stdio::null())
                .stdout(output.try_clone()?)
                .stderr(output);
            let (child, born) = (command.spawn()?, Instant::now());
            all.workers.push(LocalWorker { name, command, child, log, born, died_young: 0 });
        }
        Ok(all)
    }

    /// Restarts workers that have ended, unless they keep ending soon after their start.
    pub fn revive(&mut self) {
        for worker in &mut self.workers {
            let Ok(Some(status)) = worker.child.try_wait() else { continue };
            let young = worker.born.elapsed() < YOUNG;
            worker.died_young = if young { worker.died_young + 1 } else { 0 };
            if worker.died_young > OFTEN {
                continue;
            }
            match worker.command.spawn() {
                Ok(child) => {
                    eprintln!(
                        "dormouse: worker {} ended with {status} and was started again",
                        worker.name
                    );
                    (worker.child, worker.born) = (child, Instant::now());
                }
                Err(error) => {
                    worker.died_young = OFTEN;
                    tracing::warn!(%error, worker = worker.name, "the process can't be started again");
                }
            }
        }
    }

    /// Returns how the first worker ended, with its last line of output, if all workers have ended; `None` otherwise.
    #[must_use]
    pub fn all_gone(&mut self) -> Option<String> {
        let mut first = None;
        for worker in &mut self.workers {
            let status = worker.child.try_wait().ok()??;
            let words = std::fs::read_to_string(&worker.log).unwrap_or_default();
            let last =
                words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            first.get_or_insert_with(|| {
                format!("worker {} ended with {status}: {last}", worker.name)
            });
        }
        first
    }

    /// Waits until the worker processes have ended; kills those that haven't at the end of the time limit.
    pub fn leave(mut self) {
        let over = Instant::now();
        self.wait_until(over + UNTOLD);
        for worker in &mut self.workers {
            worker.terminate_worker();
        }
        self.wait_until(over + LEAVE);
    }

    /// Waits until all workers have ended, at most until this instant.
    fn wait_until(&mut self, until: Instant) {
        while self.workers.iter_mut().any(LocalWorker::is_there) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl LocalWorker {
    fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks the process to clean up and end, if it still runs.
    fn terminate_worker(&mut self) {
        if self.is_there() {
            let pid = Pid::from_raw(self.child.id().cast_signed());
            // The process id stays valid until the child is waited for.
            let _ = kill(pid, Signal::SIGTERM);
        }
    }
}

impl Drop for LocalWorkers {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            if worker.is_there() {
                // The worker's guardian cleans up after it.
                let _ = worker.child.kill();
                let _ = worker.child.wait();
            }
        }
    }
}
