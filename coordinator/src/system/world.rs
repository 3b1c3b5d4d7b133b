//! The world as a coordinator sees it: its disk, its wall clock, threads for blocking work, and random numbers.
//!
//! A simulation replaces these parts, so that the same code runs in one thread and with the time of its runtime
//! (`tokio::time`), and the same seed gives the same run.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dormouse_log::{LogFile, LogWriter, open_file};
use dormouse_model::BootClock;
use nix::time::{ClockId, clock_gettime};
use tokio::task::JoinError;
use tokio::time::Instant;

use crate::system::disk;
use crate::system::objects::ObjectStorage;
use crate::system::session_limits::SessionLimits;
use crate::time::outage::{MachineTime, to_micros};

/// Disk, clocks, threads and random numbers of one coordinator: the system's, or simulated ones. Clones share them.
#[derive(Clone, Debug)]
pub struct CoordinatorWorld {
    /// Disk of the run's folder.
    pub disk: Arc<dyn LogDisk>,
    /// Wall clock of the coordinator.
    pub wall: WallClock,
    /// Threads for blocking work.
    pub threads: BlockingThreads,
    /// Source of random numbers.
    pub chance: RandomSource,
    /// Object store that keeps the run's checkpoints besides its folder; `None`: the run has no object store.
    pub objects: Option<Arc<dyn ObjectStorage>>,
    /// Bounds on what may be under way between the coordinator and a worker.
    pub limits: SessionLimits,
}

/// A disk whose faults matter to a run: all files of the run are written through it, so that a simulation knows what is
/// durable, and a coordinator whose process is dead writes nothing more.
pub trait LogDisk: fmt::Debug + Send + Sync {
    /// Opens a log file for writing.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Box<dyn LogFile>>;

    /// Checks that something other than the log may be written at this path.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::StorageFull`] if the free disk space is reserved for the log; or the system doesn't tell it.
    fn has_room(&self, path: &Path) -> io::Result<()>;

    /// Creates a file of the store that does not exist yet; only its owner may read it.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn create_file(&self, path: &Path) -> io::Result<Box<dyn StoreFile>>;

    /// Gives a file of the store another name, in place of the file that has it.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn rename_file(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file of the store, if it is there.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Makes a folder of the store and those above it, unless they are there.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Removes a folder of the store with all that is in it, if it is there.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
}

/// A new file of the store, which is written from its beginning.
pub trait StoreFile: Write + fmt::Debug + Send + Sync {}

impl StoreFile for File {}

/// The disk of the system.
#[derive(Debug)]
struct SystemDisk;

impl LogDisk for SystemDisk {
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Box<dyn LogFile>> {
        open_file(path, options)
    }

    fn has_room(&self, path: &Path) -> io::Result<()> {
        disk::has_room(path)
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn StoreFile>> {
        Ok(Box::new(OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?))
    }

    fn rename_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        unless_absent(fs::remove_file(path))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        unless_absent(fs::remove_dir_all(path))
    }
}

/// Turns the error of removing a file that doesn't exist into success.
fn unless_absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A wall clock.
#[derive(Clone, Debug)]
pub enum WallClock {
    /// The system's clock.
    System,
    /// A clock that stands at this number of microseconds since 1970 until it is set.
    Shown(Arc<AtomicU64>),
    /// A clock that runs with the runtime's time.
    Running {
        /// Instant at which the clock began to run.
        since: Instant,
        /// Time that the clock showed at `since`, in microseconds since 1970; changing it sets the clock.
        from: Arc<AtomicU64>,
    },
}

/// Threads for blocking work.
#[derive(Clone, Debug)]
pub enum BlockingThreads {
    /// Work is done on the blocking threads of the runtime.
    System,
    /// The work is done in the calling thread.
    InPlace {
        /// Microseconds from the request for a piece of work until the caller learns that it is done.
        takes: Arc<AtomicU64>,
        /// Source of the random order in which pieces of work that are ready at the same instant are done.
        turns: RandomSource,
    },
}

/// A source of random numbers.
#[derive(Clone, Debug)]
pub enum RandomSource {
    /// The system's random numbers.
    System,
    /// A reproducible stream of random numbers.
    Stream {
        /// Seed of the random stream.
        seed: u64,
        /// Number of draws from the stream.
        drawn: Arc<AtomicU64>,
    },
}

impl Default for CoordinatorWorld {
    fn default() -> Self {
        Self {
            disk: Arc::new(SystemDisk),
            wall: WallClock::System,
            threads: BlockingThreads::System,
            chance: RandomSource::System,
            objects: None,
            limits: SessionLimits::default(),
        }
    }
}

impl CoordinatorWorld {
    /// Creates the log at this path.
    pub(crate) fn create_log(&self, path: &Path) -> Result<LogWriter, dormouse_log::LogError> {
        LogWriter::create_on(path, &|path, options| self.disk.open(path, options))
    }

    /// Opens the log at this path; its first `length` bytes are undamaged.
    pub(crate) fn reopen_log(
        &self,
        path: &Path,
        length: u64,
    ) -> Result<LogWriter, dormouse_log::LogError> {
        LogWriter::reopen_on(path, length, &|path, options| self.disk.open(path, options))
    }

    /// Returns the CPU time that this process has used; zero in a simulation.
    pub(crate) fn own_cpu(&self) -> Duration {
        match self.threads {
            BlockingThreads::System => clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
                .map(Duration::from)
                .unwrap_or_default(),
            BlockingThreads::InPlace { .. } => Duration::ZERO,
        }
    }

    /// Returns what the clocks of this machine show.
    pub(crate) fn machine_time(&self) -> MachineTime {
        let boot = match (&self.wall, self.machine_name()) {
            (WallClock::System, boot) if !boot.is_empty() => Some(boot),
            _ => None,
        };
        let since_boot = boot.and_then(|boot| {
            let us = to_micros(clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?.into());
            Some(BootClock { boot, us })
        });
        MachineTime { unix_us: self.wall.unix_us(), since_boot }
    }

    /// Returns the machine's name with the id of its current boot; empty if unknown.
    pub(crate) fn machine_name(&self) -> String {
        match self.threads {
            BlockingThreads::System => {
                let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
                id.unwrap_or_default().trim().to_owned()
            }
            BlockingThreads::InPlace { .. } => "simulated".to_owned(),
        }
    }
}

impl WallClock {
    /// Returns the microseconds since 1970.
    pub(crate) fn unix_us(&self) -> u64 {
        match self {
            Self::System => {
                to_micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
            }
            Self::Shown(us) => us.load(Ordering::Relaxed),
            Self::Running { since, from } => {
                from.load(Ordering::Relaxed).saturating_add(to_micros(since.elapsed()))
            }
        }
    }
}

impl BlockingThreads {
    /// Runs blocking work and returns its result.
    ///
    /// # Errors
    ///
    /// The work panicked, or the runtime ends.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        match self {
            Self::System => tokio::task::spawn_blocking(work).await,
            Self::InPlace { takes, turns } => {
                // A process can be killed before its work is done, and after that, before anybody hears of it.
                let half = Duration::from_micros(takes.load(Ordering::Relaxed)) / 2;
                pause_for(half, turns).await;
                let done = work();
                pause_for(half, turns).await;
                Ok(done)
            }
        }
    }

    /// Begins blocking work in the background.
    pub(crate) fn begin_work(&self, work: impl FnOnce() + Send + 'static) {
        match self {
            Self::System => drop(tokio::task::spawn_blocking(work)),
            Self::InPlace { .. } => {
                let threads = self.clone();
                tokio::spawn(async move { threads.run(work).await });
            }
        }
    }
}

/// Number of times, exclusive, up to which work that is done in place first yields to other tasks.
const MOST_TURNS: u64 = 4;

async fn pause_for(time: Duration, turns: &RandomSource) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
    for _ in 0..turns.draw_number().unwrap_or(0) % MOST_TURNS {
        tokio::task::yield_now().await;
    }
}

impl RandomSource {
    /// Makes a stream of random numbers at its beginning.
    #[must_use]
    pub fn seeded_stream(seed: u64) -> Self {
        Self::Stream { seed, drawn: Arc::default() }
    }

    /// Fills a buffer with random bytes.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub(crate) fn fill_bytes(&self, bytes: &mut [u8]) -> Result<(), getrandom::Error> {
        match self {
            Self::System => getrandom::fill(bytes),
            Self::Stream { seed, drawn } => {
                let mut hasher = blake3::Hasher::new();
                hasher.update(&seed.to_le_bytes());
                hasher.update(&drawn.fetch_add(1, Ordering::Relaxed).to_le_bytes());
                hasher.finalize_xof().fill(bytes);
                Ok(())
            }
        }
    }

    /// Draws a random 64-bit number.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub(crate) fn draw_number(&self) -> Result<u64, getrandom::Error> {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_from_its_beginning_and_goes_on() {
        let (one, other) = (RandomSource::seeded_stream(7), RandomSource::seeded_stream(7));
        let numbers =
            |chance: &RandomSource| [0, 0].map(|_: u8| chance.draw_number().expect("a number"));
        let first = numbers(&one);
        assert_eq!(first, numbers(&other));
        assert_ne!(first[0], first[1]);
        assert_ne!(first, numbers(&one.clone()), "a clone goes on where it is");
        assert_ne!(first, numbers(&RandomSource::seeded_stream(8)));
    }

    #[tokio::test(start_paused = true)]
    async fn work_in_place_takes_as_long_as_it_is_said_to() {
        let after = Arc::new(AtomicU64::new(0));
        let threads = BlockingThreads::InPlace {
            takes: Arc::clone(&after),
            turns: RandomSource::seeded_stream(1),
        };
        let began = tokio::time::Instant::now();
        assert_eq!(threads.run(|| 3).await.expect("no panic"), 3);
        assert_eq!(began.elapsed(), Duration::ZERO);
        after.store(6_000, Ordering::Relaxed);
        threads.run(|| ()).await.expect("no panic");
        assert_eq!(began.elapsed(), Duration::from_millis(6));
    }
}
