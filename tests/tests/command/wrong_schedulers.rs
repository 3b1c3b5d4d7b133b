//! Schedulers that are programs, each with one fault (`tests/fixtures/schedulers`): the run ends with one sentence
//! about the fault, and can be resumed once the program is repaired.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use dormouse_tests::{refused, run_in, summary, text};

/// Programs that fail before the first request, each with words of the error.
const AT_ONCE: [(&str, &str); 10] = [
    ("names-no-interpreter", "its first line has to name its interpreter"),
    ("no-such-interpreter", "see that the interpreter in its first line is there"),
    ("sensible", "make it executable with `chmod +x`"),
    ("dies-at-hello", "ended with status 3 before its hello (line 1)"),
    ("hangs-without-reading", "did not write line 1, its hello, within 1s"),
    ("newer-protocol", "speaks version 2 of the protocol, but this dormouse speaks 1 to 1"),
    ("older-protocol", "speaks version 0 of the protocol, but this dormouse speaks 1 to 1"),
    ("no-hello", "unknown field `decisions`, expected `hello`"),
    ("hears-a-misspelt-notice", "asks for the notice `vm-redy`, which does not exist"),
    ("speaks-unasked", "wrote `{\"decisions\":[]}` after line 1 without having been asked"),
];

/// Programs that fail in the middle of a run, and work when it is resumed.
const HALF_WAY: [(&str, &str); 23] = [
    ("exits-0-half-way", "ended with status 0 before its answer at 6m36s (line 11)"),
    ("dies-with-traceback", "its last words: `KeyError: 'no VM for task 7'` (all of it is in "),
    ("killed-by-signal", "was ended by SIGKILL before its answer"),
    ("dies-leaving-a-child", "a process that it started holds its standard output open"),
    ("closes-stdout", "closed its standard output before its answer"),
    ("hangs", "raise scheduler.limit if it needs longer"),
    ("writes-half-a-line-then-hangs", "within 1s: it wrote 26 bytes and no newline"),
    ("no-json", "is `starting task 7 on vm 0`: it is not a JSON object"),
    ("blank-line", "is ``: it is not a JSON object"),
    ("json-but-no-object", "it is not a JSON object"),
    ("no-decisions", "unknown field `decisons`, expected `decisions`"),
    ("unknown-decision", "unknown variant `reboot`, expected one of `launch`, `terminate`"),
    ("missing-field", "missing field `vm`"),
    ("wrong-type", "invalid type: string \"vm0\", expected u32"),
    ("negative-time", "invalid value: integer `-1`, expected u64"),
    ("number-out-of-range", "floating point `1.8446744073709552e+19`, expected u64"),
    ("invalid-utf-8", "invalid unicode code point"),
    ("nests-too-deep", "[[[...`: it is not a JSON object"),
    ("answers-twice", "wrote `{\"decisions\":[]}` after line 11 without having been asked"),
    ("floods-many-lines", "without having been asked: one line answers one line"),
    ("floods-one-endless-line", "wrote more than 16 MiB without a newline as line 11"),
    ("too-many-decisions", "MiB without a newline"),
    ("rejects-for-ever", "was refused more than 10000 decisions at 6m36s, and answered"),
];

/// Programs whose decisions leave the run stuck.
const NOWHERE: [(&str, &str); 2] = [
    ("decides-nothing", "the scheduler has no task on any VM and asked for no wake-up"),
    ("only-wakes", "60 tasks are left at the time limit"),
];

/// Programs whose fault is refused or harmless, and how many of their decisions are rejected.
const HARMLESS: [(&str, u64); 8] = [
    ("launches-an-unknown-type", 0),
    ("uses-a-vm-twice", 0),
    ("starts-a-task-twice", 1),
    ("wakes-in-the-past", 1),
    ("wakes-at-the-end-of-time", 0),
    ("many-decisions", 0),
    ("floods-standard-error", 0),
    ("stays-after-the-end", 0),
];

/// The program that has a test of its own below.
const CHANGES_ITS_MIND: &str = "changes-its-mind";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/schedulers")
}

/// Arguments of a run of j60 under this program. The time limit of an answer does not matter for programs that answer;
/// one that never answers is given a second.
fn under(name: &str, limit: &str) -> Vec<String> {
    let program = fixtures().join(name).with_extension("py");
    let limit = format!("scheduler.limit={limit}");
    let program = program.to_str().unwrap();
    ["run", "j60", "--scheduler", program, "--set", &limit, "--out", "out"]
        .map(str::to_owned)
        .to_vec()
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

fn limit(said: &str) -> &'static str {
    let waits = ["within 1s", "scheduler.limit", "holds its standard output"];
    if waits.iter().any(|words| said.contains(words)) { "1s" } else { "1m" }
}

/// The log of the run in `out` without its header, which names the program.
fn steps(out: &Path) -> String {
    let log = fs::read_to_string(out.join("events.jsonl")).unwrap();
    log.split_once('\n').unwrap().1.to_owned()
}

#[test]
fn every_program_of_the_folder_is_tried() {
    let tried: BTreeSet<_> = [CHANGES_ITS_MIND]
        .into_iter()
        .chain(AT_ONCE.into_iter().chain(HALF_WAY).chain(NOWHERE).map(|(name, _)| name))
        .chain(HARMLESS.map(|(name, _)| name))
        .map(|name| format!("{name}.py"))
        .collect();
    let files = fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().file_name());
    let files = files.map(|name| name.into_string().unwrap());
    let there: BTreeSet<_> = files.filter(|name| name.ends_with(".py")).collect();
    assert_eq!(tried, there);
}

#[test]
fn what_cannot_begin_is_bad_input_and_leaves_nothing() {
    for (name, said) in AT_ONCE {
        let folder = tempfile::tempdir().unwrap();
        let args = under(name, limit(said));
        refused(folder.path(), &words(&args), 2, &["the scheduler ", name, said]);
    }
}

#[test]
fn a_run_that_its_program_broke_goes_on_as_if_nothing_had_happened() {
    let undisturbed = tempfile::tempdir().unwrap();
    // Its fault is not noticed: the decisions are those of all the others.
    run_in(undisturbed.path(), &words(&under("stays-after-the-end", "1m")));
    let undisturbed = steps(&undisturbed.path().join("out"));
    for (name, said) in HALF_WAY {
        let folder = tempfile::tempdir().unwrap();
        let broken = run_in(folder.path(), &words(&under(name, limit(said))));
        let error = text(&broken);
        assert_eq!(broken.status.code(), Some(1), "{name}: {error}");
        assert!(error.contains(said) && error.contains("the scheduler "), "{name}: {error}");
        assert_eq!(error.lines().count(), 1, "{name}: {error}");
        assert!(error.trim_end().ends_with("/out` continues the run"), "{name}: {error}");
        let out = folder.path().join("out");
        let logged = steps(&out);
        assert!(undisturbed.starts_with(&logged), "{name}: what was decided before stays");
        let resumed = run_in(folder.path(), &["resume", "out", "--quiet"]);
        assert!(resumed.status.success(), "{name}: {}", text(&resumed));
        assert!(steps(&out) == undisturbed, "{name}: it went another way");
        assert_eq!(summary(&out)["tasks"]["completed"], 60, "{name}");
    }
}

#[test]
fn a_program_that_changes_its_mind_cannot_go_on_with_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let broken = run_in(folder.path(), &words(&under(CHANGES_ITS_MIND, "1m")));
    assert!(text(&broken).contains("ended with status 3"), "{}", text(&broken));
    let before = fs::read_to_string(folder.path().join("out/events.jsonl")).unwrap();
    for _ in 0..2 {
        let resumed = run_in(folder.path(), &["resume", "out"]);
        let error = text(&resumed);
        assert_eq!(resumed.status.code(), Some(1), "{error}");
        assert!(error.contains("decides otherwise than the log at 0s"), "{error}");
        assert!(
            error.contains("it was `[{\"decision\":\"launch\"") && error.contains("is `[]` now"),
            "{error}"
        );
        let after = fs::read_to_string(folder.path().join("out/events.jsonl")).unwrap();
        assert!(before == after, "nothing of the log is lost");
    }
}

#[test]
fn decisions_with_which_a_run_goes_nowhere_are_a_broken_run() {
    for (name, said) in NOWHERE {
        let folder = tempfile::tempdir().unwrap();
        let broken = run_in(folder.path(), &words(&under(name, "1m")));
        let error = text(&broken);
        assert_eq!(broken.status.code(), Some(1), "{name}: {error}");
        assert!(error.contains(said), "{name}: {error}");
        assert!(folder.path().join("out/report.html").is_file(), "{name}: it has a report");
    }
}

#[test]
fn what_can_be_refused_alone_does_not_end_the_run() {
    for (name, rejected) in HARMLESS {
        let folder = tempfile::tempdir().unwrap();
        let done = run_in(folder.path(), &words(&under(name, "1m")));
        assert!(done.status.success(), "{name}: {}", text(&done));
        let summary = summary(&folder.path().join("out"));
        assert_eq!(summary["tasks"]["completed"], 60, "{name}");
        assert_eq!(summary["counts"]["rejected"], rejected, "{name}: {}", summary["counts"]);
    }
}
