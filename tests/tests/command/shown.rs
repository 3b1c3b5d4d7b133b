//! Texts of others, shown: on a terminal, in HTML, in SVG and in the log, none does more than to be read.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dormouse_tests::dormouse;

/// Clears a screen, sets a title, hides what follows, turns the direction of reading, and is no character of
/// XML.
const BAD: &str = "\u{1b}[2J\u{1b}]0;t\u{7}\u{1b}[8m\u{9b}K\u{202e}\u{0}\u{fffe}";

fn acts(text: &str) -> Option<char> {
    text.chars().find(|c| BAD.contains(*c) && !"[20Jt;8mK]".contains(*c))
}

fn run(args: &[&str]) -> Output {
    Command::new(dormouse()).args(args).output().unwrap()
}

/// What a command says on both of its outputs has nothing that acts.
fn says_nothing_bad(args: &[&str]) -> String {
    let output = run(args);
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(acts(&text), None, "{args:?}: {text:?}");
    text
}

/// A run, and the same with what a worker says in its log as bad as can be.
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

/// As JSON has it within a string.
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
