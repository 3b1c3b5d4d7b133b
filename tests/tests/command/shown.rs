//! Texts from others that are shown on a terminal, in HTML, in SVG and in the log: each is only displayed, and none
//! has an effect.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dormouse_tests::dormouse;

/// Text that clears a screen, sets a title, hides what follows and reverses the direction of reading, with characters
/// that XML does not allow.
const BAD: &str = "\u{1b}[2J\u{1b}]0;t\u{7}\u{1b}[8m\u{9b}K\u{202e}\u{0}\u{fffe}";

fn acts(text: &str) -> Option<char> {
    text.chars().find(|c| BAD.contains(*c) && !"[20Jt;8mK]".contains(*c))
}

fn run(args: &[&str]) -> Output {
    Command::new(dormouse()).args(args).output().unwrap()
}

/// Checks that a command's output has no character that acts on a terminal.
fn says_nothing_bad(args: &[&str]) -> String {
    let output = run(args);
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(acts(&text), None, "{args:?}: {text:?}");
    text
}

/// Makes a run whose log has harmful text in place of what a worker reported.
fn a_run(folder: &Path) -> String {
    let out = folder.join("out");
    let out_text = out.to_str().unwrap().to_owned();
    let description = serde_json::to_string(BAD).unwrap();
    let set = format!("description={description}");
    let made = run(&["run", "j60", "--set", &set, "--out", &out_text]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let log = out.join("events.jsonl");
    let (name, bad) = ("c3.large", escaped(BAD));
    let bad = fs::read_to_string(&log).unwrap().replace(name, &format!("{name}{bad}"));
    fs::write(&log, bad).unwrap();
    out_text
}

/// The text as it is inside a JSON string.
fn escaped(text: &str) -> String {
    serde_json::to_string(text).unwrap().trim_matches('"').to_owned()
}

#[test]
fn what_a_log_or_a_file_holds_moves_no_terminal_and_breaks_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = a_run(folder.path());
    for name in ["report.html", "gantt.svg"] {
        let text = fs::read_to_string(Path::new(&out).join(name)).unwrap();
        assert_eq!(acts(&text), None, "{name}");
    }
    let said = says_nothing_bad(&["explain", &out, "vm0"]);
    assert!(said.contains("c3.large\\u001b[2J"), "the test plays what it means to: {said}");
    for args in [
        &["events", &out][..],
        &["check", &out],
        &["replay", &out],
        &["export", &out, "--as", "svg", "--out", &format!("{out}/again")],
        &["status", "no\u{1b}[2J/folder\u{202e}"],
        &["run", "no\u{1b}[2J-experiment\u{202e}"],
        &["run", "j60", "--set", "no\u{1b}[2J=\u{202e}"],
    ] {
        says_nothing_bad(args);
    }
}
