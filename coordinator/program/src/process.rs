//! Start and end of a program's process.

use std::io::{self, ErrorKind};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use dormouse_policies::program::ProgramConfig;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::ProgramError;
use crate::executable::find_executable;
use crate::last_words::{LastWords, StandardError};
use crate::pipes::ProgramPipes;

/// Time for a program to end once its output is at its end.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for a program that closed its output to report its exit status.
const LAST_BREATH: Duration = Duration::from_millis(500);

/// A running program; dropping it ends the program.
#[derive(Debug)]
pub(crate) struct ProgramProcess {
    child: Child,
    pub(crate) pipes: ProgramPipes,
    pub(crate) last_words: LastWords,
    /// Time for the program to end by itself.
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

    /// Description of the program's end, in words that follow its name; `None`: it still runs.
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

/// Asks the kernel to kill the program when the thread that starts it ends: a program that hangs
/// would outlive a killed process.
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
