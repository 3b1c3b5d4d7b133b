//! Calibration: a host is measured with real processes, and a live run takes its speed-up from the result.
//!
//! Needs root, control groups and CRIU (`scripts/get-criu`). Elsewhere it is skipped and says so;
//! with `CI=true` that is a failure.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use dormouse_tests::{dormouse, live_turn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// Four tasks of 120 s on two VMs that are ready at 5 s: six or seven seconds of real time at speed-up 20. The error
/// that it allows is larger than that of any host.
const TINY: &str = r#"name = "tiny"
seed = 1
[cloud]
boot = "5s"
type = [{ name = "pair", vcpus = 2, memory = "1 GiB", on-demand = 0.1 }]
[workload]
kind = "bag"
deadline = "45m"
task = [{ name = "small", count = 4, memory = "10 MB", runtime = "120s" }]
[scheduler]
name = "fifo"
fleet = [{ type = "pair", market = "on-demand", count = 2 }]
[checkpoint]
overhead = 0.13
[live]
worst-error = 1.0
mean-error = 1.0
"#;

fn says(folder: &Path, args: &[&str]) -> Output {
    Command::new(dormouse()).args(args).current_dir(folder).output().unwrap()
}

fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    [text(&output.stdout), text(&output.stderr)].concat()
}

fn json_in(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_live_run_takes_its_speedup_from_what_was_measured() {
    let Some(_turn) = live_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("tiny.toml"), TINY).unwrap();

    let cell = ["--speedups", "20", "--loads", "0.25", "--quick", "--out", "table.json"];
    let measured = says(at, &[&["calibrate", "--error", "1", "--mean", "1"], &cell[..]].concat());
    assert!(measured.status.success(), "{}", text(&measured));
    assert!(text(&measured).contains("up to speed-up 20"), "{}", text(&measured));
    let table = json_in(&at.join("table.json"));
    plausible(&table);
    // Nothing else is left beside it.
    assert_eq!(fs::read_dir(at).unwrap().count(), 2);

    // No speed-up is asked for and the file has none: it is the one that was measured.
    let run = ["run", "tiny.toml", "--live", "--calibration", "table.json", "--out", "run"];
    let output = says(at, &run);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("dormouse: speed-up 20, the highest"), "{}", text(&output));
    let summary = json_in(&at.join("run/summary.json"));
    assert_eq!((&summary["speedup"], &summary["tasks"]["verified"]), (&json!(20.0), &json!(4)));
    let choice = &summary["speedup_choice"];
    assert_eq!(choice["calibrated"], table["made"], "{choice:#}");
    assert_eq!(choice["cells"], table["cells"], "{choice:#}");
    let command = summary["command"].as_str().unwrap();
    assert!(command.ends_with("--speedup 20"), "{command}");
    let report = fs::read_to_string(at.join("run/report.html")).unwrap();
    assert!(report.contains(">Speed-up</h2>") && report.contains("calibrated "), "{report}");

    // Nothing errs that little: refused with the arithmetic, and nothing is left.
    let exact = ["--set", "live.worst-error=0", "--set", "live.mean-error=0", "--out", "none"];
    let refused = says(at, &[&run[..5], &exact[..]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    for part in ["20: ", "at worst", "at most 0 %", "live.worst-error", "--speedups 10"] {
        assert!(text(&refused).contains(part), "'{part}' is not in {}", text(&refused));
    }
    assert_eq!(text(&refused).lines().count(), 1, "{}", text(&refused));
    assert!(!at.join("none").exists());

    // Ended half-way, it keeps what it measured and what was there.
    let more = ["calibrate", "--speedups", "300,400", "--loads", "0.25", "--quick"];
    let more = [&more[..], &["--out", "table.json"]].concat();
    let cells = || json_in(&at.join("table.json"))["cells"].as_array().unwrap().len();
    let ended = ended_once(at, &more, 1, |_| cells() == 2);
    assert!(ended.contains("ended after 1 of 2 cells"), "{ended}");
    assert_eq!(cells(), 2);

    // Of another kernel it is stale, and that is said.
    let mut other = table;
    other["host"]["kernel"] = json!("5.0.0-other");
    fs::write(at.join("other.json"), other.to_string()).unwrap();
    let fast = ["run", "tiny.toml", "--live", "--calibration", "other.json", "--out", "other"];
    // The run can be gone on with.
    let begun = |said: &str| said.contains("speed-up 30, the standard one");
    let ended = ended_once(at, &fast, 3, begun);
    assert!(ended.contains("stale (kernel 5.0.0-other then"), "{ended}");
}

/// Checks that the measurements of a cell are plausible.
fn plausible(table: &Value) {
    let cells = table["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 1, "{table:#}");
    let cell = &cells[0];
    assert_eq!((&cell["speedup"], &cell["load"]), (&json!(20.0), &json!(0.25)));
    assert_eq!(cell["came"], "measured", "{cell:#}");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}: {cell:#}"));
    let (mean, worst) = (number(&cell["mean-error"]), number(&cell["worst-error"]));
    // Real time stands between: a task neither ends at once nor takes twice its time.
    assert!(mean.abs() <= worst.abs() && worst > -0.9 && worst < 1.0, "{cell:#}");
    assert!(worst != 0.0, "real tasks are never as long as modelled: {cell:#}");
    assert!(number(&cell["checkpoints-due"]) >= 6.0, "{cell:#}");
    let (vcpus, tasks) = (number(&cell["vcpus"]), number(&cell["tasks"]));
    assert!(tasks > 0.0 && tasks <= vcpus, "{cell:#}");
    for (what, least) in [("dump", tasks), ("restore", 1.0), ("start", tasks)] {
        let spread = &cell[what];
        let (median, worst) = (number(&spread["median-ms"]), number(&spread["worst-ms"]));
        assert!(number(&spread["n"]) >= least, "{what}: {cell:#}");
        assert!(median > 0.1 && median <= worst && worst < 5_000.0, "{what}: {cell:#}");
    }
    // 110 to 140 s, a checkpoint and a boot at speed-up 20.
    let real = number(&cell["real-s"]);
    assert!(real > 120.0 / 20.0 && real < 60.0, "{cell:#}");
    assert_eq!(
        table["host"]["kernel"],
        nix::sys::utsname::uname().unwrap().release().to_str().unwrap()
    );
    assert_eq!(table["host"]["millicores"].as_u64().unwrap() % 1_000, 0);
}

/// Time limit for the end of a command after a signal, on a busy host: a user would take a slower one for stuck.
const SOON: Duration = Duration::from_secs(10);

/// Runs a command until its output so far is `enough`, sends it one signal to end, and expects this exit status;
/// returns all its output.
fn ended_once(at: &Path, args: &[&str], status: i32, enough: impl Fn(&str) -> bool) -> String {
    let file = at.join("said.txt");
    let said = fs::File::create(&file).unwrap();
    let mut child = Command::new(dormouse())
        .args(args)
        .current_dir(at)
        .stdout(Stdio::null())
        .stderr(said)
        .spawn()
        .unwrap();
    let since = Instant::now();
    let mut text = String::new();
    while !enough(&text) {
        assert!(since.elapsed() < Duration::from_secs(60), "not enough: {text}");
        assert!(child.try_wait().unwrap().is_none(), "ended: {text}");
        std::thread::sleep(Duration::from_millis(20));
        text = fs::read_to_string(&file).unwrap();
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let told = Instant::now();
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        assert!(told.elapsed() < SOON, "it does not end: {text}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(ended.code(), Some(status));
    fs::read_to_string(&file).unwrap()
}
