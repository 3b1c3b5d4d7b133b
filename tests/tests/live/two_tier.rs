//! `dormouse reproduce measy/two-tier`: real jobs under real control groups.
//!
//! It needs root and control groups. Elsewhere each test is skipped and says so; with `CI=true`
//! that is a failure.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use dormouse_tests::{dormouse, live_turn, shared_live_turn};
use serde_json::Value;

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{out}{err}")
}

fn measure(out: &Path) -> Command {
    let mut command = Command::new(dormouse());
    command.args(["reproduce", "measy/two-tier", "--seeds", "1", "--usages", "60", "--out"]);
    command.arg(out);
    command
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// Control groups and processes of the process `owner` and of its jobs.
fn traces(owner: u32) -> Vec<String> {
    let mut found = Vec::new();
    for place in ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/freezer"] {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("dormouse-") && name.contains(&format!("-{owner}-")) {
                found.push(entry.path().display().to_string());
            }
        }
    }
    let mark = format!("dormouse-run-{owner}-");
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        if line.contains(&mark) {
            found.push(format!("process {}: {line}", process.file_name().display()));
        }
    }
    found
}

/// Calls `done` until it succeeds; after 20 s, fails with its last error.
fn wait_for(what: &str, mut done: impl FnMut() -> Result<(), String>) {
    let begun = Instant::now();
    while let Err(last) = done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: not within 20 s; {last}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_tiers_are_measured_and_feed_the_model() {
    let Some(_turn) = live_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = run(&mut measure(&out));
    assert!(output.status.success(), "{}", text(&output));
    let csv = fs::read_to_string(out.join("table.csv")).unwrap();
    let figure = |case: &str, metric: &str| -> f64 {
        let line = csv.lines().find(|line| line.starts_with(&format!("{case},{metric},")));
        line.unwrap_or_else(|| panic!("{case} {metric}: {csv}"))
            .split(',')
            .nth(3)
            .unwrap()
            .parse()
            .unwrap()
    };
    for case in ["single", "several"] {
        let of = |metric| figure(&format!("{case}/usage-60"), metric);
        // A processor that others use, too, makes a usage less and never more.
        let usage = of("foreground_usage_pct");
        assert!((20.0..65.0).contains(&usage), "{usage}: {csv}");
        // Below its neighbour it would lose nearly all of its speed.
        assert!(of("foreground_loss_pct") < 50.0, "{csv}");
        assert!(of("background_utilisation_pct") > 0.0, "{csv}");
        assert!(of("background_share_pct") > 0.0, "{csv}");
    }
    assert!(csv.contains("single,background_utilisation_most_pct,92,"), "{csv}");
    for name in ["plot.svg", "report.html"] {
        assert!(fs::read_to_string(out.join(name)).unwrap().contains("</svg>"), "{name}");
    }

    let file = out.join("two-tier.json");
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let batch = folder.path().join("batch");
    let mut command = Command::new(dormouse());
    command.args(["run", "batch-small", "--quiet", "--set"]);
    command.arg(format!("sharing.measured={}", file.display())).arg("--out").arg(&batch);
    let output = run(&mut command);
    assert!(output.status.success(), "{}", text(&output));
    let log = read(&batch.join("events.jsonl"));
    let head: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let measured: Value = serde_json::from_str(&read(&file)).unwrap();
    assert_eq!(head["experiment"]["jobs"]["sharing"], measured["sharing"], "{head:#}");
    assert!(measured["sharing"]["single"][1].as_f64().unwrap() > 0.0, "{measured:#}");

    let figures = |sharing: &Path| {
        let out = folder.path().join("figures");
        let mut command = Command::new(dormouse());
        command.args(["reproduce", "measy/figure-13", "--jobs", "300", "--two-tier"]);
        run(command.arg(sharing).arg("--out").arg(out))
    };
    let output = figures(&file);
    assert!(output.status.success(), "{}", text(&output));
    fs::write(&file, "{}").unwrap();
    let output = figures(&file);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("two-tier.json"), "{}", text(&output));
}

#[test]
fn whatever_ends_it_leaves_no_process_and_no_group() {
    let Some(_turn) = shared_live_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut command = measure(&folder.path().join("out"));
    let mut measuring = command.stdout(Stdio::null()).spawn().unwrap();
    let owner = measuring.id();
    wait_for("a job runs", || match traces(owner) {
        found if found.iter().any(|trace| trace.starts_with("process")) => Ok(()),
        found => Err(format!("{found:#?}")),
    });
    measuring.kill().unwrap();
    measuring.wait().unwrap();
    wait_for("everything is gone", || match traces(owner) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("left: {left:#?}")),
    });
}

#[test]
fn without_root_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("dormouse");
    fs::copy(dormouse(), &program).unwrap();
    fs::write(folder.path().join("dormouse-task"), "").unwrap();
    let mut command = Command::new(&program);
    command.args(["reproduce", "measy/two-tier"]).current_dir("/");
    if nix::unistd::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let output = run(&mut command);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("needs root") && said.lines().count() == 1, "{said}");
}

#[test]
fn options_that_it_does_not_have_are_refused() {
    for (paper, option) in [
        ("measy/two-tier", ["--jobs", "5"]),
        ("measy/two-tier", ["--shard", "1/2"]),
        ("measy/figure-6", ["--usages", "50"]),
        ("burst-hads", ["--two-tier", "x.json"]),
        ("measy/two-tier", ["--usages", "0"]),
    ] {
        let output = run(Command::new(dormouse()).args(["reproduce", paper]).args(option));
        assert_eq!(output.status.code(), Some(2), "{paper} {option:?}: {}", text(&output));
        assert!(text(&output).contains(option[0]), "{}", text(&output));
    }
}
