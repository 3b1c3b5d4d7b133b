//! Programs that test a host: each has one habit that checkpoints may break.
//!
//! ```text
//! dormouse-task probe threads|tcp|clock|files FILE
//! ```
//!
//! A probe publishes heartbeats on the progress page at FILE as long as its habit works: each of its threads advances,
//! data that goes into a connection, file or terminal comes out again, or the clock does not go back. The units on the
//! page are a number that the habit yields: for the clock, its time in nanoseconds.

use std::{
    ffi::OsString,
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::{
        fd::{FromRawFd as _, OwnedFd},
        unix::fs::FileExt as _,
    },
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use crate::clock::monotonic_ns;
use crate::progress::{Progress, ProgressError, ProgressWriter, State};
use crate::signals;

/// First argument of `dormouse-task` that selects a probe, a program with a habit that checkpoints may break.
pub(crate) const KIND: &str = "probe";

/// Time between two heartbeats of a probe, each of which shows that it still runs.
const PAUSE: Duration = Duration::from_millis(1);
/// Number of heartbeats, one in each `PAUSE`, after which an abandoned probe ends.
const BEATS: u64 = 120_000;
/// Longest time for which a probe waits for its TCP connection.
const SILENCE: Duration = Duration::from_secs(10);
const THREADS: usize = 3;

/// Reasons why a probe ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error("probe: give threads, tcp, clock or files, and a file for its progress page")]
    Usage,
    #[error(transparent)]
    Progress(#[from] ProgressError),
    #[error("probe {habit}: can't begin")]
    Begin { habit: ProgramHabit, source: io::Error },
    #[error("probe {habit}: does not continue as it should")]
    Broken { habit: ProgramHabit, source: io::Error },
}

/// One step of a probe's work, called again and again; it returns the number to publish as a heartbeat.
type Beat = Box<dyn FnMut() -> io::Result<u64>>;

/// A habit of programs that checkpoints may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramHabit {
    /// Several threads that must all advance.
    Threads,
    /// A TCP connection with both ends in the probe.
    Tcp,
    /// A clock that the probe reads again and again.
    Clock,
    /// Open files of `/tmp`, `/dev/shm` and `/proc`, and a terminal.
    Files,
}

impl fmt::Display for ProgramHabit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Threads => "threads",
            Self::Tcp => "tcp",
            Self::Clock => "clock",
            Self::Files => "files",
        })
    }
}

/// Runs the probe that the arguments after [`KIND`] select.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<(), ProbeError> {
    let mut arguments = arguments.into_iter();
    let habit = match arguments.next().as_deref().and_then(|habit| habit.to_str()) {
        Some("threads") => ProgramHabit::Threads,
        Some("tcp") => ProgramHabit::Tcp,
        Some("clock") => ProgramHabit::Clock,
        Some("files") => ProgramHabit::Files,
        _ => return Err(ProbeError::Usage),
    };
    let page = ProgressWriter::create(Path::new(&arguments.next().ok_or(ProbeError::Usage)?))?;
    let mut beat = signals::exit_on_sigterm()
        .and_then(|()| habit.begin_probe())
        .map_err(|source| ProbeError::Begin { habit, source })?;
    page.wait_while_held();
    for heartbeat in 1..=BEATS {
        let units = beat().map_err(|source| ProbeError::Broken { habit, source })?;
        page.write(&Progress { state: State::Running, units, heartbeat, ..Progress::default() });
        thread::sleep(PAUSE);
    }
    Ok(())
}

impl ProgramHabit {
    fn begin_probe(self) -> io::Result<Beat> {
        match self {
            Self::Threads => probe_threads(),
            Self::Tcp => probe_tcp(),
            Self::Clock => Ok(probe_clock()),
            Self::Files => probe_files(),
        }
    }
}

fn probe_threads() -> io::Result<Beat> {
    let counts: Arc<[AtomicU64; THREADS]> = Arc::default();
    for n in 0..THREADS {
        let counts = Arc::clone(&counts);
        thread::Builder::new().spawn(move || {
            loop {
                counts[n].fetch_add(1, Ordering::Relaxed);
                thread::sleep(PAUSE);
            }
        })?;
    }
    let mut seen = [0; THREADS];
    Ok(Box::new(move || {
        for (count, seen) in counts.iter().zip(&mut seen) {
            while count.load(Ordering::Relaxed) == *seen {
                thread::sleep(PAUSE);
            }
            *seen = count.load(Ordering::Relaxed);
        }
        Ok(seen.iter().sum())
    }))
}

fn probe_tcp() -> io::Result<Beat> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut one = TcpStream::connect(listener.local_addr()?)?;
    let (mut other, _) = listener.accept()?;
    for end in [&one, &other] {
        end.set_nodelay(true)?;
        end.set_read_timeout(Some(SILENCE))?;
    }
    let mut sent = 0_u64;
    Ok(Box::new(move || {
        // The listener stays open as well.
        let _ = &listener;
        sent += 1;
        let mut come = [0; 8];
        one.write_all(&sent.to_le_bytes())?;
        other.read_exact(&mut come)?;
        match u64::from_le_bytes(come) == sent {
            true => Ok(sent),
            false => Err(io::Error::other("the connection returns other bytes than were sent")),
        }
    }))
}

fn probe_clock() -> Beat {
    let mut last = 0;
    Box::new(move || {
        let now = monotonic_ns();
        if now < last {
            return Err(io::Error::other("the clock went back"));
        }
        last = now;
        Ok(now)
    })
}

/// Opens the files of the probe of open files; returns its step. The task must have its own view of the file system, as the names
/// in `/tmp` are fixed.
fn probe_files() -> io::Result<Beat> {
    let make = |path: &str| {
        let options = OpenOptions::new().read(true).write(true).create_new(true).to_owned();
        options.open(path).map(|file| (path.to_owned(), file))
    };
    let made = [make("/tmp/probe")?, make("/dev/shm/probe")?];
    let (itself, processes) = (File::open("/proc/self/stat")?, File::open("/proc")?);
    let (mut one, mut other) = open_terminal()?;
    let mut count = 0_u64;
    Ok(Box::new(move || {
        count += 1;
        for (path, file) in &made {
            file.write_all_at(&count.to_le_bytes(), 0)?;
            if std::fs::read(path)? != count.to_le_bytes() {
                return Err(io::Error::other(format!("{path} is a different file")));
            }
        }
        let (mut stat, id) = ([0; 64], std::process::id());
        itself.read_at(&mut stat, 0)?;
        if !stat.starts_with(format!("{id} ").as_bytes()) || !processes.metadata()?.is_dir() {
            return Err(io::Error::other("/proc shows a different process"));
        }
        pass_line(&mut other, &mut one, count)
    }))
}

/// Writes `count` as a line into one end of a terminal and returns the number that comes out of the
/// other.
fn pass_line(from: &mut File, to: &mut File, count: u64) -> io::Result<u64> {
    let line = format!("{count}\n");
    from.write_all(line.as_bytes())?;
    // A terminal gives a line in as many pieces as it likes, and ends it in its own way.
    let mut come = Vec::new();
    while !come.ends_with(b"\n") {
        let mut piece = [0; 32];
        match to.read(&mut piece)? {
            0 => return Err(io::Error::other("the terminal has ended")),
            read => come.extend_from_slice(piece.get(..read).unwrap_or_default()),
        }
    }
    match String::from_utf8_lossy(&come) {
        said if said.trim() == line.trim() => Ok(count),
        said => Err(io::Error::other(format!("the terminal returned {said:?}"))),
    }
}

/// Opens a new pseudo-terminal; returns both ends.
#[expect(unsafe_code, reason = "the standard library makes no terminals")]
fn open_terminal() -> io::Result<(File, File)> {
    let (mut one, mut other) = (-1, -1);
    let none = std::ptr::null_mut::<u8>();
    // SAFETY: two descriptors are written, which nobody else owns; the rest is left as it is by default.
    let (one, other) = unsafe {
        if libc::openpty(&raw mut one, &raw mut other, none.cast(), none.cast(), none.cast()) < 0 {
            return Err(io::Error::last_os_error());
        }
        (OwnedFd::from_raw_fd(one), OwnedFd::from_raw_fd(other))
    };
    Ok((File::from(one), File::from(other)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn every_habit_goes_on() {
        for habit in [ProgramHabit::Threads, ProgramHabit::Tcp, ProgramHabit::Clock] {
            let mut beat = habit.begin_probe().unwrap();
            let first = beat().unwrap();
            assert!(beat().unwrap() >= first && first > 0, "{habit}");
        }
    }

    #[test]
    fn a_terminal_gives_each_line() {
        let (mut one, mut other) = open_terminal().unwrap();
        for count in 0..10_000 {
            assert_eq!(pass_line(&mut other, &mut one, count).unwrap(), count);
        }
    }

    #[test]
    fn an_unknown_habit_is_refused() {
        for arguments in [vec!["sleep", "page"], vec!["tcp"], vec![]] {
            let error = run(arguments.into_iter().map(OsString::from)).unwrap_err();
            assert!(matches!(error, ProbeError::Usage), "{error}");
        }
    }
}
