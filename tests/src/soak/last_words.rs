//! The end of a process that was not asked to end: its status, its last lines of output, and the kernel's messages.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitStatus;

use nix::fcntl::OFlag;

/// Number of last lines of a process's output that are shown.
const LINES: usize = 5;
/// Size in bytes of the longest record of `/dev/kmsg`.
const RECORD: usize = 8192;

/// A line about the end of a process: its status, the last lines of its output file, and the kernel's messages about
/// its process id. As ids are reused, messages before `since` are left out (in microseconds since the boot).
pub(super) fn last_words(pid: u32, status: ExitStatus, says: &Path, since: u64) -> String {
    let said = fs::read_to_string(says).unwrap_or_default();
    let mut lines: Vec<_> = said.lines().rev().filter(|line| !line.trim().is_empty()).collect();
    lines.truncate(LINES);
    lines.reverse();
    let said = match &lines[..] {
        [] => "it said nothing".to_owned(),
        lines => format!("its last lines: {}", lines.join(" / ")),
    };
    let kernel = match kernel_lines(pid, since) {
        Ok(lines) if lines.is_empty() => {
            "the kernel's log does not name it, as it names what it kills for memory".to_owned()
        }
        Ok(lines) => format!("the kernel's log: {}", lines.join(" / ")),
        Err(error) => format!("the kernel's log can't be read: {error}"),
    };
    format!("it ended with {status}; {said}; {kernel}")
}

/// The time since the boot, in microseconds, as the kernel's log counts it; 0 if it can't be read.
pub(super) fn since_boot() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let (seconds, rest) = text.split_once('.').unwrap_or_default();
    let hundredths = rest.split(' ').next().unwrap_or_default();
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    number(seconds).saturating_mul(1_000_000).saturating_add(number(hundredths) * 10_000)
}

/// The lines of the kernel's log that name a process, from the time `since` on.
fn kernel_lines(pid: u32, since: u64) -> std::io::Result<Vec<String>> {
    let nonblocking = OFlag::O_NONBLOCK.bits();
    let mut log = OpenOptions::new().read(true).custom_flags(nonblocking).open("/dev/kmsg")?;
    Ok(records(&mut log)?.iter().filter_map(|record| names(record, pid, since)).collect())
}

/// All records in the kernel's log; each read returns one.
fn records(log: &mut File) -> std::io::Result<Vec<String>> {
    let mut records = Vec::new();
    let mut buffer = vec![0; RECORD];
    loop {
        match log.read(&mut buffer) {
            Ok(0) => return Ok(records),
            Ok(length) => {
                let record = buffer.get(..length).unwrap_or_default();
                records.push(String::from_utf8_lossy(record).into_owned());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(records),
            // What was overwritten while it was read is followed by what is there.
            Err(error) if error.raw_os_error() == Some(nix::libc::EPIPE) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The text of a record (`priority,number,microseconds,flags;text`) if it names this process and is not older than
/// `since`.
fn names(record: &str, pid: u32, since: u64) -> Option<String> {
    let (head, text) = record.split_once(';')?;
    let at: u64 = head.split(',').nth(2)?.parse().ok()?;
    let text = text.lines().next()?;
    let has = text.split(|c: char| !c.is_ascii_digit()).any(|word| word.parse() == Ok(pid));
    (at >= since && has).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_end_of_a_process_says_its_signal_and_its_last_lines() {
        let says = tempfile::NamedTempFile::new().expect("a file");
        let out = says.reopen().expect("the file");
        let script = "for n in 1 2 3 4 5 6 7; do echo line $n; done; kill -9 $$";
        let mut child =
            Command::new("sh").args(["-c", script]).stdout(out).spawn().expect("a process");
        let status = child.wait().expect("its end");
        let words = last_words(child.id(), status, says.path(), since_boot());
        assert!(words.contains("signal: 9"), "{words}");
        assert!(words.contains("line 3 / line 4") && !words.contains("line 2"), "{words}");
        assert!(words.contains("the kernel's log"), "{words}");
        let quiet = last_words(child.id(), status, Path::new("nowhere"), 0);
        assert!(quiet.contains("it said nothing"), "{quiet}");
    }

    #[test]
    fn the_kernels_lines_are_those_that_name_the_process_and_are_not_older() {
        let killed =
            "6,412,2304401212,-;Out of memory: Killed process 3064 (dormouse) total-vm:9kB\n";
        let text = "Out of memory: Killed process 3064 (dormouse) total-vm:9kB";
        assert_eq!(names(killed, 3064, 2_304_401_212).as_deref(), Some(text));
        assert_eq!(names(killed, 3064, 2_304_401_213), None);
        assert_eq!(names(killed, 306, 0), None);
        assert_eq!(names("no record", 306, 0), None);
    }
}
