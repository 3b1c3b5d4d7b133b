//! Origin of a reproduction: the program, the host, and the time and memory. This part of its
//! results differs between hosts and days.
//!
//! It is not in `claims.json`, with which later reproductions are compared.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::host_load::processor_seconds;
use crate::sweep::{SweepError, SweepFolder};

/// Name of the file in a reproduction's folder that has its results, including the origin, in a form for programs.
pub(super) const RESULTS: &str = "results.json";

/// A file by which a clone of this program's repository is recognised, since hardly any other repository has it.
const OF_THIS_CLONE: &str = "testbed/reproduce/Cargo.toml";

/// Program and host that made a reproduction, with its time and memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOrigin {
    /// Version of the program.
    pub version: String,
    /// Commit of the clone that the program is in, followed by `-changed` if files of the clone differ from that
    /// commit; `None` if the program is not in a clone.
    pub commit: Option<String>,
    /// Host that the run was made on.
    pub host: HostFacts,
    /// Number of threads for runs.
    pub threads: usize,
    /// Number of runs that this command made.
    pub runs_made: usize,
    /// Number of runs that an earlier command had left in the folder and that were reused.
    pub runs_reused: usize,
    /// Time that this command took, in seconds.
    pub took_s: f64,
    /// Processor time that this program used while the command ran, in seconds; `None` if the kernel does not tell.
    #[serde(default)]
    pub processor_s: Option<f64>,
    /// Peak memory of this program while the command ran, in bytes; `None` if the kernel does not tell.
    pub peak_memory_bytes: Option<u64>,
}

/// Properties of a host that influence times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Number of processors that the program may use.
    pub processors: usize,
    /// Name of the processor, if it has one.
    pub processor: Option<String>,
    /// Memory of the host in bytes, if the kernel tells.
    pub memory_bytes: Option<u64>,
    /// Release of the kernel.
    pub kernel: String,
}

/// Clock and memory peak of a reproduction under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct OriginClock {
    began: Instant,
    /// Processor time of this process at the start, in seconds; `None` if the kernel does not tell.
    used_s: Option<f64>,
    /// Whether the memory peak that the kernel reports covers this reproduction alone, and not the process's earlier
    /// work too.
    is_own_peak: bool,
}

impl OriginClock {
    /// Starts the clock and resets the memory peak.
    pub(super) fn begin() -> Self {
        // Resets the peak of this process's memory (proc(5)).
        let is_own_peak = fs::write("/proc/self/clear_refs", "5").is_ok();
        Self { began: Instant::now(), used_s: processor_seconds(), is_own_peak }
    }

    /// The origin of everything that was made in this folder since the start.
    pub(super) fn origin(self, folder: &SweepFolder, threads: usize) -> RunOrigin {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let status = read("/proc/self/status");
        RunOrigin {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit_of_clone(),
            host: HostFacts {
                processors: std::thread::available_parallelism().map_or(1, usize::from),
                processor: proc_field(&read("/proc/cpuinfo"), "model name").map(str::to_owned),
                memory_bytes: proc_field(&read("/proc/meminfo"), "MemTotal")
                    .and_then(parse_kibibytes),
                kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            },
            threads,
            runs_made: folder.made(),
            runs_reused: folder.reused(),
            took_s: self.began.elapsed().as_secs_f64(),
            processor_s: processor_seconds().zip(self.used_s).map(|(now, before)| now - before),
            peak_memory_bytes: proc_field(&status, "VmHWM")
                .filter(|_| self.is_own_peak)
                .and_then(parse_kibibytes),
        }
    }
}

impl RunOrigin {
    /// Reads the origin from a folder of results.
    ///
    /// # Errors
    ///
    /// The folder has no results, or they have no origin.
    pub fn read(folder: &Path) -> Result<Self, SweepError> {
        let path = folder.join(RESULTS);
        let unfit = |error: &dyn std::fmt::Display| {
            let remedy = "give the folder of a reproduction that this version made";
            SweepError::BadInput(format!("{}: {error}; {remedy}", path.display()))
        };
        let text = fs::read_to_string(&path).map_err(|error| unfit(&error))?;
        let mut all: Value = serde_json::from_str(&text).map_err(|error| unfit(&error))?;
        let origin = all.get_mut("origin").map(Value::take).unwrap_or_default();
        serde_json::from_value(origin).map_err(|error| unfit(&error))
    }

    /// The program and the host in a sentence.
    #[must_use]
    pub fn made_by(&self) -> String {
        let commit = match &self.commit {
            Some(commit) => format!("commit {commit}"),
            None => "no clone that would say a commit".to_owned(),
        };
        let HostFacts { processors, processor, memory_bytes, kernel } = &self.host;
        let processor = processor.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let memory = memory_bytes.map(|bytes| format!(", {}", in_gibibytes(bytes)));
        format!(
            "dormouse {}, {commit}, on a host with {processors} processors{processor}{}, Linux {kernel}",
            self.version,
            memory.unwrap_or_default()
        )
    }

    /// Time, processor time and memory in a sentence, with a note if earlier runs were reused.
    pub(super) fn took(&self) -> String {
        let memory = match self.peak_memory_bytes {
            Some(bytes) => format!("at most {} of memory", in_mebibytes(bytes)),
            None => "an amount of memory that the kernel did not say".to_owned(),
        };
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        let used = self.processor_s.map(|used| format!(", {} of processor time", in_minutes(used)));
        let took = format!(
            "{} on {} {threads}{}, and {memory}",
            in_minutes(self.took_s),
            self.threads,
            used.unwrap_or_default()
        );
        match self.resumed() {
            Some(resumed) => format!("{took}; {resumed}"),
            None => took,
        }
    }

    /// Note that the command reused runs of an earlier command; `None` if it made all runs itself.
    #[must_use]
    pub fn resumed(&self) -> Option<String> {
        let all = self.runs_made + self.runs_reused;
        (self.runs_reused > 0).then(|| {
            format!(
                "resumed: {} of {all} runs were in the folder, {} were made now",
                self.runs_reused, self.runs_made
            )
        })
    }
}

/// Commit of the clone that this program is in; `None` if the program is not in a clone.
fn commit_of_clone() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let clone = program.ancestors().find(|folder| folder.join(OF_THIS_CLONE).is_file())?;
    let git = |words: &[&str]| {
        let output = Command::new("git").arg("-C").arg(clone).args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let hash = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { hash } else { format!("{hash}-changed") })
}

/// Text after the colon in the line `name` of a file in /proc.
fn proc_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

/// Number of bytes of a text such as `2048 kB`.
fn parse_kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Bytes in whole MiB, rounded up, with the unit.
pub(super) fn in_mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

fn in_gibibytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a tenth of a GiB is near enough")]
    let gibibytes = bytes as f64 / f64::from(1 << 30);
    format!("{gibibytes:.1} GiB")
}

/// A length of time in minutes and seconds.
pub(super) fn in_minutes(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    format!("{:.0} min {:02.0} s", (seconds / 60.0).floor(), (seconds % 60.0).floor())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{FolderSpec, ReproductionSpec};

    fn origin(runs_made: usize, runs_reused: usize) -> RunOrigin {
        RunOrigin {
            version: "1.2.3".to_owned(),
            commit: None,
            host: HostFacts {
                processors: 2,
                processor: Some("a processor".to_owned()),
                memory_bytes: Some(3 << 30),
                kernel: "6.1".to_owned(),
            },
            threads: 2,
            runs_made,
            runs_reused,
            took_s: 61.5,
            processor_s: Some(119.9),
            peak_memory_bytes: Some((5 << 20) - 1),
        }
    }

    #[test]
    fn time_memory_and_earlier_runs_are_said() {
        assert_eq!(
            origin(7, 0).took(),
            "1 min 01 s on 2 threads, 1 min 59 s of processor time, and at most 5 MiB of memory"
        );
        let resumed = origin(3, 4).took();
        assert!(
            resumed.ends_with("resumed: 4 of 7 runs were in the folder, 3 were made now"),
            "{resumed}"
        );
        assert!(origin(1, 0).made_by().ends_with("2 processors (a processor), 3.0 GiB, Linux 6.1"));
        let unknown =
            RunOrigin { peak_memory_bytes: None, processor_s: None, ..origin(1, 0) }.took();
        assert!(unknown.contains("on 2 threads, and an amount of memory that"), "{unknown}");
    }

    #[test]
    fn the_peak_is_that_of_this_reproduction() {
        let dir = tempfile::tempdir().expect("a folder");
        let spec = FolderSpec::Reproduce(ReproductionSpec::default());
        let folder = SweepFolder::open(dir.path(), &spec, false).expect("it is empty");
        let held = vec![1_u8; 256 << 20];
        assert_eq!(held.iter().filter(|byte| **byte == 1).count(), held.len());
        let with = OriginClock::begin().origin(&folder, 1);
        drop(held);
        let without = OriginClock::begin().origin(&folder, 1);
        let (Some(with_bytes), Some(bytes)) = (with.peak_memory_bytes, without.peak_memory_bytes)
        else {
            return assert!(!Path::new("/proc/self/clear_refs").exists(), "no peak is known");
        };
        assert!(bytes + (128 << 20) < with_bytes, "{bytes} {with_bytes}");
        assert!(
            without.took_s >= 0.0 && without.host.processors > 0 && !without.host.kernel.is_empty()
        );
    }

    #[test]
    fn lines_of_proc_are_read() {
        let text = "MemTotal:       8034 kB\nmodel name\t: A CPU @ 2 GHz\n";
        assert_eq!(proc_field(text, "MemTotal").and_then(parse_kibibytes), Some(8034 * 1024));
        assert_eq!(proc_field(text, "model name"), Some("A CPU @ 2 GHz"));
        assert_eq!((proc_field(text, "VmHWM"), parse_kibibytes("12 MB")), (None, None));
    }
}
