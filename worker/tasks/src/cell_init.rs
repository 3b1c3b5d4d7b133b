//! The first process of an instance's cell: it runs the instance's user data, reaps orphans, keeps the console, and ends
//! all processes when the instance is shut down, from outside or from inside.
//!
//! ```text
//! dormouse-task cell --order FILE
//! ```
//!
//! The order names the user data. Their working directory is [`WORK`](crate::supervisor::WORK) in this process's
//! directory; the console is this process's standard output.

mod boot_programs;
mod console;
mod first_boot;
mod order;
mod shutdown;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::{self, Read as _},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::process::ExitStatusExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use boot_programs::{EACH_BOOT, boot_programs};
pub use console::CONSOLE_BYTES;
use console::CellConsole;
use first_boot::{link_homes, write_file, write_keys};
use order::read_order;
pub use order::{CellFile, CellOrder};
pub use shutdown::COMMANDS;
use shutdown::{CellSignals, signal_others, write_commands};

use crate::supervisor::WORK;

/// First argument of `dormouse-task` that selects the first process of a cell.
pub const KIND: &str = "cell";
/// Exit status of the first process after a shutdown that a process of the cell has requested.
pub const POWERED_OFF: u8 = 90;
/// The user data, as the console names them.
const DATA: &str = "the user data";
/// The ssh server, as the console names it.
const SSH: &str = "the ssh server";
/// Most reads of output between two looks for signals.
const OUTPUT_READS: usize = 16;
/// Time between two attempts to kill what is left after the time limit of a shutdown.
const KILL_EVERY: Duration = Duration::from_millis(20);

/// Reasons why the first process of a cell can't begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CellError {
    #[error("cell: give --order FILE")]
    Usage,
    #[error("the order {} can't be read", path.display())]
    Order { path: PathBuf, source: io::Error },
    #[error("the first process of the cell can't {step}")]
    System { step: &'static str, source: io::Error },
}

/// Runs the cell until its shutdown; returns the exit status: 0 if the worker has ended the cell, [`POWERED_OFF`] if a
/// process of the cell has.
///
/// # Errors
///
/// The cell can't begin, or its processes can't be waited for.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> Result<u8, CellError> {
    let at = |step| move |source| CellError::System { step, source };
    hide_memory().map_err(at("hide its memory from the cell's programs"))?;
    let order = read_order(arguments)?;
    let signals = CellSignals::receive().map_err(at("receive signals"))?;
    write_commands(Path::new(COMMANDS)).map_err(at("write the commands of a shutdown"))?;
    let mut cell = RunningCell {
        console: CellConsole::new(io::stdout()),
        pipe: None,
        programs: BTreeMap::new(),
        shutdown: None,
        patience: Duration::from_millis(order.shutdown_ms),
    };
    order.notes.iter().for_each(|note| cell.console.say(note));
    cell.prepare_home(&order);
    cell.start_programs(&order);
    cell.run_until_over(&signals).map_err(at("wait for its processes"))
}

/// Hides this process's memory and files in `/proc` from other processes of the same user.
#[expect(unsafe_code, reason = "the standard library does not know it")]
fn hide_memory() -> io::Result<()> {
    // SAFETY: takes numbers.
    match unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A shutdown that is under way.
struct CellShutdown {
    status: u8,
    /// Time at which what is left is killed.
    kill_at: Instant,
}

/// The processes of a cell, as the first of them sees them.
struct RunningCell {
    console: CellConsole<io::Stdout>,
    /// Output of the user data and of what they have started; `None`: nobody can write there any more.
    pipe: Option<File>,
    /// Names of the programs that the first process has started and that have not ended, by their PIDs.
    programs: BTreeMap<i32, String>,
    shutdown: Option<CellShutdown>,
    patience: Duration,
}

impl RunningCell {
    /// Makes the home directories of the user's names, and writes keys and files. What can't be written is said on the console.
    fn prepare_home(&mut self, order: &CellOrder) {
        let mut all = vec![("the home directories".to_owned(), link_homes(&order.names))];
        if !order.keys.is_empty() {
            all.push(("the keys that may log in".to_owned(), write_keys(&order.keys)));
        }
        let files = order.files.iter();
        all.extend(files.map(|file| (file.path.display().to_string(), write_file(file))));
        for (what, written) in all {
            if let Err(error) = written {
                self.console.say(&format!("{what} can't be written: {error}"));
            }
        }
    }

    /// Starts the ssh server, the programs of each boot, and the user data.
    fn start_programs(&mut self, order: &CellOrder) {
        let (own, work) = (Path::new("."), Path::new(WORK));
        let ssh = order.ssh.iter().map(|path| (SSH.to_owned(), path.clone(), own));
        let each_boot = match boot_programs(&work.join(EACH_BOOT)) {
            Ok(found) => found,
            Err(error) => {
                self.console.say(&format!("programs of each boot can't be found: {error}"));
                Vec::new()
            }
        };
        let each_boot = each_boot.into_iter().map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (format!("{EACH_BOOT}/{name}"), path, work)
        });
        let data = order.user_data.iter().map(|path| (DATA.to_owned(), path.clone(), work));
        let programs: Vec<_> = ssh.chain(each_boot).chain(data).collect();
        if programs.is_empty() {
            return;
        }
        let output = match output_pipe() {
            Ok((reader, writer)) => {
                self.pipe = Some(reader);
                writer
            }
            Err(error) => return self.console.say(&format!("nothing can be started: {error}")),
        };
        for (name, program, at) in programs {
            match spawn(&program, &order.env, at, &output) {
                Ok(pid) => drop(self.programs.insert(pid, name)),
                Err(error) => self.console.say(&format!("{name} can't be started: {error}")),
            }
        }
    }

    /// Handles signals and output until the shutdown is over; returns the exit status.
    fn run_until_over(&mut self, signals: &CellSignals) -> io::Result<u8> {
        loop {
            self.wait_for_event(signals)?;
            // Programs that always write more don't keep signals from being heard.
            self.read_output(OUTPUT_READS);
            while let Some(signal) = signals.next_signal()? {
                if signal != libc::SIGCHLD {
                    self.begin_shutdown(if signal == libc::SIGTERM { 0 } else { POWERED_OFF });
                }
            }
            let has_children = self.reap_children()?;
            let Some(shutdown) = &mut self.shutdown else { continue };
            if !has_children {
                let status = shutdown.status;
                self.read_output(usize::MAX);
                return Ok(status);
            }
            if shutdown.kill_at <= Instant::now() {
                shutdown.kill_at = Instant::now() + KILL_EVERY;
                signal_others(libc::SIGKILL);
            }
        }
    }

    fn begin_shutdown(&mut self, status: u8) {
        if self.shutdown.is_some() {
            return;
        }
        self.console.say(if status == 0 {
            "the instance is told to end"
        } else {
            "the instance shuts itself down"
        });
        self.shutdown = Some(CellShutdown { status, kill_at: Instant::now() + self.patience });
        signal_others(libc::SIGTERM);
        // What is stopped could not end otherwise.
        signal_others(libc::SIGCONT);
    }

    /// Waits for a signal, for output, or for the time at which processes are killed.
    #[expect(unsafe_code, reason = "the standard library waits for one descriptor at a time")]
    fn wait_for_event(&self, signals: &CellSignals) -> io::Result<()> {
        let of =
            |file: &File| libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut fds = vec![of(&signals.0)];
        fds.extend(self.pipe.as_ref().map(of));
        let left =
            self.shutdown.as_ref().map(|it| it.kill_at.saturating_duration_since(Instant::now()));
        let left = left.map_or(-1, |left| i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX));
        let count = libc::nfds_t::try_from(fds.len()).unwrap_or(1);
        // SAFETY: a list of this function's, with its length.
        match unsafe { libc::poll(fds.as_mut_ptr(), count, left) } {
            0.. => Ok(()),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Copies the output that is there to the console, by at most this number of reads.
    fn read_output(&mut self, most: usize) {
        let mut bytes = [0; 16 << 10];
        for _ in 0..most {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(&mut bytes) {
                Ok(0) => self.pipe = None,
                Ok(count) => self.console.add(bytes.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    /// Reaps all children that have ended; returns whether any are left. In its PID namespace the first process
    /// inherits all orphans.
    fn reap_children(&mut self) -> io::Result<bool> {
        loop {
            let mut status = 0;
            #[expect(unsafe_code, reason = "the standard library waits for its own children alone")]
            // SAFETY: the status is this function's.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            match pid {
                0 => return Ok(true),
                1.. => self.process_ended(pid, ExitStatus::from_raw(status)),
                _ => match io::Error::last_os_error() {
                    error if error.raw_os_error() == Some(libc::ECHILD) => return Ok(false),
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
    }

    fn process_ended(&mut self, pid: i32, status: ExitStatus) {
        let Some(name) = self.programs.remove(&pid) else { return };
        // What they have written comes before.
        self.read_output(OUTPUT_READS);
        match (status.code(), status.signal()) {
            (Some(code), _) => self.console.say(&format!("{name} ended with status {code}")),
            (None, signal) => {
                let signal = signal.unwrap_or_default();
                self.console.say(&format!("signal {signal} ended {name}"));
            }
        }
    }
}

/// Makes a pipe for the output of programs.
fn output_pipe() -> io::Result<(File, io::PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    let reader = OwnedFd::from(reader);
    set_nonblocking(&reader)?;
    Ok((File::from(reader), writer))
}

/// Starts a program in a directory; returns its PID.
fn spawn(
    program: &Path,
    env: &BTreeMap<String, String>,
    at: &Path,
    output: &io::PipeWriter,
) -> io::Result<i32> {
    let child = Command::new(program)
        .env_clear()
        .envs(env)
        .current_dir(at)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}

#[expect(unsafe_code, reason = "the standard library has it for sockets alone")]
fn set_nonblocking(file: &OwnedFd) -> io::Result<()> {
    // SAFETY: takes numbers.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt as _,
    };

    use super::*;

    /// Runs an order in a process of its own, whose children and console are its own; returns the process, and the folder with its
    /// console.
    fn begin(script: &str) -> (tempfile::TempDir, std::process::Child) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at(WORK)).unwrap();
        fs::write(at("user-data"), script).unwrap();
        fs::set_permissions(at("user-data"), Permissions::from_mode(0o755)).unwrap();
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        let order = CellOrder {
            user_data: Some(at("user-data")),
            names: vec!["ana".to_owned()],
            keys: vec!["ssh-ed25519 AAAA".to_owned(), "ssh-rsa BBBB".to_owned()],
            files: vec![
                cell_file(&at("new/hello"), "hel", 0o640, false),
                cell_file(&at("new/hello"), "lo", 0o640, true),
                cell_file(&at("order/no"), "", 0o644, false),
            ],
            env,
            shutdown_ms: 1_000,
            ..CellOrder::default()
        };
        fs::write(at("order"), serde_json::to_vec(&order).unwrap()).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cell_init::tests::a_cell_in_a_process_of_its_own", "--nocapture"])
            .env("CELL", folder.path())
            .current_dir(folder.path())
            .stdout(File::create(at("console")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        (folder, child)
    }

    fn cell_file(path: &Path, content: &str, mode: u32, appends: bool) -> CellFile {
        CellFile { path: path.to_owned(), content: content.into(), mode, appends }
    }

    #[test]
    fn homes_keys_and_files_are_there_before_the_user_data() {
        let script =
            "#!/bin/sh\ncat ../new/hello .ssh/authorized_keys; ls -l ../home/\nkill -TERM $PPID\n";
        let (folder, mut cell) = begin(script);
        assert_eq!(cell.wait().unwrap().code(), Some(0));
        let said = fs::read_to_string(folder.path().join("console")).unwrap();
        assert!(said.contains("hellossh-ed25519 AAAA\nssh-rsa BBBB\n"), "{said}");
        assert!(said.contains("ana -> ") && said.contains("/work\n"), "{said}");
        // What can't be written is said, and ends nothing.
        assert!(said.contains("/order/no can't be written: "), "{said}");
        let mode =
            |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode();
        assert_eq!(mode("new/hello") & 0o777, 0o640);
        assert_eq!(mode("work/.ssh/authorized_keys") & 0o777, 0o600);
    }

    /// Runs a cell in a process of one thread, to which all signals go: the threads of the test program do not block them.
    #[test]
    fn a_cell_in_a_process_of_its_own() {
        let Some(folder) = std::env::var_os("CELL").map(PathBuf::from) else { return };
        let words: [OsString; 2] = ["--order".into(), folder.join("order").into_os_string()];
        #[expect(unsafe_code, reason = "the standard library does not know it")]
        // SAFETY: the new process runs the cell alone, and takes no lock that another thread could have had.
        let child = unsafe { libc::fork() };
        if child == 0 {
            std::process::exit(run(words.into_iter()).map_or(77, i32::from));
        }
        let mut status = 0;
        #[expect(unsafe_code, reason = "the standard library waits for its own children alone")]
        // SAFETY: the status is this function's.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(waited, child);
        std::process::exit(ExitStatus::from_raw(status).code().unwrap_or(78));
    }

    /// Waits until a console has a text, as long as its cell runs.
    fn await_text(folder: &Path, text: &str, cell: &mut std::process::Child) -> String {
        loop {
            let is_over = cell.try_wait().unwrap().is_some();
            let said = fs::read_to_string(folder.join("console")).unwrap();
            if said.contains(text) {
                return said;
            }
            assert!(!is_over, "it ended without {text}: {said}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_cell_outlives_its_user_data_and_ends_when_it_is_told() {
        let script = "#!/bin/sh\n(until [ -e ../go ]; do sleep 0.01; done; kill -TERM $PPID) &\n\
                      echo out; echo err >&2; pwd; exit 3\n";
        let (folder, mut cell) = begin(script);
        let said = await_text(folder.path(), "ended with status 3]", &mut cell);
        assert!(said.contains("out\nerr\n") && said.contains("/work\n"), "{said}");
        assert!(!said.contains("told to end"), "{said}");
        fs::write(folder.path().join("go"), "").unwrap();
        assert_eq!(cell.wait().unwrap().code(), Some(0));
        let said = fs::read_to_string(folder.path().join("console")).unwrap();
        assert!(said.ends_with("told to end]\n"), "{said}");
    }

    #[test]
    fn a_shutdown_from_inside_is_another_status() {
        let (folder, mut cell) = begin("#!/bin/sh\nkill -38 $PPID\nexit 0\n");
        assert_eq!(cell.wait().unwrap().code(), Some(i32::from(POWERED_OFF)));
        let said = fs::read_to_string(folder.path().join("console")).unwrap();
        assert!(said.contains("shuts itself down]\n"), "{said}");
    }

    #[test]
    fn what_can_not_be_run_is_said_and_ends_nothing() {
        let script = "#!/nowhere/sh\n";
        let (folder, mut cell) = begin(script);
        await_text(folder.path(), "the user data can't be started: No such file", &mut cell);
        let threads = fs::read_dir(format!("/proc/{}/task", cell.id())).unwrap().flatten();
        let mut children = threads.map(|thread| fs::read_to_string(thread.path().join("children")));
        let pid = children.find_map(|pids| pids.ok()?.trim().parse().ok());
        #[expect(unsafe_code, reason = "a signal to the test's own grandchild")]
        // SAFETY: takes numbers.
        let sent = unsafe { libc::kill(pid.unwrap(), libc::SIGTERM) };
        assert_eq!(sent, 0);
        assert_eq!(cell.wait().unwrap().code(), Some(0));
    }
}
