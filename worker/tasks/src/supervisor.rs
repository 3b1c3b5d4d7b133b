//! Runs a program of the user's own as a task: its parent, which says that it is there, reaps what it
//! leaves, and notes how it ended once nothing of it is left. The program that checks an answer has a supervisor of
//! its own.
//!
//! ```text
//! dormouse-task own --order FILE --progress FILE --result FILE
//! ```
//!
//! The order says what is run. The program's working directory is the supervisor's, in which the
//! folder [`WORK`] is; its standard output and error are the supervisor's.

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

use serde::{Deserialize, Serialize};

use crate::left;
use crate::progress::{Progress, ProgressError, ProgressWriter, State};

/// The first argument that asks for a supervisor.
pub const KIND: &str = "own";
/// The program's working directory, in that of its task.
pub const WORK: &str = "work";
/// The longest order and the longest end that are read, in bytes.
const LONGEST: u64 = 4 << 20;
/// The longest end that is noted, in bytes.
const RESULT_BYTES: usize = 1024;
/// Time between two beats of a supervisor.
const BEAT: Duration = Duration::from_millis(50);

/// The program that a supervisor is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// All of its environment.
    pub env: BTreeMap<String, String>,
}

/// The end of a program: the status that it returned, or the signal that ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// The program returned this status.
    Status(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Exit {
    /// Whether the program says that all went well.
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

/// The note that a supervisor leaves when its program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnResult {
    /// The end of the program.
    pub exit: Exit,
}

impl OwnResult {
    /// Reads what the supervisor of a task has noted in this file.
    ///
    /// # Errors
    /// The file is not there, is no regular one or too long, or says something else.
    pub fn read(path: &Path) -> io::Result<Self> {
        serde_json::from_slice(&left::read(path, LONGEST)?).map_err(io::Error::from)
    }
}

/// Why a supervisor ends without having run its program to its end.
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
    #[error("{}: cannot be written", path.display())]
    Result { path: PathBuf, source: io::Error },
    #[error("the end of the program can't be waited for")]
    Wait(#[source] io::Error),
    #[error(transparent)]
    Progress(#[from] ProgressError),
}

/// The files that a supervisor is given.
struct Files {
    order: PathBuf,
    progress: PathBuf,
    result: PathBuf,
}

/// Runs the program to its end; what its supervisor is to return: 0 if the program returned 0, and nothing else
/// whatever is in the note, which lies where the program could write.
///
/// # Errors
/// The program was not started, or how it ended can't be noted.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> Result<u8, SupervisorError> {
    keep_to_itself().map_err(SupervisorError::Wait)?;
    let files = files(arguments)?;
    let order = read_order(&files.order)?;
    close_memory();
    // The end of a child wakes the supervisor, and must not pass between two looks.
    let child_ended = block_sigchld().map_err(SupervisorError::Wait)?;
    reserve(&files.result)?;
    let page = ProgressWriter::create(&files.progress)?;
    page.wait_while_held();
    let mut beats = Beats { page, count: 1, child_ended };
    let exit = beats.run(&order.argv, &order.env)?;
    beats.end_others().map_err(SupervisorError::Wait)?;
    note(&files.result, &OwnResult { exit })?;
    // After the result: who sees the end in the page finds the file.
    beats.say(if exit.is_success() { State::Done } else { State::Failed });
    Ok(u8::from(!exit.is_success()))
}

/// Closes this process's memory to others of its user: its children could write there what they like.
fn close_memory() {
    #[expect(unsafe_code, reason = "the standard library does not know this")]
    // SAFETY: takes numbers. Where it is refused there is nobody to be told, and nothing is less safe than before.
    let _ = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}

/// Closes what the kernel shows of this process in `/proc`, its memory and its files, to others of the same user: the
/// program is one.
#[expect(unsafe_code, reason = "the standard library does not know it")]
fn keep_to_itself() -> io::Result<()> {
    // SAFETY: takes numbers.
    match unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn files(mut arguments: impl Iterator<Item = OsString>) -> Result<Files, SupervisorError> {
    let mut file = |name: &str| {
        let is_it = arguments.next().is_some_and(|argument| argument == OsStr::new(name));
        arguments.next().filter(|_| is_it).map(PathBuf::from).ok_or(SupervisorError::Usage)
    };
    Ok(Files { order: file("--order")?, progress: file("--progress")?, result: file("--result")? })
}

fn read_order(path: &Path) -> Result<Order, SupervisorError> {
    let read = left::read(path, LONGEST);
    let order = read.and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
    order.map_err(|source| SupervisorError::Order { path: path.to_owned(), source })
}

/// Keeps room for the result: the program may fill all that there is.
fn reserve(path: &Path) -> Result<(), SupervisorError> {
    let partial = path.with_extension("partial");
    let reserved = fs::write(&partial, [b' '; RESULT_BYTES]);
    reserved.map_err(|source| SupervisorError::Result { path: partial, source })
}

/// Writes the result where room was kept for it, and in one step, so that whoever sees the file sees all of it.
fn note(path: &Path, result: &OwnResult) -> Result<(), SupervisorError> {
    let fail = |source| SupervisorError::Result { path: path.to_owned(), source };
    let json = serde_json::to_vec(result).map_err(|error| fail(error.into()))?;
    let partial = path.with_extension("partial");
    let write = || {
        let mut file = left::open(&partial, OpenOptions::new().write(true))?;
        file.write_all(&json)?;
        // What the program wrote there may be longer.
        file.set_len(json.len() as u64)?;
        fs::rename(&partial, path)
    };
    // The program may have put something else in either place. It runs no more.
    let written = write().or_else(|_| {
        [&partial, path].into_iter().try_for_each(clear)?;
        fs::write(&partial, [b' '; RESULT_BYTES])?;
        write()
    });
    written.map_err(fail)
}

/// Removes whatever is at a path.
fn clear(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let removed = match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        _ => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The page through which a supervisor says that it is there.
struct Beats {
    page: ProgressWriter,
    count: u64,
    child_ended: libc::sigset_t,
}

impl Beats {
    fn say(&mut self, state: State) {
        self.count += 1;
        let ppm = if state == State::Running { 0 } else { Progress::COMPLETE };
        self.page.write(&Progress { state, heartbeat: self.count, ppm, ..Progress::default() });
    }

    /// Runs a program to its end.
    fn run(
        &mut self,
        argv: &[String],
        env: &BTreeMap<String, String>,
    ) -> Result<Exit, SupervisorError> {
        let [program, arguments @ ..] = argv else { return Err(SupervisorError::Usage) };
        let started = Command::new(found(program, env))
            .args(arguments)
            .env_clear()
            .envs(env)
            .current_dir(WORK)
            .stdin(Stdio::null())
            .spawn();
        let start = |source| SupervisorError::Start { program: program.clone(), source };
        let child = started.map_err(start)?;
        self.await_end(&child).map_err(SupervisorError::Wait)
    }

    /// Waits for the end of the child, and reaps all that it leaves meanwhile: in its PID namespace the
    /// supervisor is the first process, whose children orphans become.
    fn await_end(&mut self, child: &Child) -> io::Result<Exit> {
        let child = i32::try_from(child.id()).map_err(io::Error::other)?;
        loop {
            while let Some((pid, exit)) = reap()? {
                if pid == child {
                    return Ok(exit);
                }
            }
            self.say(State::Running);
            self.sleep();
        }
    }

    /// Ends all that the program has left running, and reaps it, so that nobody writes where it wrote any more. Only
    /// the first process of a PID namespace may: of that kill(2) reaches all others there, and nobody else.
    fn end_others(&mut self) -> io::Result<()> {
        if std::process::id() != 1 {
            return Ok(());
        }
        loop {
            #[expect(unsafe_code, reason = "the standard library signals its own children alone")]
            // SAFETY: takes numbers. Where nobody is left it says so, and so does the next call.
            let _ = unsafe { libc::kill(-1, libc::SIGKILL) };
            match reap() {
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.say(State::Running);
                    self.sleep();
                }
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sleeps until a child ends, or it is time to beat again.
    fn sleep(&self) {
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

/// The path of a program: one whose name has no slash is looked for on the `PATH` that it is given, others
/// from its working directory.
fn found(program: &str, env: &BTreeMap<String, String>) -> PathBuf {
    let path = env.get("PATH").filter(|_| !program.contains('/'));
    let places = path.map(OsString::from).unwrap_or_default();
    let mut places = std::env::split_paths(&places).map(|place| place.join(program));
    places.find(|place| place.is_file()).unwrap_or_else(|| PathBuf::from(program))
}

/// Reaps a child that has ended, if there is one.
fn reap() -> io::Result<Option<(i32, Exit)>> {
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

/// Blocks the signal that a child has ended, so that it can be waited for. Programs that are started have
/// no signal blocked: the standard library sees to it.
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
