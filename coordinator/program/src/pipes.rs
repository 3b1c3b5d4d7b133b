//! Exchange of lines with a program, with time limits.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use dormouse_units::one_line;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Greatest length of a program's line in bytes.
pub(crate) const LONGEST: usize = 16 << 20;

/// Failures of the exchange with a program.
#[derive(Debug)]
pub(crate) enum PipeFailure {
    /// The program closed its end of the pipe.
    Closed,
    /// The time limit passed; the program had written this many bytes of its line.
    Late(usize),
    /// The line exceeds [`LONGEST`].
    TooLong,
    /// The program wrote this text without being asked: after its answer, or before the first
    /// question.
    Unasked { text: String, after_answer: bool },
    /// The system reports an error.
    System(io::Error),
}

impl PipeFailure {
    fn unasked(text: &str, after_answer: bool) -> Self {
        Self::Unasked { text: text.lines().next().unwrap_or_default().to_owned(), after_answer }
    }
}

/// The two pipes to a program's standard input and from its standard output.
#[derive(Debug)]
pub(crate) struct ProgramPipes {
    to: Option<File>,
    from: File,
    /// Bytes read so far of the next line.
    read: Vec<u8>,
}

impl ProgramPipes {
    pub(crate) fn new(to: ChildStdin, from: ChildStdout) -> io::Result<Self> {
        let file = |fd: OwnedFd| {
            fcntl(&fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            Ok::<_, io::Error>(File::from(fd))
        };
        Ok(Self { to: Some(file(to.into())?), from: file(from.into())?, read: Vec::new() })
    }

    /// Closes the pipe to the program, at which a well-behaved program ends.
    pub(crate) fn close_input(&mut self) {
        self.to = None;
    }

    /// Writes a line, newline included, and reads the answering line into `answer`.
    pub(crate) fn ask_line(
        &mut self,
        line: &[u8],
        limit: Duration,
        answer: &mut Vec<u8>,
    ) -> Result<(), PipeFailure> {
        let until = Instant::now() + limit;
        self.nothing_unasked()?;
        self.write(line, until)?;
        self.line(until, answer)
    }

    /// Checks that the program wrote nothing after its last answer.
    fn nothing_unasked(&mut self) -> Result<(), PipeFailure> {
        let mut unasked = [0; 256];
        match self.from.read(&mut unasked) {
            Ok(0) => Err(PipeFailure::Closed),
            Ok(read) => {
                Err(PipeFailure::unasked(&String::from_utf8_lossy(&unasked[..read]), false))
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(())
            }
            Err(error) => Err(PipeFailure::System(error)),
        }
    }

    fn write(&mut self, mut line: &[u8], until: Instant) -> Result<(), PipeFailure> {
        let Some(to) = &mut self.to else { return Err(PipeFailure::Closed) };
        while !line.is_empty() {
            match to.write(line) {
                Ok(written) => line = &line[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait_for_pipe(to, PollFlags::POLLOUT, until, 0)?;
                }
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    return Err(PipeFailure::Closed);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(PipeFailure::System(error)),
            }
        }
        Ok(())
    }

    fn line(&mut self, until: Instant, answer: &mut Vec<u8>) -> Result<(), PipeFailure> {
        /// Bytes read at first: most answers are shorter, and longer ones are read in parts of
        /// double size.
        const FIRST: usize = 4096;
        let mut searched = 0;
        loop {
            if let Some(end) = self.read[searched..].iter().position(|byte| *byte == b'\n') {
                let end = searched + end;
                if self.read.len() > end + 1 {
                    let rest = String::from_utf8_lossy(&self.read[end + 1..]).into_owned();
                    return Err(PipeFailure::unasked(&rest, true));
                }
                answer.clear();
                std::mem::swap(answer, &mut self.read);
                answer.truncate(end);
                return Ok(());
            }
            searched = self.read.len();
            if searched > LONGEST {
                return Err(PipeFailure::TooLong);
            }
            // Nothing is there yet as a rule: the program begins once it is waited for.
            wait_for_pipe(&self.from, PollFlags::POLLIN, until, searched)?;
            self.read.resize(searched + searched.max(FIRST), 0);
            let got = self.from.read(&mut self.read[searched..]);
            self.read.truncate(searched + got.as_ref().copied().unwrap_or_default());
            match got {
                Ok(0) => return Err(PipeFailure::Closed),
                Ok(_) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(PipeFailure::System(error)),
            }
        }
    }
}

/// Waits until the pipe is ready for `what`, at most until the time `until`.
fn wait_for_pipe(
    pipe: &File,
    what: PollFlags,
    until: Instant,
    has: usize,
) -> Result<(), PipeFailure> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(PipeFailure::Late(has));
    }
    // A little longer, so that a limit that is over is seen as over.
    let left = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
    match poll(&mut [PollFd::new(pipe.as_fd(), what)], left) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(PipeFailure::System(error.into())),
    }
}

/// Quotes a text of a program for a message: on one line, without control characters, shortened.
pub(crate) fn quote_text(text: &str) -> String {
    format!("`{}`", escape_text(text))
}

/// Makes a text that contains a program's text safe for a message, without adding quotation marks.
pub(crate) fn escape_text(text: &str) -> Cow<'_, str> {
    const MAX_SHOWN: usize = 200;
    one_line(text, MAX_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_one_short_line_of_printable_text() {
        assert_eq!(quote_text("a\u{1b}[31m\nb"), r"`a\u001b[31m\u000ab`");
        assert_eq!(quote_text(&"é".repeat(1_000)).len(), 201);
    }
}
