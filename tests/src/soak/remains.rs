//! Processes, folders and control groups left on the host without an owner.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::programs::Programs;
use crate::orphans;

/// An experiment that is refused, but only after its worker has removed what dead workers left: its speed-up is too
/// high for any host.
const REFUSED: &str = r#"name = "soak-refused"
[cloud]
catalogue = "ec2-2020"
[workload]
kind = "bag"
deadline = "10m"
[[workload.task]]
name = "small"
count = 1
memory = "10 MB"
runtime = "60s"
[scheduler]
name = "burst-hads"
[live]
speedup = 5000
"#;

/// Time limit of a worker that never reaches its coordinator; the worker gives up after half a minute.
const GOES_WITHIN: Duration = Duration::from_secs(60);

/// Names of processes, control groups, mounts and folders on the host.
#[derive(Clone, Debug, Default)]
pub(super) struct Remains(BTreeSet<String>);

impl Remains {
    /// Everything on the host now. Of processes, only those count that run one of these programs and do not descend
    /// from `spared`. What dead workers of other people left is included until the next worker starts.
    pub(super) fn look(programs: &Programs, spared: &[u32]) -> Self {
        let mut found: BTreeSet<_> = orphans(programs.folder(), &[]).into_iter().collect();
        found.extend(processes(programs.folder(), spared));
        found.extend(folders_of_the_dead());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
        let of_the_dead = points.filter(|point| point.split('/').any(is_of_a_dead_run));
        found.extend(of_the_dead.map(|point| format!("mount {point}")));
        Self(found)
    }

    /// Everything that is still there a minute later and was not there `before`: a worker may wait that long for a
    /// coordinator, and its folder stays until the next worker starts.
    pub(super) fn after(
        programs: &Programs,
        (before, spared): (&Self, &[u32]),
        folder: &Path,
    ) -> Vec<String> {
        let until = Instant::now() + GOES_WITHIN;
        let left = || {
            let now = Self::look(programs, spared).0;
            now.difference(&before.0).cloned().collect::<Vec<_>>()
        };
        loop {
            let mut now = left();
            if now.iter().any(|line| !line.starts_with("process")) {
                if let Err(why) = start_the_next(programs, folder) {
                    return vec![format!("the next start: {why}")];
                }
                now = left();
            }
            if now.is_empty() || Instant::now() >= until {
                now.extend(files(&folder.join("tmp")));
                return now;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

/// Starts a worker, which removes what dead workers left, and then ends.
fn start_the_next(programs: &Programs, folder: &Path) -> Result<(), String> {
    let (file, scratch) = (folder.join("refused.toml"), folder.join("tmp"));
    fs::write(&file, REFUSED).map_err(|error| error.to_string())?;
    let (file, out) = (file.display().to_string(), folder.join("refused").display().to_string());
    let mut run = programs.dormouse(&["run", &file, "--live", "--force", "--out", &out], &scratch);
    let output = run.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    match output.status.code() {
        Some(2) => Ok(()),
        _ => Err(format!("it was not refused: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Files and folders in a round's folder for temporary files, with their contents.
fn files(scratch: &Path) -> Vec<String> {
    let tree = crate::tree(scratch);
    let entries = fs::read_dir(scratch).into_iter().flatten().flatten();
    let with_size = |path: std::path::PathBuf| {
        let bytes: u64 = tree.iter().filter(|(it, _)| it.starts_with(&path)).map(|it| it.1).sum();
        format!("{}: {bytes} bytes", path.display())
    };
    entries.map(|entry| with_size(entry.path())).collect()
}

fn processes(programs: &Path, spared: &[u32]) -> Vec<String> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name().to_string_lossy().into_owned();
        let Ok(pid) = name.parse::<u32>() else { continue };
        let program = fs::read_link(process.path().join("exe")).unwrap_or_default();
        let is_own = pid == std::process::id() || descends(pid, spared);
        if program.starts_with(programs) && !is_own {
            found.push(format!("process {pid}: {}", program.display()));
        }
    }
    found
}

/// Whether a process is one of these processes, or a descendant of one.
fn descends(pid: u32, from: &[u32]) -> bool {
    let parent = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse().ok().filter(|parent| *parent > 1)
    };
    std::iter::successors(Some(pid), parent).any(|pid| from.contains(&pid))
}

fn folders_of_the_dead() -> Vec<String> {
    let places = [Path::new("/dev/shm").to_owned(), std::env::temp_dir()];
    let entries = places.into_iter().filter_map(|place| fs::read_dir(place).ok()).flatten();
    let all = entries.flatten();
    all.filter(|entry| is_of_a_dead_run(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path().display().to_string())
        .collect()
}

/// Whether this is the name of a folder of a coordinator that is gone: `dormouse-run-PID-` and more.
fn is_of_a_dead_run(name: &str) -> bool {
    let rest = name.strip_prefix("dormouse-run-");
    let pid = rest.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_the_programs_are_found_unless_they_are_spared() {
        let folder = tempfile::tempdir().expect("a folder");
        let sleep = folder.path().join("sleep");
        let real = crate::is_on_path("sleep").then(|| fs::canonicalize("/bin/sleep"));
        fs::copy(real.expect("a sleep").expect("its file"), &sleep).expect("a copy");
        let mut child = std::process::Command::new(&sleep).arg("60").spawn().expect("a process");
        let found = |spared: &[u32]| processes(folder.path(), spared);
        assert_eq!(found(&[]).len(), 1, "{:?}", found(&[]));
        assert_eq!(found(&[child.id()]), Vec::<String>::new());
        assert_eq!(found(&[std::process::id()]), Vec::<String>::new());
        child.kill().expect("it is there");
        child.wait().expect("it ends");
        assert_eq!(found(&[]), Vec::<String>::new());
    }

    #[test]
    fn a_folder_is_known_by_its_coordinator() {
        let mine = std::process::id();
        assert!(!is_of_a_dead_run(&format!("dormouse-run-{mine}-0")));
        // No process has a number this large (PID_MAX_LIMIT of Linux is 4,194,304).
        assert!(is_of_a_dead_run("dormouse-run-4194305-0"));
        assert!(!is_of_a_dead_run("another"));
    }
}
