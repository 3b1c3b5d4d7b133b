//! The command line of `simulate`: what it refuses, and what an interrupt does.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn simulate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simulate"));
    command.args(arguments);
    command
}

#[test]
fn bad_input_is_said_in_words_and_ends_with_2() {
    for (arguments, words) in [
        (&["--seeds", "10..0"][..], "there are no seeds from 10 to 0"),
        (&["--seeds", "x"], "'x'"),
        (&["--keep", "/nowhere/at/all"], "make it first"),
        (&["--rate", "no-such-thing=1"], "no fault 'no-such-thing'"),
        (&["--plan", "/nowhere/at/all"], "/nowhere/at/all: "),
    ] {
        let output = simulate(arguments).output().expect("it is built beside the tests");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn what_was_played_by_an_interrupt_is_shown() {
    let mut command = simulate(&["--seeds", "0..1_000_000", "--threads", "1", "--says-every", "1"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it is built beside the tests");
    let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it is text");
    assert_eq!(line, "1 seeds played, 0 broke an invariant\n");
    let pid = i32::try_from(child.id()).expect("a process's number");
    kill(Pid::from_raw(pid), Signal::SIGINT).expect("it is there");
    // It says no more than fits a pipe by its end.
    let output = child.wait_with_output().expect("it ends");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    let runs =
        shown.lines().find_map(|line| line.strip_prefix("runs ")).expect("the table is whole");
    let runs: u64 = runs.trim().parse().expect("a number");
    assert!((1..1_000_000).contains(&runs), "{shown}");
    assert!(shown.contains("of a thread each"), "{shown}");
}
