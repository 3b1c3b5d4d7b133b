//! The progress page: how a running task says how far it is.
//!
//! One file of exactly [`PAGE_BYTES`] bytes, mapped shared by the task and read by the agent.
//! There is no pipe or socket to lose and no file that grows, so the task can be dumped and
//! restored by CRIU at any moment, also on another host, as long as a file of that size is
//! at that path. What the file holds at a restore does not matter: the task keeps its own
//! counts and writes absolute values at its next unit of work.
//!
//! Layout, version 1, all fields little-endian 64-bit words:
//!
//! | offset | field |
//! |---|---|
//! | 0 | magic, the bytes `DORMPROG`; zero until the task has set the page up |
//! | 8 | layout version, 1 |
//! | 16 | [`State`] |
//! | 24 | progress in parts per million |
//! | 32 | CPU time spent by the work, nanoseconds |
//! | 40 | units of work done |
//! | 48 | heartbeat, one more at every unit of work |
//! | 56 | hold: while it is 1 the task waits before its first unit of work |
//! | 64 | ranks: how many processes a parallel job has; 0 until they are there, and for others |
//! | 72… | the PID of each rank in the task's PID namespace; 256 words |
//! | 2120… | what each rank has computed in all, 10 µs of CPU time: 256 half words |
//! | 4080 | own clock: what the task's clock showed when it was last stopped, nanoseconds |
//! | 4088 | foreign: what of its thread's CPU time is not its own, nanoseconds, signed |
//!
//! Three words are not the task's. Who makes the file before the task starts may set the hold
//! ([`create_held`]), and clears it ([`let_go`]) once all is ready for the work, such as the quota
//! it is to run under. Who stops the task to have others run code in its thread, as CRIU does,
//! says how much of the thread's CPU time was theirs ([`set_clock`]) before it runs on: the task's
//! clock is its thread's less that. A restored task is another thread, whose clock begins
//! anew, so that the foreign part may be negative. The rest of the page is zero. Each word is written at once and only ever grows, except that
//! a restore goes back to the counts of the checkpoint. A reader may see one word of a unit
//! and another of the unit before.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Size of the progress file.
pub const PAGE_BYTES: usize = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"DORMPROG");
const VERSION: u64 = 1;

const WORDS: usize = PAGE_BYTES / 8;
const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 1;
const AT_STATE: usize = 2;
const AT_PPM: usize = 3;
const AT_CPU_NS: usize = 4;
const AT_UNITS: usize = 5;
const AT_HEARTBEAT: usize = 6;
const AT_HOLD: usize = 7;
const AT_RANKS: usize = 8;
const AT_PIDS: usize = 9;
const AT_OWN: usize = WORDS - 2;
const AT_FOREIGN: usize = WORDS - 1;

/// The most ranks whose PIDs a page can hold.
pub const MAX_RANKS: usize = 256;

/// Half a word for each rank, so that no two of them write the same.
const AT_WORK: usize = AT_PIDS + MAX_RANKS;
const _: () = assert!(AT_WORK + MAX_RANKS / 2 <= AT_OWN);
/// In which the work is counted: eleven hours fit.
const WORK_UNIT: Duration = Duration::from_micros(10);

/// How often a held task looks whether it may go.
const LOOK: Duration = Duration::from_micros(200);

/// Makes a page before its task starts, which will wait before its first unit of work.
///
/// # Errors
///
/// [`ProgressError::Io`] when the file cannot be created or written.
pub fn create_held(path: &Path) -> Result<(), ProgressError> {
    let mut page = [0; PAGE_BYTES];
    page[AT_HOLD * 8] = 1;
    std::fs::write(path, page).map_err(|source| ProgressError::Io {
        path: path.to_path_buf(),
        what: "created",
        source,
    })
}

/// Lets a held task begin its work.
///
/// # Errors
///
/// [`ProgressError::Io`] when the file cannot be opened or written.
pub fn let_go(path: &Path) -> Result<(), ProgressError> {
    let at = (AT_HOLD * 8) as u64;
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|file| file.write_all_at(&[0; 8], at))
        .map_err(|source| ProgressError::Io { path: path.to_path_buf(), what: "written", source })
}

/// The two words about a task's clock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// What it showed when the task was last stopped.
    pub own: i64,
    /// What of the CPU time of its thread is not its own.
    pub foreign: i64,
}

/// Sets a stopped task's clock.
///
/// # Errors
///
/// [`ProgressError::Io`] when the file cannot be opened or written.
pub fn set_clock(path: &Path, clock: Clock) -> Result<(), ProgressError> {
    let mut words = [0; 16];
    words[..8].copy_from_slice(&clock.own.to_le_bytes());
    words[8..].copy_from_slice(&clock.foreign.to_le_bytes());
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|file| file.write_all_at(&words, (AT_OWN * 8) as u64))
        .map_err(|source| ProgressError::Io { path: path.to_path_buf(), what: "written", source })
}

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The page is not set up yet.
    #[default]
    Starting,
    /// The work is under way.
    Running,
    /// The work is done; verified, or without a reference to verify against.
    Done,
    /// The work is done and its answer is wrong.
    Failed,
}

impl State {
    fn from_word(word: u64) -> Option<Self> {
        [Self::Starting, Self::Running, Self::Done, Self::Failed]
            .into_iter()
            .find(|state| state.word() == word)
    }

    fn word(self) -> u64 {
        match self {
            Self::Starting => 0,
            Self::Running => 1,
            Self::Done => 2,
            Self::Failed => 3,
        }
    }
}

/// What a progress page says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Where the task is in its life.
    pub state: State,
    /// Parts per million of the CPU time, or of the work, that the task was given;
    /// [`Progress::COMPLETE`] only at the end.
    pub ppm: u64,
    /// CPU time the work has taken, over all the processes it has lived in.
    pub cpu: Duration,
    /// Units of work done; what a unit is depends on the program.
    pub units: u64,
    /// Grows at every unit of work, at least every few milliseconds of CPU time.
    pub heartbeat: u64,
}

impl Progress {
    /// `ppm` of a run that is over.
    pub const COMPLETE: u64 = 1_000_000;
}

/// Why a progress page cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ProgressError {
    /// The file cannot be opened, sized or mapped.
    #[error("progress file {}: cannot be {what}; give a path in a writable directory", path.display())]
    Io {
        /// The progress file.
        path: PathBuf,
        /// What was tried: "created", "opened", "sized", "mapped", "written" or "read".
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The file is there but is not a progress page of this version.
    #[error("progress file {}: {what}; give the file the task was started with", path.display())]
    NotAPage {
        /// The progress file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

/// The agent's side: reads the page of a running task.
///
/// It reads the file and does not map it, so that a task that truncates its file gives an
/// error here and not a SIGBUS.
#[derive(Debug)]
pub struct ProgressReader {
    path: PathBuf,
    file: File,
}

impl ProgressReader {
    /// Opens the page at `path`, which must exist; the task may not have set it up yet.
    ///
    /// A reader follows the file, not the path: open again after replacing the file.
    ///
    /// # Errors
    ///
    /// [`ProgressError::Io`] when the file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ProgressError> {
        let path = path.as_ref().to_path_buf();
        let file = File::open(&path).map_err(|source| ProgressError::Io {
            path: path.clone(),
            what: "opened",
            source,
        })?;
        Ok(Self { path, file })
    }

    /// What the page says now; all zero and [`State::Starting`] until the task has set it up.
    ///
    /// # Errors
    ///
    /// [`ProgressError::NotAPage`] when the file holds something else.
    pub fn read(&self) -> Result<Progress, ProgressError> {
        let mut bytes = [0; AT_HOLD * 8];
        match self.file.read_exact_at(&mut bytes, 0) {
            // Created, not yet sized.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Progress::default()),
            Err(source) => {
                return Err(ProgressError::Io { path: self.path.clone(), what: "read", source });
            }
            Ok(()) => {}
        }
        let (chunks, _) = bytes.as_chunks::<8>();
        let word = |at: usize| u64::from_le_bytes(chunks[at]);
        match (word(AT_MAGIC), word(AT_VERSION)) {
            (0, _) => return Ok(Progress::default()),
            (MAGIC, VERSION) => {}
            (MAGIC, other) => {
                return Err(self.not_a_page(format!("has layout version {other}, not {VERSION}")));
            }
            _ => return Err(self.not_a_page("is not a progress page".to_owned())),
        }
        let state = State::from_word(word(AT_STATE))
            .ok_or_else(|| self.not_a_page(format!("has unknown state {}", word(AT_STATE))))?;
        Ok(Progress {
            state,
            ppm: word(AT_PPM).min(Progress::COMPLETE),
            cpu: Duration::from_nanos(word(AT_CPU_NS)),
            units: word(AT_UNITS),
            heartbeat: word(AT_HEARTBEAT),
        })
    }

    /// What the page says of the task's clock.
    ///
    /// # Errors
    ///
    /// [`ProgressError::Io`] when the file cannot be read.
    pub fn clock(&self) -> Result<Clock, ProgressError> {
        let mut words = [0; 16];
        match self.file.read_exact_at(&mut words, (AT_OWN * 8) as u64) {
            // Created, not yet sized.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Clock::default()),
            Err(source) => {
                return Err(ProgressError::Io { path: self.path.clone(), what: "read", source });
            }
            Ok(()) => {}
        }
        let (words, _) = words.as_chunks::<8>();
        Ok(Clock { own: i64::from_le_bytes(words[0]), foreign: i64::from_le_bytes(words[1]) })
    }

    /// The PIDs of a parallel job's ranks in the task's own PID namespace, by rank; empty until
    /// all are there, and for a program of one process.
    ///
    /// # Errors
    ///
    /// [`ProgressError::NotAPage`] when the file holds something else.
    pub fn ranks(&self) -> Result<Vec<i32>, ProgressError> {
        let mut bytes = [0; PAGE_BYTES];
        match self.file.read_exact_at(&mut bytes, 0) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Vec::new()),
            Err(source) => {
                return Err(ProgressError::Io { path: self.path.clone(), what: "read", source });
            }
            Ok(()) => {}
        }
        let (words, _) = bytes.as_chunks::<8>();
        let count = u64::from_le_bytes(words[AT_RANKS]);
        if count > MAX_RANKS as u64 {
            return Err(self.not_a_page(format!("names {count} ranks, more than it can hold")));
        }
        let pids = words[AT_PIDS..].iter().take(count as usize).map(|w| u64::from_le_bytes(*w));
        pids.map(|pid| {
            i32::try_from(pid).map_err(|_| self.not_a_page(format!("names a rank with PID {pid}")))
        })
        .collect()
    }

    /// The CPU time that each of `ranks` ranks has computed for, over all its lives. A step of the
    /// kernel's clock that its work can't explain, as where a host stood still, is not in it.
    ///
    /// # Errors
    ///
    /// [`ProgressError::Io`] when the file can't be read or is too short.
    pub fn work(&self, ranks: usize) -> Result<Vec<Duration>, ProgressError> {
        let mut bytes = [0; MAX_RANKS * 4];
        let at = (AT_WORK * 8) as u64;
        self.file.read_exact_at(&mut bytes, at).map_err(|source| ProgressError::Io {
            path: self.path.clone(),
            what: "read",
            source,
        })?;
        let (counts, _) = bytes.as_chunks::<4>();
        let work = counts.iter().take(ranks).map(|count| WORK_UNIT * u32::from_le_bytes(*count));
        Ok(work.collect())
    }

    fn not_a_page(&self, what: String) -> ProgressError {
        ProgressError::NotAPage { path: self.path.clone(), what }
    }
}

/// The task's side: a page mapped into memory.
#[derive(Debug)]
pub struct ProgressWriter {
    page: NonNull<AtomicU64>,
}

impl ProgressWriter {
    /// Creates the file at `path`, or takes the one that is there, and sets the page up.
    ///
    /// # Errors
    ///
    /// [`ProgressError::Io`] when the file cannot be created, sized or mapped.
    pub fn create(path: &Path) -> Result<Self, ProgressError> {
        let failed =
            |what| move |source| ProgressError::Io { path: path.to_path_buf(), what, source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed("opened"))?;
        let mut hold = [0; 8];
        // A file that is too short holds nobody.
        let held = file.read_exact_at(&mut hold, (AT_HOLD * 8) as u64).is_ok() && hold[0] == 1;
        file.set_len(PAGE_BYTES as u64).map_err(failed("sized"))?;
        // Written, not just sized: a full disk is an error here and not a SIGBUS later. All but
        // the hold, which may be taken away at any moment.
        file.write_all_at(&[0; AT_HOLD * 8], 0).map_err(failed("sized"))?;
        if !held {
            file.write_all_at(&[0; PAGE_BYTES - AT_HOLD * 8], (AT_HOLD * 8) as u64)
                .map_err(failed("sized"))?;
        }
        let page = map_shared(&file).map_err(failed("mapped"))?;
        let writer = Self { page };
        writer.store(AT_VERSION, VERSION);
        writer.word(AT_MAGIC).store(MAGIC.to_le(), Ordering::Release);
        Ok(writer)
    }

    /// Says that the task is there, and waits for as long as it is held.
    pub fn wait_while_held(&self) {
        if self.word(AT_HOLD).load(Ordering::Acquire) == 0 {
            return;
        }
        self.write(&Progress { state: State::Running, heartbeat: 1, ..Progress::default() });
        while self.word(AT_HOLD).load(Ordering::Acquire) != 0 {
            std::thread::sleep(LOOK);
        }
    }

    /// What of this thread's CPU time is not the task's own, in nanoseconds.
    pub(crate) fn foreign_ns(&self) -> i64 {
        u64::from_le(self.word(AT_FOREIGN).load(Ordering::Relaxed)).cast_signed()
    }

    /// Publishes `progress`.
    pub fn write(&self, progress: &Progress) {
        self.store(AT_PPM, progress.ppm);
        self.store(AT_CPU_NS, u64::try_from(progress.cpu.as_nanos()).unwrap_or(u64::MAX));
        self.store(AT_UNITS, progress.units);
        self.store(AT_HEARTBEAT, progress.heartbeat);
        self.store(AT_STATE, progress.state.word());
    }

    /// Names a parallel job's ranks, at most [`MAX_RANKS`]: what says that they are all there is
    /// written last.
    pub fn write_ranks(&self, pids: &[i32]) {
        for (at, pid) in (AT_PIDS..AT_WORK).zip(pids) {
            self.store(at, u64::from(pid.unsigned_abs()));
        }
        self.word(AT_RANKS).store((pids.len() as u64).to_le(), Ordering::Release);
    }

    /// Says what rank `rank` has computed.
    pub fn write_work(&self, rank: usize, cpu: Duration) {
        let count = cpu.as_nanos() / WORK_UNIT.as_nanos();
        let count = u32::try_from(count).unwrap_or(u32::MAX).to_le();
        self.half_word(AT_WORK * 2 + rank.min(MAX_RANKS - 1)).store(count, Ordering::Relaxed);
    }

    fn half_word(&self, at: usize) -> &AtomicU32 {
        assert!((AT_WORK * 2..WORDS * 2).contains(&at));
        #[expect(unsafe_code, reason = "a mapping is a raw pointer")]
        // SAFETY: as for `word`; from `AT_WORK` on the mapping is touched by half words only.
        unsafe {
            self.page.cast::<AtomicU32>().add(at).as_ref()
        }
    }

    fn store(&self, at: usize, value: u64) {
        self.word(at).store(value.to_le(), Ordering::Relaxed);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < WORDS);
        #[expect(unsafe_code, reason = "a mapping is a raw pointer")]
        // SAFETY: the mapping is PAGE_BYTES long, page-aligned, lives as long as `self`, and
        // this process touches it through atomics only.
        unsafe {
            self.page.add(at).as_ref()
        }
    }
}

impl Drop for ProgressWriter {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the mapping ends with its owner")]
        // SAFETY: `page` is the start of a mapping of PAGE_BYTES that nothing else refers to.
        unsafe {
            libc::munmap(self.page.as_ptr().cast(), PAGE_BYTES);
        }
    }
}

/// Maps the first page of `file`; the mapping outlives the file descriptor.
fn map_shared(file: &File) -> io::Result<NonNull<AtomicU64>> {
    #[expect(unsafe_code, reason = "the standard library has no mmap")]
    // SAFETY: a new mapping at an address of the kernel's choice; arguments are in range.
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            PAGE_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;

    fn progress(units: u64) -> Progress {
        Progress {
            state: State::Running,
            ppm: 250_000,
            cpu: Duration::from_nanos(1_234_567_891),
            units,
            heartbeat: units + 1,
        }
    }

    #[test]
    fn the_reader_sees_what_was_written_last() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        let writer = ProgressWriter::create(&path).unwrap();
        let reader = ProgressReader::open(&path).unwrap();
        for units in [0, 1, 99] {
            writer.write(&progress(units));
            assert_eq!(reader.read().unwrap(), progress(units));
        }
        drop(writer);
        assert_eq!(reader.read().unwrap(), progress(99));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), PAGE_BYTES as u64);
    }

    #[test]
    fn the_words_are_where_the_layout_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        ProgressWriter::create(&path).unwrap().write(&progress(7));
        let bytes = std::fs::read(&path).unwrap();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(&bytes[..8], b"DORMPROG");
        let words = [8, 16, 24, 32, 40, 48].map(word);
        assert_eq!(words, [1, 1, 250_000, 1_234_567_891, 7, 8]);
        assert!(bytes[56..].iter().all(|b| *b == 0));
    }

    #[test]
    fn the_ranks_of_a_job_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        std::fs::write(&path, "").unwrap();
        let reader = ProgressReader::open(&path).unwrap();
        assert_eq!(reader.ranks().unwrap(), [0; 0]);
        let page = ProgressWriter::create(&path).unwrap();
        assert_eq!(reader.ranks().unwrap(), [0; 0]);
        page.write_ranks(&[2, 3, 40_000]);
        assert_eq!(reader.ranks().unwrap(), [2, 3, 40_000]);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!((bytes[64], bytes[72], bytes[80]), (3, 2, 3));
        for (rank, ms) in [(0, 7), (1, 30_000), (MAX_RANKS - 1, 9)] {
            page.write_work(rank, Duration::from_millis(ms));
        }
        assert_eq!(reader.ranks().unwrap(), [2, 3, 40_000], "they are apart");
        let work = reader.work(MAX_RANKS).unwrap();
        assert_eq!(work[..3], [7, 30_000, 0].map(Duration::from_millis));
        assert_eq!(work[MAX_RANKS - 1], Duration::from_millis(9));
        page.store(AT_RANKS, 600);
        assert!(reader.ranks().unwrap_err().to_string().contains("names 600 ranks"));
    }

    #[test]
    fn a_stopped_tasks_clock_is_set_from_outside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        std::fs::write(&path, "").unwrap();
        assert_eq!(ProgressReader::open(&path).unwrap().clock().unwrap(), Clock::default());
        let page = ProgressWriter::create(&path).unwrap();
        let clock = Clock { own: 7, foreign: -3 };
        set_clock(&path, clock).unwrap();
        assert_eq!(page.foreign_ns(), -3);
        assert_eq!(ProgressReader::open(&path).unwrap().clock().unwrap(), clock);
        page.write(&progress(1));
        assert_eq!(page.foreign_ns(), -3);
        assert!(set_clock(&dir.path().join("none"), clock).is_err());
    }

    #[test]
    fn a_held_task_waits_until_it_is_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        create_held(&path).unwrap();
        let reader = ProgressReader::open(&path).unwrap();
        assert_eq!(reader.read().unwrap().state, State::Starting);
        std::thread::scope(|scope| {
            let task = scope.spawn(|| ProgressWriter::create(&path).unwrap().wait_while_held());
            let begun = std::time::Instant::now();
            while reader.read().unwrap().heartbeat == 0 {
                assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", reader.read());
                std::thread::yield_now();
            }
            assert!(!task.is_finished());
            let_go(&path).unwrap();
            task.join().unwrap();
        });
        // Nobody holds the next one.
        ProgressWriter::create(&path).unwrap().wait_while_held();
    }

    #[test]
    fn a_page_that_is_not_set_up_is_starting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        for content in [vec![], vec![0; PAGE_BYTES]] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(ProgressReader::open(&path).unwrap().read().unwrap(), Progress::default());
        }
    }

    #[test]
    fn anything_else_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress");
        let read = || ProgressReader::open(&path).unwrap().read().unwrap_err().to_string();
        std::fs::write(&path, [b'x'; PAGE_BYTES]).unwrap();
        assert!(read().contains("is not a progress page"), "{}", read());
        let mut page = vec![0; PAGE_BYTES];
        page[..8].copy_from_slice(b"DORMPROG");
        page[8] = 9;
        std::fs::write(&path, &page).unwrap();
        assert!(read().contains("layout version 9"), "{}", read());
        page[8] = 1;
        page[16] = 77;
        std::fs::write(&path, &page).unwrap();
        assert!(read().contains("unknown state 77"), "{}", read());
        assert!(read().contains(&*path.to_string_lossy()));
        let missing = ProgressReader::open(dir.path().join("none")).unwrap_err();
        assert!(matches!(missing, ProgressError::Io { what: "opened", .. }));
    }
}
