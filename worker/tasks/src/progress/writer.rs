//! Writer of progress pages, for the task.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::value::{
    AT_CPU_NS, AT_FOREIGN, AT_HEARTBEAT, AT_HOLD, AT_MAGIC, AT_PIDS, AT_PPM, AT_RANKS, AT_STATE,
    AT_UNITS, AT_VERSION, AT_WORK, MAGIC, MAX_RANKS, PAGE_BYTES, VERSION, WORDS, WORK_UNIT,
};
use super::{Progress, ProgressError, State};

/// Interval at which a task that has to wait before its first unit of work checks whether it may begin.
const LOOK: Duration = Duration::from_micros(200);

/// A progress page mapped into the task's memory.
#[derive(Debug)]
pub struct ProgressWriter {
    page: NonNull<AtomicU64>,
}

impl ProgressWriter {
    /// Creates the file at `path`, or opens an existing one, and initialises the page.
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
        // A file that is too short has no hold.
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
        writer.store_word(AT_VERSION, VERSION);
        writer.word_at(AT_MAGIC).store(MAGIC.to_le(), Ordering::Release);
        Ok(writer)
    }

    /// Marks the page as set up, and waits until the task may begin its work.
    pub fn wait_while_held(&self) {
        if self.word_at(AT_HOLD).load(Ordering::Acquire) == 0 {
            return;
        }
        self.write(&Progress { state: State::Running, heartbeat: 1, ..Progress::default() });
        while self.word_at(AT_HOLD).load(Ordering::Acquire) != 0 {
            std::thread::sleep(LOOK);
        }
    }

    /// Returns the part of this thread's CPU time that is not the task's own, in nanoseconds.
    pub(crate) fn foreign_ns(&self) -> i64 {
        u64::from_le(self.word_at(AT_FOREIGN).load(Ordering::Relaxed)).cast_signed()
    }

    /// Publishes the task's `progress`.
    pub fn write(&self, progress: &Progress) {
        self.store_word(AT_PPM, progress.ppm);
        self.store_word(AT_CPU_NS, u64::try_from(progress.cpu.as_nanos()).unwrap_or(u64::MAX));
        self.store_word(AT_UNITS, progress.units);
        self.store_word(AT_HEARTBEAT, progress.heartbeat);
        self.store_word(AT_STATE, progress.state.to_word());
    }

    /// Writes the process ids of a parallel job's ranks, at most [`MAX_RANKS`]; their number is
    /// written last.
    pub fn write_ranks(&self, pids: &[i32]) {
        for (at, pid) in (AT_PIDS..AT_WORK).zip(pids) {
            self.store_word(at, u64::from(pid.unsigned_abs()));
        }
        self.word_at(AT_RANKS).store((pids.len() as u64).to_le(), Ordering::Release);
    }

    /// Writes the CPU time that rank `rank` has computed.
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

    pub(super) fn store_word(&self, at: usize, value: u64) {
        self.word_at(at).store(value.to_le(), Ordering::Relaxed);
    }

    fn word_at(&self, at: usize) -> &AtomicU64 {
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
