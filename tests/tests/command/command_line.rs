//! The command line of `dormouse`: its examples run, the next steps that it prints can be typed, a shell completes its
//! lines, and a call without arguments prints what to type.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use dormouse::cli::{Example, examples};
use dormouse_tests::{BAG, dormouse, is_on_path, text};

/// An empty folder with the programs in its folder `bin`, which comes first on the PATH of its shells.
struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir_all(folder.path().join("work")).unwrap();
        fs::create_dir(&bin).unwrap();
        symlink(dormouse(), bin.join("dormouse")).unwrap();
        let sandbox = Self { folder };
        // It stands for a desktop: it opens what is there.
        sandbox.script("bin/xdg-open", "#!/bin/sh\ntest -f \"$1\"\n");
        sandbox
    }

    fn at(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut path = vec![self.folder.path().join("bin")];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.at())
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HOME", self.folder.path())
            .env("TERM", "dumb")
            .env("BROWSER", "true")
            .env_remove("DORMOUSE_HINTS")
            .env_remove("DORMOUSE_LOG")
            .stdin(Stdio::null());
        command
    }

    fn typed(&self, line: &str) -> Output {
        self.command("sh", &["-c", line]).output().unwrap()
    }

    /// The output of a command line at a terminal.
    fn at_a_terminal(&self, line: &str) -> String {
        let shown = self.command("script", &["-qec", line, "/dev/null"]).output().unwrap();
        assert!(shown.status.success(), "{line}: {}", text(&shown));
        String::from_utf8_lossy(&shown.stdout).replace('\r', "")
    }
}

#[test]
fn the_examples_in_the_help_run_as_they_stand() {
    let sandbox = Sandbox::new();
    let at = sandbox.at();
    fs::write(at.join("my.toml"), BAG).unwrap();
    fs::create_dir(at.join("data")).unwrap();
    for name in ["a", "b"] {
        fs::write(at.join("data").join(name).with_extension("txt"), name).unwrap();
    }
    sandbox.script("work/work.sh", "#!/bin/sh\ncat \"$1\"\n");
    let lives: Vec<String> = (1..=40).map(|n| format!("{},preempted\n", 600 * n)).collect();
    fs::write(at.join("lifetimes.csv"), format!("lifetime_s,end_event\n{}", lives.concat()))
        .unwrap();
    let (run, left): (Vec<_>, Vec<_>) = examples().partition(|(_, it)| it.needs.is_none());
    assert!(run.len() > 50, "{} examples are too few", run.len());
    for (_, Example { line, .. }) in &run {
        let output = sandbox.typed(line);
        assert!(output.status.success(), "{line}\n{}", text(&output));
        assert!(output.stderr.is_empty() || !text(&output).contains("error"), "{line}");
    }
    let mut why: BTreeMap<&str, usize> = BTreeMap::new();
    for needs in left.iter().filter_map(|(_, it)| it.needs) {
        *why.entry(needs).or_default() += 1;
    }
    println!(
        "{} examples ran; {} were read alone, for their needs: {why:?}",
        run.len(),
        left.len()
    );
}

/// The next steps that a command prints, each with its comment.
fn said_next(shown: &str) -> Vec<String> {
    let next = shown.lines().skip_while(|line| *line != "  next").skip(1);
    next.take_while(|line| line.starts_with("    ")).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn what_is_said_next_runs_as_it_stands() {
    if !there_is("script") {
        return;
    }
    let sandbox = Sandbox::new();
    for (line, first) in [
        ("dormouse run j60", "dormouse explain runs/j60-burst-hads-s1 task"),
        (
            "dormouse run j60-sc2 --scheduler hads --set workload.deadline=50m --out 'a b'",
            "dormouse explain 'a b' task",
        ),
        ("dormouse run batch-small", "dormouse explain runs/batch-small-measy-s1 "),
        (
            "dormouse run provider-testbed",
            "dormouse explain runs/provider-testbed-opie-s1 request0",
        ),
        (
            "dormouse sweep j60 --set scheduler.alpha=0.1,0.9 --seeds 1",
            "xdg-open runs/sweep-j60/report.html",
        ),
        (
            "dormouse compare --schedulers easy,measy --on batch-small --seeds 1",
            "xdg-open runs/compare/report.html",
        ),
        (
            "dormouse reproduce opie/tables --seeds 1",
            "xdg-open runs/reproduce-opie-tables/report.html",
        ),
        ("dormouse prices generate -o prices.csv", "dormouse prices describe prices.csv"),
        ("dormouse inspect prices.csv", "dormouse prices describe prices.csv"),
        (
            "dormouse workload generate --model lublin --jobs 200 -o log.swf",
            "dormouse workload stats log.swf",
        ),
    ] {
        let shown = sandbox.at_a_terminal(line);
        let steps = said_next(&shown);
        assert!((2..=3).contains(&steps.len()), "{line}: {shown}");
        assert!(steps[0].starts_with(first), "{line}: {steps:#?}");
        assert_eq!(shown.matches("\n  next\n").count(), 1, "{line}: once");
        for step in steps {
            println!("{step}");
            if step.starts_with("dormouse watch ") {
                watches(&sandbox, &step);
            } else {
                let output = sandbox.typed(&step);
                assert!(output.status.success(), "{line}: {step}\n{}", text(&output));
            }
        }
    }
}

/// Starts the command that serves a run's page, checks it, and stops it, as it would go on until Ctrl-C.
fn watches(sandbox: &Sandbox, line: &str) {
    let line = format!("exec {line}");
    let mut served = sandbox.command("sh", &["-c", &line]).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(served.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(served.id()).unwrap());
    // Not Ctrl-C's: whoever runs in the background of a shell ignores that one.
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    // It may be told to end before it hears signals.
    let ended = served.wait().unwrap();
    assert!(ended.success() || ended.signal() == Some(15), "{line}: {ended}");
    assert!(first.contains("shows the run until Ctrl-C"), "{line}: {first}");
}

#[test]
fn only_people_at_a_terminal_are_told_what_is_next() {
    if !there_is("script") {
        return;
    }
    let sandbox = Sandbox::new();
    let piped = sandbox.typed("dormouse run j60 --out r");
    assert!(piped.status.success() && piped.stderr.is_empty(), "{}", text(&piped));
    assert!(said_next(&text(&piped)).is_empty());
    for line in [
        "dormouse run j60 --out r --quiet",
        "dormouse run j60 --out r --json",
        "DORMOUSE_HINTS=0 dormouse run j60 --out r",
        "dormouse run j60 --out r | cat",
    ] {
        assert!(said_next(&sandbox.at_a_terminal(line)).is_empty(), "{line}");
    }
    assert!(!said_next(&sandbox.at_a_terminal("dormouse run j60 --out r")).is_empty());
}

#[test]
fn without_arguments_it_says_what_to_type() {
    let sandbox = Sandbox::new();
    let said = || {
        let output = sandbox.typed("dormouse");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        String::from_utf8(output.stderr).unwrap()
    };
    let first = said();
    for word in
        ["dormouse run j60 ", "dormouse doctor", "--live", "--on j60", "reproduce", "--help"]
    {
        assert!(first.contains(word), "no '{word}' in:\n{first}");
    }
    // What a first user types next works.
    let own = first.lines().find(|line| line.contains("--on j60")).unwrap();
    assert!(sandbox.typed(own.trim()).status.success(), "{own}");
    assert!(sandbox.typed("dormouse run j60 -q").status.success());
    let later = said();
    assert!(later.contains("2 runs are here, the newest in runs/j60-burst-hads-s1;"), "{later}");
    fs::remove_file(sandbox.at().join("runs/j60-burst-hads-s1/summary.json")).unwrap();
    assert!(said().contains("dormouse resume runs/j60-burst-hads-s1"));
    let help = sandbox.typed("dormouse help run");
    assert!(
        help.status.success() && text(&help).contains("Usage: dormouse run"),
        "{}",
        text(&help)
    );
}

/// Command lines, each with words that Tab must offer at its end.
const LINES: [(&str, &[&str]); 11] = [
    ("dormouse repro", &["reproduce"]),
    ("dormouse run j60-sc", &["j60-sc1", "j60-sc2", "j60-sc3", "j60-sc4", "j60-sc5"]),
    ("dormouse run mi", &["mine.toml"]),
    ("dormouse run j60 --scheduler ha", &["hads"]),
    ("dormouse run j60 --scheduler ./sch", &["./scheduler.py"]),
    ("dormouse compare --schedulers burst-hads,ha", &["burst-hads,hads"]),
    ("dormouse check ru", &["runs/first", "runs/second"]),
    ("dormouse explain runs/f", &["runs/first"]),
    ("dormouse reproduce acc/figure-1", &["acc/figure-10"]),
    ("dormouse run j60 --set scheduler.alp", &["scheduler.alpha="]),
    ("dormouse coordinator j60 --resu", &["--resume"]),
];

fn with_runs_and_files() -> Sandbox {
    let sandbox = Sandbox::new();
    for run in ["first", "second"] {
        fs::create_dir_all(sandbox.at().join("runs").join(run)).unwrap();
        fs::write(sandbox.at().join("runs").join(run).join("events.jsonl"), "").unwrap();
    }
    fs::create_dir_all(sandbox.at().join("runs/no-run")).unwrap();
    fs::write(sandbox.at().join("mine.toml"), BAG).unwrap();
    sandbox.script("work/scheduler.py", "#!/usr/bin/env python3\n");
    sandbox
}

#[test]
fn bash_completes_experiments_schedulers_runs_papers_and_keys() {
    let sandbox = with_runs_and_files();
    // As readline calls the function, with the words of the line.
    let ask = "source <(dormouse completions bash)
        COMP_WORDS=($1); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); COMP_TYPE=9
        _clap_complete_dormouse dormouse \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    for (line, words) in LINES {
        let output = sandbox.command("bash", &["-c", ask, "bash", line]).output().unwrap();
        assert_eq!(text(&output).lines().collect::<Vec<_>>(), words, "{line}");
    }
}

#[test]
fn zsh_is_answered_with_a_line_about_each() {
    let sandbox = with_runs_and_files();
    for (line, words) in LINES {
        let all: Vec<&str> = line.split(' ').collect();
        let output = sandbox
            .command("dormouse", &[&["--"], &all[..]].concat())
            .env("DORMOUSE_COMPLETE", "zsh")
            .env("_CLAP_IFS", "\n")
            .env("_CLAP_COMPLETE_INDEX", (all.len() - 1).to_string())
            .output()
            .unwrap();
        let shown = text(&output);
        // A word may have colons of its own, escaped.
        let first = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
        assert_eq!(shown.lines().map(first).collect::<Vec<_>>(), words, "{line}: {shown}");
    }
    // Where functions are loaded at their first call the file is that function.
    let script = text(&sandbox.typed("dormouse completions zsh"));
    assert!(script.starts_with("#compdef dormouse\n"), "{script}");
    assert!(script.contains("funcstack"), "{script}");
    if there_is("zsh") {
        fs::write(sandbox.at().join("_dormouse"), script).unwrap();
        assert!(sandbox.typed("zsh -n _dormouse").status.success());
    }
}

#[test]
fn fish_completes_the_same() {
    let sandbox = with_runs_and_files();
    assert!(text(&sandbox.typed("dormouse completions fish")).contains("DORMOUSE_COMPLETE=fish"));
    if !there_is("fish") {
        return;
    }
    for (line, words) in LINES {
        let ask = format!("source (dormouse completions fish | psub); complete -C '{line}'");
        let output = sandbox.command("fish", &["-c", &ask]).output().unwrap();
        let shown = text(&output);
        let first = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
        assert_eq!(shown.lines().map(first).collect::<Vec<_>>(), words, "{line}: {shown}");
    }
}

/// Whether a program is on PATH. In CI a missing program fails the test, unless it is a shell.
fn there_is(program: &str) -> bool {
    let is = is_on_path(program);
    if !is {
        let is_a_shell = ["zsh", "fish"].contains(&program);
        let in_ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(is_a_shell || !in_ci, "skipped in CI: there is no {program}");
        println!("skipped: there is no {program}");
    }
    is
}
