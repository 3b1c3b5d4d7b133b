//! One `criu swrk`: its process, its socket, its deadline.

use std::{
    io::{self, Read as _},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{Signal, killpg},
        socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair},
    },
    unistd::Pid,
};
use protobuf::Message as _;
use rust_criu::rust_criu_protobuf::rpc::{Criu_req, Criu_resp};

use super::{Error, Result, error::LogTail};
use crate::process::{Ended, Entry, Inmate, Task, cpu_ns, helper, reap_later};

/// CRIU's answers are small; its own limit for a request is far below this too.
const MESSAGE_LIMIT: usize = 64 * 1024;
/// How long CRIU may take to exit after its last answer.
const EXIT_GRACE: Duration = Duration::from_secs(2);

pub(crate) struct Session {
    call: &'static str,
    criu: Option<Task>,
    socket: OwnedFd,
    started: Instant,
    deadline: Duration,
    log: PathBuf,
}

impl Session {
    /// Starts CRIU, in the groups of `entry` if there is one, in the cell of `inmate`. `log` is where it will have been told to
    /// write its log.
    pub(crate) fn start(
        program: &Path,
        call: &'static str,
        entry: Option<&Entry>,
        inmate: Option<Inmate<'_>>,
        log: PathBuf,
        deadline: Duration,
    ) -> Result<Self> {
        let fail = |source: io::Error| Error::Start { program: program.to_owned(), source };
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .map_err(|e| fail(e.into()))?;
        let socket = helper::SOCKET.to_string();
        let inside = inmate.and_then(|inmate| inmate.cell.criu());
        let lends = inmate.is_some_and(|it| it.user.is_some() && it.cell.lends_user());
        let shell = lends.then(|| shell_of(program)).flatten();
        let path = inside.unwrap_or(program);
        let own = path.to_string_lossy();
        let (program, args) = match &shell {
            // A shell that is root for another user becomes that user, unless it is told not to.
            Some(shell) => (shell.as_path(), vec!["-p", &own, "swrk", &socket]),
            None => (path, vec!["swrk", &socket]),
        };
        let started = Instant::now();
        let criu = helper::start(program, &args, theirs.as_fd(), entry, inmate, deadline);
        let criu = criu.map_err(|source| match source.kind() {
            io::ErrorKind::TimedOut => {
                Error::Late { call, after: started.elapsed(), log: LogTail::default() }
            }
            _ => fail(source),
        })?;
        Ok(Self { call, criu: Some(criu), socket: ours, started, deadline, log })
    }

    /// CRIU's process group, which it leads.
    pub(crate) fn group(&self) -> Option<Pid> {
        self.criu.as_ref().map(|criu| Pid::from_raw(criu.pid()))
    }

    pub(crate) fn send(&self, request: &Criu_req) -> Result<()> {
        let bytes = request
            .write_to_bytes()
            .map_err(|e| Error::Protocol { call: self.call, what: e.to_string() })?;
        // A vanished CRIU is an error to report and not a signal.
        match send(self.socket.as_raw_fd(), &bytes, MsgFlags::MSG_NOSIGNAL) {
            Ok(_) => Ok(()),
            // It ended: receive() tells how.
            Err(nix::Error::EPIPE | nix::Error::ECONNRESET) => Ok(()),
            Err(e) => Err(Error::Socket { call: self.call, source: e.into() }),
        }
    }

    /// The next message, or an error at the deadline or when CRIU has ended.
    pub(crate) fn receive(&mut self) -> Result<Criu_resp> {
        self.receive_unless(&|| false)
    }

    /// The same, where the deadline is put off for as long as CRIU is `frozen`.
    pub(crate) fn receive_unless(&mut self, frozen: &dyn Fn() -> bool) -> Result<Criu_resp> {
        let fail = |call, e: nix::Error| Error::Socket { call, source: e.into() };
        loop {
            let Some(left) = self.deadline.checked_sub(self.started.elapsed()) else {
                if frozen() {
                    self.started = Instant::now();
                    continue;
                }
                return Err(self.late());
            };
            let timeout = PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], timeout) {
                Ok(0) | Err(nix::Error::EINTR) => {}
                Ok(_) => break,
                Err(e) => return Err(fail(self.call, e)),
            }
        }
        let mut buffer = vec![0; MESSAGE_LIMIT];
        let length = match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(length) => length,
            Err(nix::Error::ECONNRESET) => 0,
            Err(e) => return Err(fail(self.call, e)),
        };
        if length == 0 {
            return Err(self.silent());
        }
        buffer.truncate(length);
        Criu_resp::parse_from_bytes(&buffer)
            .map_err(|e| Error::Protocol { call: self.call, what: e.to_string() })
    }

    /// The end of CRIU's log so far.
    pub(crate) fn log_tail(&self) -> LogTail {
        LogTail::read(&self.log)
    }

    /// CPU time that CRIU has used so far, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> u64 {
        // Of one that is gone nothing is known.
        self.criu.as_ref().and_then(|criu| cpu_ns(criu.pid()).ok()).unwrap_or(0)
    }

    /// Lets CRIU exit and reaps it; kills it if it does not.
    pub(crate) fn finish(mut self) {
        let _ = self.await_exit(EXIT_GRACE);
    }

    fn late(&mut self) -> Error {
        let log = self.log_tail();
        self.kill();
        Error::Late { call: self.call, after: self.started.elapsed(), log }
    }

    fn silent(&mut self) -> Error {
        let ended = match self.await_exit(EXIT_GRACE) {
            Some(Ended::Exited(status)) => format!("exited with status {status}"),
            Some(Ended::Killed(signal)) => format!("was killed by signal {signal}"),
            None => "closed its socket and had to be killed".to_owned(),
        };
        Error::Silent { call: self.call, ended, log: self.log_tail() }
    }

    /// Waits for CRIU's exit; `None` where it had to be killed.
    fn await_exit(&mut self, grace: Duration) -> Option<Ended> {
        if let Ok(Some(ended)) = self.criu.as_ref()?.wait(grace) {
            self.criu = None;
            return Some(ended);
        }
        self.kill();
        None
    }

    /// Kills CRIU's process group (it leads one) and reaps CRIU.
    fn kill(&mut self) {
        if let Some(criu) = self.criu.take() {
            // Not reaped yet, so the number is still its own.
            let _ = killpg(Pid::from_raw(criu.pid()), Signal::SIGKILL);
            let _ = criu.kill();
            if !matches!(criu.wait(EXIT_GRACE), Ok(Some(_))) {
                reap_later(criu, ());
            }
        }
    }
}

/// The shell that runs this program, where it is a script of one.
fn shell_of(program: &Path) -> Option<PathBuf> {
    let mut head = [0; 64];
    let read = std::fs::File::open(program).and_then(|mut file| file.read(&mut head)).ok()?;
    let line = head.get(..read)?.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let shell = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
    // Busybox's neither becomes that user nor knows the option.
    let is_other = std::fs::canonicalize(shell).is_ok_and(|it| it.ends_with("busybox"));
    (shell.ends_with("sh") && !is_other).then(|| PathBuf::from(shell))
}

impl Drop for Session {
    /// On every way out, error or panic: no CRIU and no zombie stays.
    fn drop(&mut self) {
        self.kill();
    }
}
