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
use prost::Message as _;

use super::{
    CriuError, Result,
    error::{LogTail, criu_message},
    request::make_request,
    rpc::{CriuNotify, CriuReq, CriuReqType, CriuResp},
};
use crate::process::{
    ChildProcess, HelpedTask, ProcessEnd, ProcessGroups, cpu_ns, helper, reap_later,
};

/// Largest message: CRIU's answers are small, and its own limit for a request is far below this too.
const MESSAGE_LIMIT: usize = 64 * 1024;
/// Time that CRIU may take to exit after its last answer.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// Result of the caller's action between two of CRIU's steps; an error makes CRIU give up.
pub type Step = std::result::Result<(), BoxError>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) struct CriuSession {
    call: &'static str,
    criu: Option<ChildProcess>,
    socket: OwnedFd,
    started: Instant,
    deadline: Duration,
    log: PathBuf,
}

impl CriuSession {
    /// Starts CRIU in the groups of `entry`, if given, and in the jail of `inmate`. `log` is the path of the log that CRIU will be
    /// told to write.
    pub(crate) fn start_criu(
        program: &Path,
        call: &'static str,
        entry: Option<&ProcessGroups>,
        inmate: Option<HelpedTask<'_>>,
        log: PathBuf,
        deadline: Duration,
    ) -> Result<Self> {
        let fail = |source: io::Error| CriuError::Start { program: program.to_owned(), source };
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .map_err(|e| fail(e.into()))?;
        let socket = helper::SOCKET.to_string();
        let inside = inmate.as_ref().and_then(|inmate| inmate.cell.criu_inside());
        let lends = inmate.as_ref().is_some_and(|it| it.user.is_some() && it.cell.lends_user());
        let shell = lends.then(|| shell_of(program)).flatten();
        let path = inside.unwrap_or(program);
        let own = path.to_string_lossy();
        let (program, args) = match &shell {
            // A shell that is root for another user becomes that user, unless it is told not to.
            Some(shell) => (shell.as_path(), vec!["-p", &own, "swrk", &socket]),
            None => (path, vec!["swrk", &socket]),
        };
        let started = Instant::now();
        let criu = helper::start_helper(program, &args, theirs.as_fd(), entry, inmate, deadline);
        let criu = criu.map_err(|source| match source.kind() {
            io::ErrorKind::TimedOut => {
                CriuError::Late { call, after: started.elapsed(), log: LogTail::default() }
            }
            _ => fail(source),
        })?;
        Ok(Self { call, criu: Some(criu), socket: ours, started, deadline, log })
    }

    /// Returns the process group that CRIU leads; `None`: it isn't known.
    pub(crate) fn process_group(&self) -> Option<Pid> {
        self.criu.as_ref().map(|criu| Pid::from_raw(criu.pid()))
    }

    pub(crate) fn send_request(&self, request: &CriuReq) -> Result<()> {
        let bytes = request.encode_to_vec();
        // A vanished CRIU is an error to report and not a signal.
        match send(self.socket.as_raw_fd(), &bytes, MsgFlags::MSG_NOSIGNAL) {
            Ok(_) => Ok(()),
            // It ended: receive() tells how.
            Err(nix::Error::EPIPE | nix::Error::ECONNRESET) => Ok(()),
            Err(e) => Err(CriuError::Socket { call: self.call, source: e.into() }),
        }
    }

    /// Returns CRIU's next message, or an error at the deadline or when CRIU has ended.
    pub(crate) fn receive_response(&mut self) -> Result<CriuResp> {
        self.receive_unless(&|| false)
    }

    /// Receives CRIU's next message; the deadline is put off for as long as `frozen` returns true.
    pub(crate) fn receive_unless(&mut self, frozen: &dyn Fn() -> bool) -> Result<CriuResp> {
        let fail = |call, e: nix::Error| CriuError::Socket { call, source: e.into() };
        loop {
            let Some(left) = self.deadline.checked_sub(self.started.elapsed()) else {
                if frozen() {
                    self.started = Instant::now();
                    continue;
                }
                return Err(self.late_error());
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
            return Err(self.silent_error());
        }
        buffer.truncate(length);
        read_reply(&buffer).map_err(|what| CriuError::Protocol { call: self.call, what })
    }

    /// Returns the end of CRIU's log so far.
    pub(crate) fn log_tail(&self) -> LogTail {
        LogTail::read(&self.log)
    }

    /// Returns the CPU time that CRIU has used so far, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> u64 {
        // Of one that is gone nothing is known.
        self.criu.as_ref().and_then(|criu| cpu_ns(criu.pid()).ok()).unwrap_or(0)
    }

    /// Waits until CRIU exits and reaps it; kills CRIU if it does not exit.
    pub(crate) fn finish_call(mut self) {
        let _ = self.await_exit(EXIT_GRACE);
    }

    fn late_error(&mut self) -> CriuError {
        let log = self.log_tail();
        self.kill_group();
        CriuError::Late { call: self.call, after: self.started.elapsed(), log }
    }

    fn silent_error(&mut self) -> CriuError {
        let ended = match self.await_exit(EXIT_GRACE) {
            Some(ProcessEnd::Exited(status)) => format!("exited with status {status}"),
            Some(ProcessEnd::Killed(signal)) => format!("was killed by signal {signal}"),
            None => "closed its socket and had to be killed".to_owned(),
        };
        CriuError::Silent { call: self.call, ended, log: self.log_tail() }
    }

    /// Waits for CRIU's exit; `None` if CRIU had to be killed.
    fn await_exit(&mut self, grace: Duration) -> Option<ProcessEnd> {
        if let Ok(Some(ended)) = self.criu.as_ref()?.wait_end(grace) {
            self.criu = None;
            return Some(ended);
        }
        self.kill_group();
        None
    }

    /// Kills CRIU's process group and reaps CRIU.
    fn kill_group(&mut self) {
        if let Some(criu) = self.criu.take() {
            // Not reaped yet, so the number is still its own.
            let _ = killpg(Pid::from_raw(criu.pid()), Signal::SIGKILL);
            let _ = criu.kill_all();
            if !matches!(criu.wait_end(EXIT_GRACE), Ok(Some(_))) {
                reap_later(criu, ());
            }
        }
    }
}

/// Answers the notifications of a CRIU call until the final response of the call, and returns this response. If `notified` fails,
/// CRIU is told to give up, and the reason is returned with the response.
///
/// # Errors
///
/// There is no final response.
pub(super) fn answer_notifications(
    session: &mut CriuSession,
    frozen: &dyn Fn() -> bool,
    mut notified: impl FnMut(&CriuNotify) -> Step,
) -> Result<(CriuResp, Option<BoxError>)> {
    let mut given_up = None;
    loop {
        let response = session.receive_unless(frozen)?;
        if response.r#type != i32::from(CriuReqType::Notify) {
            return Ok((response, given_up));
        }
        let notify = response.notify.unwrap_or_default();
        let outcome = notified(&notify);
        let mut answer = make_request(CriuReqType::Notify);
        answer.notify_success = Some(outcome.is_ok());
        if let Err(reason) = outcome {
            given_up.get_or_insert(reason);
        }
        session.send_request(&answer)?;
    }
}

/// Returns the final response of a call that CRIU accepted and that wasn't given up.
pub(super) fn conclude_call(
    call: &'static str,
    response: Result<(CriuResp, Option<BoxError>)>,
    log: impl FnOnce() -> LogTail,
) -> Result<CriuResp> {
    match response? {
        (_, Some(source)) => Err(CriuError::GivenUp { call, source }),
        (response, None) => accept_response(call, response, log),
    }
}

/// Returns the response if it says that CRIU has succeeded, or an error with the reason.
pub(super) fn accept_response(
    call: &'static str,
    response: CriuResp,
    log: impl FnOnce() -> LogTail,
) -> Result<CriuResp> {
    if response.success {
        return Ok(response);
    }
    let errno = response.cr_errno.filter(|errno| *errno != 0);
    let log = log();
    let said = response.cr_errmsg.as_deref().and_then(criu_message).or_else(|| log.first_error());
    let reason = match (said, errno) {
        (Some(message), _) => message.to_owned(),
        (_, Some(errno)) => io::Error::from_raw_os_error(errno).to_string(),
        _ => "it gave no reason".to_owned(),
    };
    Err(CriuError::Refused { call, errno, reason, log })
}

/// Fields that every reply of CRIU must have. They are decoded separately, as the type of a whole reply doesn't tell a missing
/// field from a zero one.
#[derive(Clone, PartialEq, prost::Message)]
struct ReplyHead {
    #[prost(int32, optional, tag = "1")]
    kind: Option<i32>,
    #[prost(bool, optional, tag = "2")]
    success: Option<bool>,
}

/// Reads a reply of CRIU, or says what is wrong with it.
fn read_reply(bytes: &[u8]) -> std::result::Result<CriuResp, String> {
    let head = ReplyHead::decode(bytes).map_err(|e| e.to_string())?;
    if head.kind.is_none() || head.success.is_none() {
        return Err("a reply without its type or without its success".to_owned());
    }
    CriuResp::decode(bytes).map_err(|e| e.to_string())
}

/// Returns the shell that runs the program at `program`, if the program is a shell script; `None`: it isn't.
fn shell_of(program: &Path) -> Option<PathBuf> {
    let mut head = [0; 64];
    let read = std::fs::File::open(program).and_then(|mut file| file.read(&mut head)).ok()?;
    let line = head.get(..read)?.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let shell = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
    // Busybox's neither becomes that user nor knows the option.
    let is_other = std::fs::canonicalize(shell).is_ok_and(|it| it.ends_with("busybox"));
    (shell.ends_with("sh") && !is_other).then(|| PathBuf::from(shell))
}

impl Drop for CriuSession {
    /// Kills and reaps CRIU, also after an error or a panic, so that no process and no zombie stays.
    fn drop(&mut self) {
        self.kill_group();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::criu::rpc::{CriuReqType, CriuRestoreResp, CriuVersion};

    #[test]
    fn replies_are_read() {
        let restored = read_reply(b"\x08\x02\x10\x01\x22\x03\x08\xe1\x21").unwrap();
        assert_eq!(restored.r#type, i32::from(CriuReqType::Restore));
        assert!(restored.success);
        assert_eq!(restored.restore, Some(CriuRestoreResp { pid: 4321 }));

        let version =
            read_reply(b"\x08\x0a\x10\x01\x52\x09\x08\x04\x10\x02\x1a\x010\x20\x01").unwrap();
        let of = CriuVersion {
            major_number: 4,
            minor_number: 2,
            gitid: Some("0".to_owned()),
            sublevel: Some(1),
            ..CriuVersion::default()
        };
        assert_eq!(version.version, Some(of));

        let refused = read_reply(b"\x08\x00\x10\x00\x38\x16\x4a\x02no").unwrap();
        assert!(!refused.success);
        assert_eq!((refused.cr_errno, refused.cr_errmsg.as_deref()), (Some(22), Some("no")));
        // Of a field that a later CRIU has.
        assert!(read_reply(b"\x08\x01\x10\x01\xf8\x07\x01").unwrap().success);
    }

    #[test]
    fn what_is_no_reply_is_none() {
        for (bytes, said) in [
            (&b"\x10\x01"[..], "without its type"),
            (b"\x08\x01", "without its success"),
            (b"nonsense", "wire type"),
            (b"\x08\x01\x10\x01\x2a\x7f", "buffer"),
        ] {
            let error = read_reply(bytes).unwrap_err();
            assert!(error.contains(said), "{bytes:?}: {error}");
        }
    }
}
