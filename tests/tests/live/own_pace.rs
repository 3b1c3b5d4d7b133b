//! The pace of a user's program: how many emulated seconds a second of CPU time becomes (docs/own-programs.md). It is
//! the same in virtual time, in every live run and at every share of a core.

use std::fs;
use std::path::Path;

use dormouse_tests::{dormouse_says, events, live_turn, summary};
use serde_json::Value;

/// A cloud with on-demand VMs only, so that nothing but the program takes time.
const CLOUD: &str = r#"name = "pace"
[cloud]
catalogue = "ec2-2020"
boot = "0s"
[scheduler]
name = "fifo"
fleet = [{ type = "c3.large", market = "on-demand" }]
[checkpoint]
policy = "none"
[live]
speedup = 30
[workload]
deadline = "2h"
measured = "measured.json"
[[workload.task]]
command = ["./count"]
runtime = "measured"
memory = "64 MB"
"#;

/// A measurement of a program: ten seconds of CPU time, made at a third of a core.
const MEASURED: &str = r#"{ "dormouse": "0.1.0", "share": 333333, "pace": 30.0, "measures": [{
  "task": "task", "kind": ["./count"], "program": "", "exit-status": 0, "wall-us": 30000000, "cpu-us": 10000000,
  "waited-us": 0, "memory": 1000000, "directory": 0 }] }"#;

/// A folder with an experiment whose task runs the program with this text.
fn folder(program: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("mine.toml", CLOUD);
    write("measured.json", MEASURED);
    write("count", program);
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path().join("count"), permissions).unwrap();
    folder
}

fn run(folder: &Path, options: &[&str], out: &str) -> Value {
    let out = folder.join(out);
    let file = folder.join("mine.toml");
    let words = ["run", file.to_str().unwrap(), "--quiet", "--out", out.to_str().unwrap()];
    let words: Vec<_> = words.iter().chain(options).copied().collect();
    let _ = dormouse_says(&words);
    summary(&out)
}

/// The page's example: at a pace of thirty, a program that computes for 10 s on a core takes five minutes.
#[test]
fn ten_seconds_of_a_core_are_five_minutes_at_a_pace_of_thirty() {
    let folder = folder("#!/bin/sh\n");
    for options in [&[][..], &["--speedup", "6"], &["--set", "live.share=0.2"]] {
        let made = run(folder.path(), options, &format!("virtual-{}", options.len()));
        assert_eq!(made["makespan_s"], 300.0, "{options:?}: {made:#}");
        fs::remove_dir_all(folder.path().join(format!("virtual-{}", options.len()))).unwrap();
    }
}

/// A second of CPU time counts for 30 s in live runs at two shares of a core, within 2 %, as in virtual time. Waiting
/// for the quota does not count as waiting of the program itself.
#[test]
fn a_second_of_a_core_counts_for_as_much_at_every_share() {
    let Some(_turn) = live_turn() else { return };
    let program = "#!/bin/sh\nn=0\nwhile [ $n -lt 6000000 ]; do n=$((n+1)); done\n";
    let folder = folder(program);
    for (share, speedup) in [(0.2, 6.0), (0.5, 15.0)] {
        let (set, out) = (format!("live.share={share}"), format!("live-{share}"));
        let made = run(folder.path(), &["--live", "--set", &set], &out);
        assert_eq!(
            (made["share"].as_f64(), made["speedup"].as_f64()),
            (Some(share), Some(speedup))
        );
        let log = events(&folder.path().join(&out));
        let of = |report: &str| log.iter().find(|event| event["report"] == report).unwrap().clone();
        let (began, ended) = (of("task-started"), of("task-finished"));
        let waited_s = of("ledger")["own"]["real_waited_us"].as_f64().unwrap_or_default() / 1e6;
        let cpu_s = ended["real_cpu_us"].as_f64().unwrap() / 1e6;
        let took_s = (ended["at"].as_f64().unwrap() - began["at"].as_f64().unwrap()) / 1e6;
        let counted = took_s / cpu_s;
        assert!(
            (counted / 30.0 - 1.0).abs() < 0.02,
            "{counted} at a share of {share}: {took_s} s of {cpu_s} s"
        );
        // To be started and waited for it needs a moment.
        assert!(
            waited_s < 0.01 * cpu_s / share + 0.1,
            "{waited_s} s were waited at a share of {share}"
        );
    }
}

/// Three tasks begin with 3,000 files on a host with two vCPUs. The time until the files are there is reported, and is
/// neither owed to the tasks nor work of theirs. The third task finds the files there.
#[test]
fn the_time_until_inputs_have_come_is_no_work() {
    let Some(_turn) = live_turn() else { return };
    let program = "#!/bin/sh\nn=0\nwhile [ $n -lt 600000 ]; do n=$((n+1)); done\n";
    let folder = folder(program);
    for n in 0..3_000 {
        let lib = folder.path().join(format!("lib/part{}", n / 100));
        fs::create_dir_all(&lib).unwrap();
        fs::write(lib.join(format!("{n}.py")), format!("n = {n}\n").repeat(400)).unwrap();
    }
    let tasks = "count = 3\ninputs = [\"lib\"]\ncommand = [\"./count\"]";
    let text = CLOUD.replace("command = [\"./count\"]", tasks);
    fs::write(folder.path().join("mine.toml"), text).unwrap();
    let made = run(folder.path(), &["--live", "--set", "live.share=0.4"], "inputs");
    let out = folder.path().join("inputs");
    let log = events(&out);
    let number = |event: &Value, key: &str| event[key].as_f64().unwrap() / 1e6;
    let of =
        |report: &str| log.iter().filter(|event| event["report"] == report).collect::<Vec<_>>();
    let (began, ledgers) = (of("task-started"), of("ledger"));
    assert_eq!((began.len(), ledgers.len()), (3, 3));
    let mut inputs_s: Vec<_> = began.iter().map(|it| number(it, "real_inputs_us")).collect();
    for (began, inputs_s) in began.iter().zip(&inputs_s) {
        assert!((0.01..=number(began, "real_took_us")).contains(inputs_s), "{began}");
    }
    // What was promised to a task is the time of its work.
    for ledger in &ledgers {
        let (took_s, promised_s) =
            (number(ledger, "real_took_us"), number(ledger, "real_promised_us"));
        let worked_s = number(ledger, "real_worked_us");
        let missing = (promised_s - worked_s / 0.4) / took_s;
        assert!(
            missing.abs() < 0.25,
            "{promised_s} s were promised for {worked_s} s of a core: {ledger}"
        );
    }
    inputs_s.sort_by(f64::total_cmp);
    let said = made["longest_until_inputs_came_s"].as_f64().unwrap();
    assert!((said / made["speedup"].as_f64().unwrap() / inputs_s[2] - 1.0).abs() < 1e-3, "{said}");
    let told = dormouse_says(&["explain", out.to_str().unwrap(), "task1"]);
    assert!(inputs_s[0] < 0.1 || told.contains("once its inputs had come: "), "{told}");
}
