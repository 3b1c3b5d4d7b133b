//! Folders of runs near the current folder, which Tab completion offers, and which messages about a wrong path name.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use dormouse_documents::instead;
use dormouse_experiment::BuiltinExperiment;

use super::args::host_port;
use super::failure::Failure;

/// The folder below which runs are left where no other is requested.
const RUNS: &str = "runs";
/// Most runs that a message names.
const NAMED: usize = 3;

/// Whether a folder holds the log of a run.
pub(super) fn is_a_run(folder: &Path) -> bool {
    folder.join(dormouse_log::FILE).is_file()
}

/// The folders of runs in the current folder and below its `runs`, the newest first.
pub(super) fn found() -> Vec<PathBuf> {
    found_in(Path::new(""))
}

fn found_in(here: &Path) -> Vec<PathBuf> {
    let below = |folder: PathBuf| {
        let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        let entries = fs::read_dir(listed).into_iter().flatten().flatten();
        entries.map(|entry| folder.join(entry.file_name())).collect::<Vec<_>>()
    };
    let mut all: Vec<PathBuf> =
        below(here.join(RUNS)).into_iter().chain(below(here.into())).collect();
    all.retain(|folder| is_a_run(folder));
    let written = |folder: &PathBuf| {
        let log = fs::metadata(folder.join(dormouse_log::FILE));
        log.and_then(|log| log.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    all.sort_by_key(|folder| (std::cmp::Reverse(written(folder)), folder.clone()));
    all
}

/// Refuses a path that is not a folder of a run, with the runs that may be meant.
pub(super) fn check(folder: &Path) -> Result<(), Failure> {
    if is_a_run(folder) {
        return Ok(());
    }
    Err(Failure::BadInput(format!("{}; {}", why_not(folder), meant(folder))))
}

/// Fails if a path holds no part of a sweep, a comparison or a paper.
pub(super) fn check_part(folder: &Path) -> Result<(), Failure> {
    const SPEC: &str = "sweep.json";
    if folder.join(SPEC).is_file() {
        return Ok(());
    }
    let why = match (folder.is_dir(), folder.exists()) {
        (true, _) if is_a_run(folder) => "it holds one run",
        (true, _) => "it holds no sweep.json",
        (false, true) => "it is a file",
        (false, false) => "there is no such folder",
    };
    let remedy = "give folders that sweep, compare or reproduce left with --shard I/N";
    Err(Failure::BadInput(format!("{}: {why}; {remedy}", folder.display())))
}

/// Whether an argument for a folder is the address of a coordinator instead.
pub(super) fn is_an_address(folder: &Path) -> bool {
    !folder.exists() && folder.to_str().is_some_and(|given| host_port(given).is_ok())
}

/// Why a path is not a folder of a run: in the system's words, after the file that is missing.
fn why_not(folder: &Path) -> String {
    if is_an_address(folder) {
        return format!(
            "{}: it is the address of a coordinator, not a run's folder",
            folder.display()
        );
    }
    let log = folder.join(dormouse_log::FILE);
    match fs::metadata(&log) {
        Err(error) => format!("can't read {}: {error}", log.display()),
        Ok(_) => format!("{}: it is not a file", log.display()),
    }
}

/// Remedy for a path that is not the folder of a run: names the run that may be meant, or the runs that exist.
pub(super) fn meant(folder: &Path) -> String {
    meant_of(folder, &found())
}

fn meant_of(folder: &Path, runs: &[PathBuf]) -> String {
    let given = folder.to_string_lossy();
    let names: Vec<String> = runs.iter().map(|run| run.display().to_string()).collect();
    let inside = |of: &Path| names.iter().filter(|run| Path::new(run).parent() == Some(of)).count();
    if folder.is_file() {
        return "it is a file: give the folder of a run, which has an events.jsonl".to_owned();
    }
    if is_an_address(folder) {
        return format!(
            "on the coordinator's host give the folder of its run; from here `dormouse status {given} --secret-file FILE` \
             says how it goes, and a coordinator with --http serves the page itself"
        );
    }
    match (inside(folder), names.first()) {
        (0, _) | (_, None) => {}
        (1, Some(run)) => return format!("it holds 1 run: give it: {run}"),
        (count, Some(run)) => {
            return format!("it holds {count} runs: give one of them, such as {run}");
        }
    }
    let is_an_experiment = BuiltinExperiment::named(&given).is_some() || given.ends_with(".toml");
    let of_it = format!("{RUNS}/{}-", given.trim_end_matches(".toml"));
    let near = names.iter().find(|run| run.starts_with(&of_it) || ends_in(run, &given));
    match near {
        Some(run) if is_an_experiment => {
            return format!("that is an experiment, and a run of it is {run}");
        }
        Some(run) => return format!("did you mean {run}?"),
        None if is_an_experiment => {
            return format!("that is an experiment: `dormouse run {given}` makes a run of it");
        }
        None => {}
    }
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let guess = instead(&given, &known);
    match &known[..] {
        [] => "give the folder of a run; `dormouse run j60` makes one".to_owned(),
        _ if guess.starts_with("did you mean") => guess,
        known => {
            let more = if known.len() > NAMED { ", …" } else { "" };
            let first = known[..known.len().min(NAMED)].join(", ");
            let is = if known.len() == 1 { "is" } else { "are" };
            format!("give the folder of a run; here {is} {first}{more}")
        }
    }
}

/// Whether the name of the last folder in a path begins with the given name.
fn ends_in(run: &str, given: &str) -> bool {
    let last = |path: &str| path.trim_end_matches('/').rsplit('/').next().map(str::to_owned);
    let (run, given) = (last(run).unwrap_or_default(), last(given).unwrap_or_default());
    !given.is_empty() && run.starts_with(&given)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_the_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for (n, run) in ["runs/older", "mine", "runs/newer"].into_iter().enumerate() {
            fs::create_dir_all(at.join(run)).unwrap();
            let log = fs::File::create(at.join(run).join("events.jsonl")).unwrap();
            let written = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(n as u64 + 1);
            log.set_modified(written).unwrap();
        }
        fs::create_dir_all(at.join("runs/no-run")).unwrap();
        let runs = found_in(at);
        assert_eq!(runs, ["runs/newer", "mine", "runs/older"].map(|run| at.join(run)));
    }

    #[test]
    fn a_wrong_path_is_answered_with_a_right_one() {
        let runs = ["runs/j60-burst-hads-s1", "runs/j80-hads-s2", "mine"].map(PathBuf::from);
        for (given, words) in [
            ("runs/j60", "did you mean runs/j60-burst-hads-s1?"),
            ("j80", "that is an experiment, and a run of it is runs/j80-hads-s2"),
            ("j100", "that is an experiment: `dormouse run j100` makes a run of it"),
            ("mien", "did you mean 'mine'?"),
            ("runs", "it holds 2 runs: give one of them, such as runs/j60-burst-hads-s1"),
            ("lab1:7380", "`dormouse status lab1:7380"),
            ("elsewhere", "here are runs/j60-burst-hads-s1, runs/j80-hads-s2, mine"),
        ] {
            let said = meant_of(Path::new(given), &runs);
            assert!(said.contains(words), "{given}: {said}");
        }
        assert!(meant_of(Path::new("x"), &[]).contains("dormouse run j60"));
    }
}
