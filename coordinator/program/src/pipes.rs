//! Lines to a program and back, each within a limit of time.

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

/// Longest line that a program may write.
pub(crate) const LONGEST: usize = 16 << 20;

/// A failure of a pipe.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The program's end is closed.
    Closed,
    /// Nothing more came, or was taken, within the limit; the program had this much of its line.
    Late(usize),
    /// The line is longer than any that makes sense.
    TooLong,
    /// The program wrote this without having been asked: after the line that answers, or before it
    /// was asked.
    Unasked { text: String, after_answer: bool },
    /// The system refuses.
    System(io::Error),
}

impl Broken {
    fn unasked(text: &str, after_answer: bool) -> Self {
        Self::Unasked { text: text.lines().next().unwrap_or_default().to_owned(), after_answer }
    }
}

/// The two pipes of a program.
#[derive(Debug)]
pub(crate) struct Pipes {
    to: Option<File>,
    from: File,
    /// The bytes that were read of the line that comes.
    read: Vec<u8>,
}

impl Pipes {
    pub(crate) fn new(to: ChildStdin, from: ChildStdout) -> io::Result<Self> {
        let file = |fd: OwnedFd| {
            fcntl(&fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            Ok::<_, io::Error>(File::from(fd))
        };
        Ok(Self { to: Some(file(to.into())?), from: file(from.into())?, read: Vec::new() })
    }

    /// Closes the pipe to the program, which ends then if it is well-behaved.
    pub(crate) fn close(&mut self) {
        self.to = None;
    }

    /// Writes a line, which ends with a newline, and reads the line that answers it into `answer`.
    pub(crate) fn ask(
        &mut self,
        line: &[u8],
        limit: Duration,
        answer: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let until = Instant::now() + limit;
        self.nothing_unasked()?;
        self.write(line, until)?;
        self.line(until, answer)
    }

    /// Nothing came after the last answer.
    fn nothing_unasked(&mut self) -> Result<(), Broken> {
        let mut unasked = [0; 256];
        match self.from.read(&mut unasked) {
            Ok(0) => Err(Broken::Closed),
            Ok(read) => Err(Broken::unasked(&String::from_utf8_lossy(&unasked[..read]), false)),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(())
            }
            Err(error) => Err(Broken::System(error)),
        }
    }

    fn write(&mut self, mut line: &[u8], until: Instant) -> Result<(), Broken> {
        let Some(to) = &mut self.to else { return Err(Broken::Closed) };
        while !line.is_empty() {
            match to.write(line) {
                Ok(written) => line = &line[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait(to, PollFlags::POLLOUT, until, 0)?;
                }
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(Broken::Closed),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Broken::System(error)),
            }
        }
        Ok(())
    }

    fn line(&mut self, until: Instant, answer: &mut Vec<u8>) -> Result<(), Broken> {
        /// Most answers are shorter; longer ones are read in parts that double.
        const FIRST: usize = 4096;
        let mut searched = 0;
        loop {
            if let Some(end) = self.read[searched..].iter().position(|byte| *byte == b'\n') {
                let end = searched + end;
                if self.read.len() > end + 1 {
                    let rest = String::from_utf8_lossy(&self.read[end + 1..]).into_owned();
                    return Err(Broken::unasked(&rest, true));
                }
                answer.clear();
                std::mem::swap(answer, &mut self.read);
                answer.truncate(end);
                return Ok(());
            }
            searched = self.read.len();
            if searched > LONGEST {
                return Err(Broken::TooLong);
            }
            // Nothing is there yet as a rule: the program begins once it is waited for.
            wait(&self.from, PollFlags::POLLIN, until, searched)?;
            self.read.resize(searched + searched.max(FIRST), 0);
            let got = self.from.read(&mut self.read[searched..]);
            self.read.truncate(searched + got.as_ref().copied().unwrap_or_default());
            match got {
                Ok(0) => return Err(Broken::Closed),
                Ok(_) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(Broken::System(error)),
            }
        }
    }
}

/// Waits until something can be done with the pipe.
fn wait(pipe: &File, what: PollFlags, until: Instant, has: usize) -> Result<(), Broken> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Broken::Late(has));
    }
    // A little longer, so that a limit that is over is seen as over.
    let left = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
    match poll(&mut [PollFd::new(pipe.as_fd(), what)], left) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(Broken::System(error.into())),
    }
}

/// A text from a program as it stands in a sentence: on one line, without control characters, and
/// not too long.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", shown(text))
}

/// The same without quotation marks, of a text in which one of a program's is.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    const MAX_SHOWN: usize = 200;
    one_line(text, MAX_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_one_short_line_of_printable_text() {
        assert_eq!(quoted("a\u{1b}[31m\nb"), r"`a\u001b[31m\u000ab`");
        assert_eq!(quoted(&"é".repeat(1_000)).len(), 201);
    }
}
