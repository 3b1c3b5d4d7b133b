//! Standard error of a program: copied to a file, with its last line kept for messages.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Greatest number of bytes of the program's standard error that are kept, so that a program can't fill the disk.
const MOST_KEPT: u64 = 16 << 20;
/// Number of bytes at the end of the program's standard error that are searched for the last line.
const END: usize = 4096;
/// Time to wait for the last output of a program that has ended.
const PATIENCE: Duration = Duration::from_millis(500);

/// Destination of a program's standard error.
#[derive(Clone, Debug)]
pub enum StandardError {
    /// Standard error goes to this file, which error messages name.
    File(PathBuf),
    /// Standard error is dropped, except its last line, which is in error messages.
    Dropped,
}

/// Reader of a running program's standard error.
#[derive(Debug)]
pub(crate) struct LastWords {
    end: Receiver<Vec<u8>>,
    file: Option<PathBuf>,
}

impl LastWords {
    /// Starts a thread that reads the standard error until the last process that has the pipe ends.
    pub(crate) fn new(stderr: ChildStderr, to: &StandardError) -> io::Result<Self> {
        let file = match to {
            StandardError::File(path) => Some(path.clone()),
            StandardError::Dropped => None,
        };
        let (say, end) = channel();
        let into = file.as_deref().map(open_for_append).transpose()?;
        let thread = std::thread::Builder::new().name("scheduler-stderr".to_owned());
        thread.spawn(move || copy(stderr, into, &say))?;
        Ok(Self { end, file })
    }

    /// Waits once until all of the standard error is in the file.
    pub(crate) fn wait_for_end(&self) {
        let _ = self.end.recv_timeout(PATIENCE);
    }

    /// End of a sentence about a program that has ended: the program's last line, and the file with all its lines;
    /// empty if the program wrote nothing.
    pub(crate) fn describe_output(&self) -> String {
        let end = self.end.recv_timeout(PATIENCE).unwrap_or_default();
        let text = String::from_utf8_lossy(&end);
        let Some(last) = text.lines().rev().find(|line| !line.trim().is_empty()) else {
            return String::new();
        };
        let all = self.file.as_deref().map(Path::display);
        let all = all.map(|file| format!(" (all of it is in {file})")).unwrap_or_default();
        format!("; its last words: {}{all}", crate::pipes::quote_text(last.trim()))
    }
}

/// Opens the file for appending, as a continued run adds to it.
fn open_for_append(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

fn copy(mut from: impl Read, mut into: Option<File>, say: &Sender<Vec<u8>>) {
    let (mut kept, mut end, mut buffer) = (0, Vec::new(), [0; 8192]);
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let new = &buffer[..read];
        if let Some(file) = into.as_mut().filter(|_| kept < MOST_KEPT) {
            // Where it can't be written, the run is of more use than its scheduler's words.
            let _ = file.write_all(new);
            kept += read as u64;
            if kept >= MOST_KEPT {
                let _ = file.write_all(b"\n... what follows is left out\n");
            }
        }
        end.extend_from_slice(new);
        let surplus = end.len().saturating_sub(END);
        end.drain(..surplus);
    }
    // The receiver may be gone, which is fine.
    let _ = say.send(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_its_end_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stderr.txt");
        let flood = io::repeat(b'x').take(MOST_KEPT * 2).chain(&b"\nthe end\n"[..]);
        let (say, end) = channel();
        copy(flood, Some(open_for_append(&path).expect("a file")), &say);
        assert!(end.recv().expect("it is said").ends_with(b"x\nthe end\n"));
        let length = path.metadata().expect("it is there").len();
        assert!((MOST_KEPT..MOST_KEPT + 16384).contains(&length), "{length}");
    }
}
