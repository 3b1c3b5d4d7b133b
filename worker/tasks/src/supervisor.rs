//! Supervisor of a user's own program: the parent process, which publishes heartbeats on the progress page, reaps
//! orphans, and records how the program ended once all its processes are gone. The program that checks an answer has a
//! supervisor of its own.
//!
//! ```text
//! dormouse-task own --order FILE --progress FILE --result FILE
//! ```
//!
//! The order names the program. The program's working directory is [`WORK`] in the supervisor's; its
//! standard output and error are the supervisor's.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use dormouse_folders::remove_tree;
use serde::{Deserialize, Serialize};

use crate::left;
use crate::progress::{Progress, ProgressError, ProgressWriter, State};

/// First argument of `dormouse-task` that selects a supervisor, the parent of a user's own program.
pub const KIND: &str = "own";
/// Name of the program's working directory in the task's directory.
pub const WORK: &str = "work";
/// Greatest size of a supervisor's order or record that is read, in bytes.
const LONGEST: u64 = 4 << 20;
/// Greatest size of the record that a supervisor writes at its program's end, in bytes.
const RESULT_BYTES: usize = 1024;
/// Time between two heartbeats of a supervisor.
const BEAT: Duration = Duration::from_millis(50);

/// Order to a supervisor: the program to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The program's whole environment.
    pub env: BTreeMap<String, String>,
}

/// End of a program: its exit status, or the signal that killed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// The program exited with the given status.
    Status(i32),
    /// The signal of the given number killed the program.
    Signal(i32),
}

impl Exit {
    /// Returns whether the program exited with status 0.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Status(0))
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Status(code),
            None => Self::Signal(status.signal().unwrap_or_default()),
        }
    }
}

/// Record that a supervisor writes when its program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnResult {
    /// The end of the program.
    pub exit: Exit,
}

impl OwnResult {
    /// Reads the record from the file at `path`.
    ///
    /// # Errors
    ///
    /// The file is missing, not regular, too long or malformed.
    pub fn read(path: &Path) -> io::Result<Self> {
        serde_json::from_slice(&left::read(path, LONGEST)?).map_err(io::Error::from)
    }
}

/// Reasons why a supervisor fails to run its program to the end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SupervisorError {
    #[error("own: give --order FILE, --progress FILE and --result FILE")]
    Usage,
    #[error("the order {} can't be read", path.display())]
    Order { path: PathBuf, source: io::Error },
    #[error(
        "'{program}' can't be started in its directory; name a program that is on the worker, or an input"
    )]
    Start { program: String, source: io::Error },
    #[error("{}: can't be written", path.display())]
    Result { path: PathBuf, source: io::Error },
    #[error("the supervisor of the program can't {step}")]
    System { step: &'static str, source: io::Error },
    #[error(transparent)]
    Progress(#[from] ProgressError),
}

/// Paths of the files that a supervisor gets as arguments.
struct SupervisorFiles {
    order: PathBuf,
    progress: PathBuf,
    result: PathBuf,
}

/// Runs the program to its end and returns the exit status for the supervisor: 0 only if the
/// program returned 0. The record file can't be trusted for that, as the program could write it.
///
/// # Errors
///
/// The program was not started, or its end can't be recorded.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> Result<u8, SupervisorError> {
    keep_to_itself().map_err(|source| SupervisorError::System {
        step: "hide its memory from the program",
        source,
    })?;
    let files = parse_files(arguments)?;
    let order = read_order(&files.order)?;
    close_memory();
    // The end of a child wakes the supervisor, and must not pass between two looks.
    let child_ended = block_sigchld()
        .map_err(|source| SupervisorError::System { step: "block SIGCHLD", source })?;
    reserve_result(&files.result)?;
    let page = ProgressWriter::create(&files.progress)?;
    page.wait_while_held();
    let mut beats = SupervisorBeats { page, count: 1, child_ended };
    let exit = beats.run(&order.argv, &order.env)?;
    beats
        .end_others()
        .map_err(|source| SupervisorError::System { step: "end its processes", source })?;
    write_result(&files.result, &OwnResult { exit })?;
    // After the result: who sees the end in the page finds the file.
    beats.publish_state(if exit.is_success() { State::Done } else { State::Failed });
    Ok(u8::from(!exit.is_success()))
}

/// Protects this process's memory from other processes of its user, such as the program.
fn close_memory() {
    #[expect(unsafe_code, reason = "the standard library does not know this")]
    // SAFETY: takes numbers. Where it is refused there is nobody to be told, and nothing is less safe than before.
    let _ = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}

/// Hides this process's memory and files in `/proc` from other processes of the same user, such as
/// the program.
#[expect(unsafe_code, reason = "the standard library does not know it")]
fn keep_to_itself() -> io::Result<()> {
    // SAFETY: takes numbers.
    match unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn parse_files(
    mut arguments: impl Iterator<Item = OsString>,
) -> Result<SupervisorFiles, SupervisorError> {
    let mut file = |name: &str| {
        let is_it = arguments.next().is_some_and(|argument| argument == OsStr::new(name));
        arguments.next().filter(|_| is_it).map(PathBuf::from).ok_or(SupervisorError::Usage)
    };
    Ok(SupervisorFiles {
        order: file("--order")?,
        progress: file("--progress")?,
        result: file("--result")?,
    })
}

fn read_order(path: &Path) -> Result<Order, SupervisorError> {
    let read = left::read(path, LONGEST);
    let order = read.and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
    order.map_err(|source| SupervisorError::Order { path: path.to_owned(), source })
}

/// Reserves disk space for the record of the program's end, as the program may fill the disk.
fn reserve_result(path: &Path) -> Result<(), SupervisorError> {
    let partial = path.with_extension("partial");
    let reserved = fs::write(&partial, [b' '; RESULT_BYTES]);
    reserved.map_err(|source| SupervisorError::Result { path: partial, source })
}

/// Writes the record of the program's end into the reserved space in one step, so that a reader sees all of it or nothing.
fn write_result(path: &Path, result: &OwnResult) -> Result<(), SupervisorError> {
    let fail = |source| SupervisorError::Result { path: path.to_owned(), source };
    let json = serde_json::to_vec(result).map_err(|error| fail(error.into()))?;
    let partial = path.with_extension("partial");
    let write = || {
        let mut file = left::open(&partial, OpenOptions::new().write(true))?;
        file.write_all(&json)?;
        // The program may have written a longer file.
        file.set_len(json.len() as u64)?;
        fs::rename(&partial, path)
    };
    // The program may have put something else in either place. It runs no more.
    let written = write().or_else(|_| {
        [&partial, path].into_iter().try_for_each(remove_tree)?;
        fs::write(&partial, [b' '; RESULT_BYTES])?;
        write()
    });
    written.map_err(fail)
}

/// The progress page on which a supervisor publishes heartbeats.
struct SupervisorBeats {
    page: ProgressWriter,
    count: u64,
    child_ended: libc::sigset_t,
}

impl SupervisorBeats {
    fn publish_state(&mut self, state: State) {
        self.count += 1;
        let ppm = if state == State::Running { 0 } else { Progress::COMPLETE };
        self.page.write(&Progress { state, heartbeat: self.count, ppm, ..Progress::default() });
    }

    /// Runs the program `argv` with the environment `env` to its end, and publishes heartbeats during the run.
    fn run(
        &mut self,
        argv: &[String],
        env: &BTreeMap<String, String>,
    ) -> Result<Exit, SupervisorError> {
        let [program, arguments @ ..] = argv else { return Err(SupervisorError::Usage) };
        let started = Command::new(find_program(program, env))
            .args(arguments)
            .env_clear()
            .envs(env)
            .current_dir(WORK)
            .stdin(Stdio::null())
            .spawn();
        let start = |source| SupervisorError::Start { program: program.clone(), source };
        let child = started.map_err(start)?;
        self.await_end(&child)
            .map_err(|source| SupervisorError::System { step: "wait for its end", source })
    }

    /// Waits for the end of the child and reaps orphans meanwhile: in its PID namespace the
    /// supervisor is the first process, which inherits them.
    fn await_end(&mut self, child: &Child) -> io::Result<Exit> {
        let child = i32::try_from(child.id()).map_err(io::Error::other)?;
        loop {
            while let Some((pid, exit)) = reap_child()? {
                if pid == child {
                    return Ok(exit);
                }
            }
            self.publish_state(State::Running);
            self.sleep_until_beat();
        }
    }

    /// Kills and reaps all remaining processes of the program, so that no process still writes to the program's files. Only the
    /// first process of a PID namespace may call this: its kill(2) reaches all other processes of the namespace, and no process
    /// outside.
    fn end_others(&mut self) -> io::Result<()> {
        if std::process::id() != 1 {
            return Ok(());
        }
        loop {
            #[expect(unsafe_code, reason = "the standard library signals its own children alone")]
            // SAFETY: takes numbers. Where nobody is left it says so, and so does the next call.
            let _ = unsafe { libc::kill(-1, libc::SIGKILL) };
            match reap_child() {
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.publish_state(State::Running);
                    self.sleep_until_beat();
                }
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sleeps until a child ends or the next heartbeat is due.
    fn sleep_until_beat(&self) {
        let nanoseconds = BEAT.subsec_nanos().into();
        let span = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
        #[expect(unsafe_code, reason = "the standard library knows no signals")]
        // SAFETY: the set and the time are this function's for as long as the call takes. What it
        // answers is of no use: children are looked for in any case.
        unsafe {
            libc::sigtimedwait(&raw const self.child_ended, std::ptr::null_mut(), &raw const span);
        }
    }
}

/// Returns the path of a program: a name without a slash is searched on the `PATH` in `env`, any other name is relative to the
/// program's working directory.
fn find_program(program: &str, env: &BTreeMap<String, String>) -> PathBuf {
    let path = env.get("PATH").filter(|_| !program.contains('/'));
    let places = path.map(OsString::from).unwrap_or_default();
    let mut places = std::env::split_paths(&places).map(|place| place.join(program));
    places.find(|place| place.is_file()).unwrap_or_else(|| PathBuf::from(program))
}

/// Reaps one child that has ended; `None` if there is none.
fn reap_child() -> io::Result<Option<(i32, Exit)>> {
    let mut status = 0;
    #[expect(unsafe_code, reason = "the standard library waits for its own children alone")]
    // SAFETY: the status is this function's.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    match pid {
        0 => Ok(None),
        1.. => Ok(Some((pid, ExitStatus::from_raw(status).into()))),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            error => Err(error),
        },
    }
}

/// Blocks SIGCHLD so that the supervisor can wait for it. Started programs have no signal blocked: the standard library
/// resets the mask.
fn block_sigchld() -> io::Result<libc::sigset_t> {
    #[expect(unsafe_code, reason = "the standard library knows no signals")]
    // SAFETY: the set is this function's, and initialised before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) {
            0 => Ok(set),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;
    use crate::progress::ProgressReader;

    /// Runs an order in a process of its own, whose working directory and children are its own.
    fn supervise(argv: &[&str]) -> (tempfile::TempDir, Option<OwnResult>, i32) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at(WORK)).unwrap();
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let env = [("PATH", "/usr/bin:/bin"), ("ANSWER", "42")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let order = Order { argv: words(argv), env };
        fs::write(at("order"), serde_json::to_vec(&order).unwrap()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "supervisor::tests::a_supervisor_in_a_process_of_its_own",
                "--include-ignored",
            ])
            .env("SUPERVISED", folder.path())
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let status = child.wait().unwrap().code().unwrap();
        let result = OwnResult::read(&at("result")).ok();
        (folder, result, status)
    }

    #[test]
    fn a_supervisor_in_a_process_of_its_own() {
        let Some(folder) = std::env::var_os("SUPERVISED").map(PathBuf::from) else { return };
        let at = |name: &str| folder.join(name).into_os_string();
        let words: [OsString; 6] = [
            "--order".into(),
            at("order"),
            "--progress".into(),
            at("progress"),
            "--result".into(),
            at("result"),
        ];
        std::process::exit(run(words.into_iter()).map_or(77, i32::from));
    }

    #[test]
    fn a_program_runs_in_its_directory_with_its_environment_and_its_end_is_noted() {
        let script = "echo $ANSWER > answer; (sleep 0 &) ; exit 0";
        let (folder, result, status) = supervise(&["sh", "-c", script]);
        assert_eq!(result, Some(OwnResult { exit: Exit::Status(0) }));
        assert_eq!(status, 0);
        assert_eq!(fs::read_to_string(folder.path().join("work/answer")).unwrap(), "42\n");
        let page = ProgressReader::open(folder.path().join("progress")).unwrap();
        assert_eq!(page.read().unwrap().state, State::Done);
    }

    #[test]
    fn a_program_that_fails_is_noted_whatever_it_put_in_the_place_of_the_note() {
        let good = r#"{"exit":{"status":0}}"#;
        for before in [
            String::new(),
            format!("echo '{good}' > ../result; echo '{good}' > ../result.partial;"),
            // As long as a note that says more, of which the rest must not stay behind the right one.
            format!("echo '{good} {good}' > ../result.partial;"),
            "mkdir -p ../result/deep; rm ../result.partial; mkfifo ../result.partial;".to_owned(),
            "rm ../result.partial; ln -s /etc/passwd ../result.partial;".to_owned(),
        ] {
            let (_, result, status) = supervise(&["sh", "-c", &format!("{before} exit 3")]);
            assert_eq!(result, Some(OwnResult { exit: Exit::Status(3) }), "{before}");
            assert_eq!(status, 1, "{before}");
        }
        let (_, result, _) = supervise(&["sh", "-c", "kill -9 $$"]);
        assert_eq!(result.unwrap().exit, Exit::Signal(9));
    }

    #[test]
    fn what_can_t_be_started_has_no_end() {
        let (_, result, status) = supervise(&["./there-is-none"]);
        assert_eq!((result, status), (None, 77));
    }
}
