//! Start and end of a program's process: the search for its file, and the one processor that it shares with a virtual run.

use std::fs::File;
use std::io;
use std::io::{ErrorKind, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dormouse_policies::program::ProgramConfig;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{AccessFlags, Pid, access, gettid};

use crate::ProgramError;
use crate::last_words::{LastWords, StandardError};
use crate::pipes::ProgramPipes;

/// Time that a program has to end after the end of its output.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that a program that closed its output has to report its exit status.
const LAST_BREATH: Duration = Duration::from_millis(500);

/// A running program; dropping it ends the program.
#[derive(Debug)]
pub(crate) struct ProgramProcess {
    child: Child,
    pub(crate) pipes: ProgramPipes,
    pub(crate) last_words: LastWords,
    /// Time that the program has to end by itself.
    patience: Duration,
}

impl ProgramProcess {
    pub(crate) fn start(config: &ProgramConfig, to: &StandardError) -> Result<Self, ProgramError> {
        let wrong = |refused: io::Error| {
            let remedy = match refused.kind() {
                ErrorKind::NotFound => {
                    "; write its path, such as ./mine.py, and see that the interpreter in its first line \
                     is there"
                }
                ErrorKind::PermissionDenied => "; make it executable with `chmod +x`",
                _ if refused.raw_os_error() == Some(nix::errno::Errno::ENOEXEC as i32) => {
                    "; its first line has to name its interpreter, such as #!/usr/bin/env python3"
                }
                _ => "",
            };
            let command = config.command.join(" ");
            ProgramError::Start { command, refused, remedy }
        };
        let (program, arguments) = match config.command.split_first() {
            Some((program, arguments)) => (program.as_str(), arguments),
            None => ("", &[][..]),
        };
        let mut command = Command::new(find_executable(program).map_err(&wrong)?);
        command.arg0(program);
        ends_with_this_thread(&mut command);
        let mut child = command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LANG", "C.UTF-8")
            .envs(&config.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Signals of the terminal must end only the run; the program ends when its input is
            // closed.
            .process_group(0)
            .spawn()
            .map_err(&wrong)?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let made = || {
            let gone = || io::Error::from(ErrorKind::BrokenPipe);
            let pipes = ProgramPipes::new(stdin.ok_or_else(gone)?, stdout.ok_or_else(gone)?)?;
            Ok((pipes, LastWords::new(stderr.ok_or_else(gone)?, to)?))
        };
        match made() {
            Ok((pipes, last_words)) => Ok(Self { child, pipes, last_words, patience: PATIENCE }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(wrong(error))
            }
        }
    }

    /// Marks the program as failed, so that dropping it does not wait.
    pub(crate) fn has_failed(&mut self) {
        self.patience = Duration::ZERO;
    }

    /// True if the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Description of the program's end, in words that follow its name; `None`: the program still runs.
    pub(crate) fn describe_end(&mut self) -> Option<String> {
        self.ended_within(LAST_BREATH).map(in_words)
    }

    fn ended_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                // The end of a child can only be polled: its signal belongs to the whole process.
                Ok(None) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

/// Asks the kernel to kill the program when the thread that starts it ends: otherwise a program that hangs would
/// outlive a killed process.
#[expect(unsafe_code, reason = "between fork and exec there is no safe way to run anything")]
fn ends_with_this_thread(command: &mut Command) {
    // SAFETY: it is one system call, which allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?));
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, Some(signal)) => match Signal::try_from(signal) {
            Ok(signal) => format!("was ended by {signal}"),
            Err(_) => format!("was ended by signal {signal}"),
        },
        (None, None) => "ended".to_owned(),
    }
}

impl Drop for ProgramProcess {
    fn drop(&mut self) {
        self.pipes.close_input();
        let ended = self.ended_within(self.patience);
        // Whatever it has started goes with it; where all of it has ended, there is no such group.
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        if ended.is_none() {
            // The program may have left its process group.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        self.last_words.wait_for_end();
    }
}

/// Pins a thread to one processor until it is dropped.
#[derive(Debug)]
pub(crate) struct OneProcessor {
    thread: Pid,
    before: CpuSet,
}

impl OneProcessor {
    /// Pins this thread, and the processes that it starts from now on, to one of its allowed processors: a thread
    /// always to the same processor, other threads and processes to the next ones. `None` if only one processor is
    /// allowed.
    pub(crate) fn pin_thread() -> Option<Self> {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static OWN: usize = THREADS.fetch_add(1, Ordering::Relaxed);
        }
        let thread = gettid();
        let before = sched_getaffinity(thread).ok()?;
        let usable = (0..CpuSet::count()).filter(|cpu| before.is_set(*cpu).unwrap_or(false));
        let usable: Vec<usize> = usable.collect();
        if usable.len() < 2 {
            return None;
        }
        let own = OWN.with(|own| *own).wrapping_add(std::process::id() as usize);
        let chosen = usable[own % usable.len()];
        let mut one = CpuSet::new();
        one.set(chosen).ok()?;
        sched_setaffinity(thread, &one).ok()?;
        Some(Self { thread, before })
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        // The thread may have ended before.
        let _ = sched_setaffinity(self.thread, &self.before);
    }
}

/// The file that the first word of a command names: with a slash its path, else the first of that
/// name in PATH that may be executed.
///
/// # Errors
///
/// There is no such file, the file may not be executed, or it is neither a binary nor a script that names its
/// interpreter.
pub(crate) fn find_executable(word: &str) -> io::Result<PathBuf> {
    let file = if word.contains('/') { PathBuf::from(word) } else { in_path(word)? };
    access(&file, AccessFlags::X_OK)?;
    let mut first = Vec::new();
    // One that may be executed but not read is given to the system as it is.
    if let Ok(open) = File::open(&file) {
        open.take(4).read_to_end(&mut first)?;
        if !first.starts_with(b"#!") && first != b"\x7fELF" {
            return Err(Errno::ENOEXEC.into());
        }
    }
    Ok(file)
}

fn in_path(word: &str) -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let may_be_executed = |file: &Path| file.is_file() && access(file, AccessFlags::X_OK).is_ok();
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(word));
    files.find(|file| may_be_executed(file)).ok_or_else(|| ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_no_interpreter_is_named_for_is_not_given_to_a_shell() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, content: &str, mode| {
            let path = folder.path().join(name);
            fs::write(&path, content).expect("it is written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is changed");
            path.to_string_lossy().into_owned()
        };
        let script = file("script", "#!/bin/sh\n", 0o755);
        assert_eq!(find_executable(&script).expect("it is one"), PathBuf::from(&script));
        let commands = file("commands", "echo\n", 0o755);
        let refused = find_executable(&commands).expect_err("nobody knows how");
        assert_eq!(refused.raw_os_error(), Some(Errno::ENOEXEC as i32));
        let no_right =
            find_executable(&file("text", "#!/bin/sh\n", 0o644)).expect_err("not allowed");
        assert_eq!(no_right.kind(), ErrorKind::PermissionDenied);
        assert!(find_executable("sh").expect("it is in PATH").is_absolute());
        let nowhere = find_executable("no-such-program-anywhere").expect_err("there is none");
        assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    }
}
