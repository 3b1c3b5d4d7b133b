//! Parallel jobs as a user runs them: the files of a run, questions about it, its replay and its check.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dormouse_tests::{dormouse, tree};
use serde_json::Value;

const MODEL: &str = r#"
name = "small"
seed = 3
[workload]
kind = "model"
model = "fw-like"
jobs = 400
processors = 64
load = 0.9
[scheduler]
name = "measy"
"#;

fn command(folder: &Path, args: &[&str]) -> Output {
    Command::new(dormouse()).args(args).current_dir(folder).output().unwrap()
}

/// Standard output of a command that must succeed.
fn done(folder: &Path, args: &[&str]) -> String {
    let output = command(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The one line of error of a command that must fail with this status.
fn refused(folder: &Path, args: &[&str], status: i32) -> String {
    let output = command(folder, args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

fn run(folder: &Path, args: &[&str]) -> Value {
    let all = [&["run"], args, &["--json"]].concat();
    serde_json::from_str(&done(folder, &all)).unwrap()
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

/// The text of a log with an SWF header and `jobs` jobs, one a minute.
fn log(header: &str, jobs: u64) -> String {
    let line = |n: u64| {
        let (at, runtime, size) = (n * 60, 30 + n * 37 % 900, 1 + n % 7);
        format!("{n} {at} -1 {runtime} {size} -1 -1 {size} 1000 -1 1 1 1 1 1 1 -1 -1\n")
    };
    header.to_owned() + (1..=jobs).map(line).collect::<String>().as_str()
}

const OF_LOG: &str = "name = \"logged\"\n[workload]\nkind = \"swf\"\nlog = \"some.swf\"\n\
                      [scheduler]\nname = \"measy\"\n";

#[test]
fn a_run_leaves_its_files_and_the_same_bytes_every_time() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "small.toml", MODEL);
    let mut first = run(folder.path(), &["small.toml", "--out", "1"]);
    let mut second = run(folder.path(), &["small.toml", "--out", "2"]);
    for path in [
        "/experiment",
        "/scheduler",
        "/mode",
        "/seed",
        "/makespan_s",
        "/tasks/total",
        "/tasks/completed",
        "/tasks/verified",
        "/tasks/failed",
        "/counts/migrations",
        "/counts/kills",
        "/counts/swaps",
        "/mean_response_s",
        "/mean_bounded_slowdown",
        "/utilisation",
        "/decisions_sha256",
    ] {
        assert!(!first.pointer(path).unwrap_or(&Value::Null).is_null(), "{path}");
    }
    for key in ["speedup", "cost_usd", "deadline_s", "deadline_met"] {
        assert!(first.get(key).is_some(), "{key}");
    }
    assert_eq!(first["tasks"]["completed"], 400);
    // The time it took, and the folder that was named.
    for summary in [&mut first, &mut second] {
        assert!(summary.as_object_mut().unwrap().remove("wall_s").is_some());
    }
    assert_eq!(first, second);
    for name in
        ["jobs.csv", "allocations.csv", "schedule.swf", "events.jsonl", "gantt.svg", "report.html"]
    {
        let read = |run: &str| fs::read(folder.path().join(run).join(name)).unwrap();
        assert!(read("1") == read("2"), "{name} differs");
    }
    let csv = fs::read_to_string(folder.path().join("1/jobs.csv")).unwrap();
    assert_eq!(csv.lines().count(), 401);
    let svg = fs::read_to_string(folder.path().join("1/gantt.svg")).unwrap();
    assert!(svg.matches("class=\"item bar ").count() >= 400);
}

#[test]
fn a_schedule_reads_back_as_a_log_in_order() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "small.toml", MODEL);
    run(folder.path(), &["small.toml", "--out", "out"]);
    fs::rename(folder.path().join("out/schedule.swf"), folder.path().join("some.swf")).unwrap();
    write(folder.path(), "again.toml", OF_LOG);
    let summary = run(folder.path(), &["again.toml", "--scheduler", "easy"]);
    assert_eq!(
        (&summary["tasks"]["completed"], &summary["scheduler"]),
        (&400.into(), &"easy".into())
    );
}

/// The schedule has the load of the log, on two tiers too: it counts a job's own run time, not the time for which it
/// shared processors.
#[test]
fn a_schedule_has_the_load_that_was_run() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = ["--model", "fw-like", "--jobs", "300", "--procs", "64", "--seed", "3"];
    let all = [&["workload", "generate"], &jobs[..], &["--out", "some.swf"]].concat();
    let _ = done(folder.path(), &all);
    write(folder.path(), "logged.toml", OF_LOG);
    let summary = run(folder.path(), &["logged.toml", "--out", "out"]);
    assert!(summary["counts"]["migrations"].as_u64() > Some(0), "{summary:#}");
    let load = |log: &str| -> f64 {
        let text = done(folder.path(), &["workload", "stats", log]);
        let line = text.lines().find(|line| line.starts_with("offered load")).unwrap();
        line.split_whitespace().next_back().unwrap().parse().unwrap()
    };
    let (given, left) = (load("some.swf"), load("out/schedule.swf"));
    assert!((left / given - 1.0).abs() < 1e-3, "{left} of {given}");
}

/// A job has its processor of a tier for itself, and ends when `jobs.csv` says.
#[test]
fn allocations_of_a_tier_never_overlap() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "small.toml", MODEL);
    let summary = run(folder.path(), &["small.toml", "--out", "out"]);
    let read = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    let rows = |text: &str| -> Vec<Vec<String>> {
        text.lines().skip(1).map(|l| l.split(',').map(str::to_owned).collect()).collect()
    };
    let (jobs, all) = (rows(&read("jobs.csv")), rows(&read("allocations.csv")));
    let moved: u64 = ["swaps", "kills", "migrations"]
        .iter()
        .map(|n| summary["counts"][n].as_u64().unwrap())
        .sum();
    assert_eq!(all.len() as u64, jobs.len() as u64 + moved, "an allocation more each time");
    let mut on = BTreeMap::<(String, u32), Vec<(f64, f64)>>::new();
    for row in &all {
        let number = |n: usize| row[n].parse::<f64>().unwrap();
        for block in row[14].split(' ') {
            let (first, last) = block.split_once('-').unwrap_or((block, block));
            for cpu in first.parse().unwrap()..=last.parse::<u32>().unwrap() {
                on.entry((row[17].clone(), cpu)).or_default().push((number(8), number(10)));
            }
        }
    }
    assert!(on.keys().any(|(tier, _)| tier == "background"));
    for (place, mut spans) in on {
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{place:?}: {spans:?}");
    }
    let end = |rows: &[Vec<String>], job: &str| {
        rows.iter().filter(|row| row[0] == job).map(|row| row[10].clone()).next_back()
    };
    assert!(jobs.iter().all(|row| end(&all, &row[0]).as_ref() == Some(&row[10])));
}

#[test]
fn explain_tells_of_the_wait_and_its_end() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "small.toml", MODEL);
    run(folder.path(), &["small.toml", "--scheduler", "easy", "--out", "out"]);
    let tell = |job: u64| done(folder.path(), &["explain", "out", &job.to_string()]);
    let stories: Vec<_> = (1..=400).step_by(9).map(tell).collect();
    assert!(stories.iter().all(|s| s.contains("submitted") && s.contains("ended: response")));
    for reason in ["head of the queue", "expected to end before the reservation of job", "only"] {
        assert!(stories.iter().any(|s| s.contains(reason)), "nobody is told '{reason}'");
    }
    let error = refused(folder.path(), &["explain", "out", "401"], 2);
    assert!(error.contains("no job '401'"), "{error}");
}

/// Runs of the five schedulers are replayed and checked; both commands find a damaged log.
#[test]
fn runs_replay_and_check_and_damage_is_found() {
    let folder = tempfile::tempdir().unwrap();
    for scheduler in ["fcfs", "easy", "keasy", "reasy", "measy"] {
        run(folder.path(), &["batch-small", "--scheduler", scheduler, "--out", scheduler]);
        let replayed = done(folder.path(), &["replay", scheduler]);
        assert!(replayed.contains("all as recorded"), "{replayed}");
        let checked = done(folder.path(), &["check", scheduler]);
        assert!(checked.starts_with("no rule broken in "), "{checked}");
        assert!(checked.contains(" events of 40 jobs"), "{checked}");
    }
    let path = folder.path().join("measy/events.jsonl");
    let good = fs::read_to_string(&path).unwrap();
    let migration = good.find("\"migrate\":{\"on\":[").unwrap();
    for (from, to, found_by) in [
        // To a processor that the machine does not have.
        (&good[migration..migration + 17], "\"migrate\":{\"on\":[99,", "check"),
        (&good[migration..migration + 9], "\"kill\"", "check"),
        (&good[migration..migration + 17], "\"migrate\":{\"on\":[99,", "replay"),
    ] {
        fs::write(&path, good.replacen(from, to, 1)).unwrap();
        refused(folder.path(), &[found_by, "measy"], 1);
    }
    fs::write(&path, good.replacen("\"number\":2,", "\"number\":two,", 1)).unwrap();
    for command in ["check", "replay"] {
        let error = refused(folder.path(), &[command, "measy"], 2);
        assert!(error.contains("events.jsonl:"), "{error}");
    }
}

/// Every metric of `table.csv` under its value: mean and number of runs.
fn swept(folder: &Path, out: &str) -> BTreeMap<(String, String), (f64, u64)> {
    let csv = fs::read_to_string(folder.join(out).join("table.csv")).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("key,value,metric,mean,ci95_low,ci95_high,n"));
    let row = |line: &str| {
        let fields: Vec<_> = line.split(',').collect();
        let of = (fields[1].trim_matches('"').to_owned(), fields[2].to_owned());
        (of, (fields[3].parse().unwrap(), fields[6].parse().unwrap()))
    };
    lines.map(row).collect()
}

/// The means of a sweep over seeds are those of single runs that are made by hand.
#[test]
fn a_sweep_reports_what_its_runs_do() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "small.toml", MODEL);
    let args = ["sweep", "small.toml", "--set", "scheduler.name=easy,measy", "--seeds", "2"];
    let said = done(folder.path(), &[&args[..], &["--out", "whole"]].concat());
    assert!(said.contains("mean response") && said.contains("promotions"), "{said}");
    let whole = swept(folder.path(), "whole");
    let count = |name: &str| whole.keys().filter(|(value, _)| value == name).count();
    assert_eq!((count("easy"), count("measy"), whole.len()), (11, 11, 22));
    for scheduler in ["easy", "measy"] {
        let runs = ["1", "2"].map(|seed| {
            let of = ["small.toml", "--scheduler", scheduler, "--seed", seed, "--force"];
            run(folder.path(), &of)
        });
        for (metric, at) in [
            ("mean_response_s", "/mean_response_s"),
            ("mean_bounded_slowdown", "/mean_bounded_slowdown"),
            ("utilisation", "/utilisation"),
            ("makespan_s", "/makespan_s"),
            ("swaps", "/counts/swaps"),
            ("kills", "/counts/kills"),
            ("migrations", "/counts/migrations"),
        ] {
            let of = |run: &Value| run.pointer(at).unwrap().as_f64().unwrap();
            let wanted = runs.iter().map(of).sum::<f64>() / 2.0;
            let (mean, n) = whole[&(scheduler.to_owned(), metric.to_owned())];
            assert!((mean - wanted).abs() < 1e-5 * wanted.max(1.0), "{metric}: {mean}, {wanted}");
            assert_eq!(n, 2);
        }
    }
    assert!(whole[&("measy".to_owned(), "promotions".to_owned())].0 > 0.0);

    // In parts, and joined.
    for part in ["1/2", "2/2"] {
        let out = ["--shard", part, "--out", &part[..1]];
        done(folder.path(), &[&args[..], &out].concat());
    }
    done(folder.path(), &["merge", "1", "2", "--out", "merged"]);
    for file in ["table.csv", "plot.svg", "samples.jsonl"] {
        let of = |out: &str| fs::read_to_string(folder.path().join(out).join(file)).unwrap();
        assert_eq!(of("merged"), of("whole"), "{file}");
    }
}

/// For every kind of experiment, each row of a sweep over seeds is the run of that seed.
#[test]
fn a_sweep_over_seeds_runs_each_of_them() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "small.toml", MODEL);
    for (experiment, set) in
        [("small.toml", "scheduler.name=easy"), ("j60-sc2", "scheduler.alpha=0.4")]
    {
        let args = ["sweep", experiment, "--set", "seed=5,9,5", "--set", set, "--out", "seeds"];
        done(folder.path(), &args);
        let rows = swept(folder.path(), "seeds");
        for seed in ["5", "9"] {
            let run = run(folder.path(), &[experiment, "--set", set, "--seed", seed, "--force"]);
            let (makespan, n) = rows[&(seed.to_owned(), "makespan_s".to_owned())];
            let wanted = run["makespan_s"].as_f64().unwrap();
            assert!((makespan - wanted).abs() < 1e-3, "{experiment}, seed {seed}: {makespan}");
            assert_eq!(n, 1);
        }
        let of = |seed: &str| rows[&(seed.to_owned(), "makespan_s".to_owned())].0;
        assert!((of("5") - of("9")).abs() > 1e-3, "{experiment}: {rows:?}");
        fs::remove_dir_all(folder.path().join("seeds")).unwrap();
    }
}

/// A sweep never overwrites another one in the same folder unless told to; the same sweep with more seeds may use the
/// folder.
#[test]
fn a_sweep_over_two_keys_and_the_folder_of_another() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "small.toml", MODEL);
    let sweep = |set: &[&'static str], more: &[&'static str]| {
        let sets = set.iter().flat_map(|set| ["--set", set]);
        let args = ["sweep", "small.toml", "--out", "out"].into_iter().chain(sets);
        args.chain(more.iter().copied()).collect::<Vec<_>>()
    };
    let both = ["scheduler.name=easy,measy", "workload.load=0.5,0.9"];
    let said = done(folder.path(), &sweep(&both, &["--seeds", "1"]));
    assert!(said.contains("scheduler.name") && said.contains("workload.load"), "{said}");
    let rows = swept(folder.path(), "out");
    let mean = |value: &str| rows[&(value.to_owned(), "mean_response_s".to_owned())].0;
    for scheduler in ["easy", "measy"] {
        let of = |load: &str| {
            let load = format!("workload.load={load}");
            let alone = ["small.toml", "--scheduler", scheduler, "--set", &load, "--seed", "1"];
            run(folder.path(), &[&alone[..], &["--force"]].concat())["mean_response_s"].clone()
        };
        for load in ["0.5", "0.9"] {
            let wanted = of(load).as_f64().unwrap();
            let mean = mean(&format!("{scheduler};{load}"));
            assert!((mean - wanted).abs() < 1e-5 * wanted.max(1.0), "{mean}, {wanted}");
        }
    }
    // More seeds.
    done(folder.path(), &sweep(&both, &["--seeds", "2"]));
    let before = tree(folder.path());
    let other = sweep(&both[..1], &["--seeds", "2"]);
    let error = refused(folder.path(), &other, 2);
    assert!(error.contains("another command") && error.contains("--force"), "{error}");
    assert_eq!(tree(folder.path()), before, "nothing was changed");
    done(folder.path(), &sweep(&both[..1], &["--seeds", "2", "--force"]));
    assert_eq!(swept(folder.path(), "out").len(), 22);
}

/// Removes from a run's folder what older versions did not write: the hash chain of the log, and its seal.
fn older(folder: &Path, run: &str) {
    let (log, summary) = (format!("{run}/events.jsonl"), format!("{run}/summary.json"));
    let events = fs::read_to_string(folder.join(&log)).unwrap();
    write(folder, &log, &events.replacen("\"chain\":\"blake3\",", "", 1));
    let text = fs::read_to_string(folder.join(&summary)).unwrap();
    let mut summary_of: Value = serde_json::from_str(&text).unwrap();
    assert!(summary_of.as_object_mut().unwrap().remove("log").is_some());
    write(folder, &summary, &format!("{summary_of:#}\n"));
    fs::remove_file(folder.join(run).join("seal.json")).unwrap();
}

#[test]
fn a_run_too_long_for_its_log_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "some.toml", OF_LOG);
    write(folder.path(), "some.swf", &log("; MaxProcs: 12\n; MaxJobs: 100\n", 100));
    run(folder.path(), &["some.toml", "--out", "short"]);
    write(folder.path(), "long.toml", &OF_LOG.replace("some.swf", "long.swf"));
    write(folder.path(), "long.swf", &log("; MaxProcs: 12\n; MaxJobs: 60000\n", 100));
    run(folder.path(), &["long.toml", "--out", "long"]);
    let lines = |run: &str| {
        fs::read_to_string(folder.path().join(run).join("events.jsonl")).unwrap().lines().count()
    };
    // The jobs that there are count, and not those that the log says it has.
    assert_eq!(lines("short"), lines("long"));
    older(folder.path(), "short");
    older(folder.path(), "long");
    let events = fs::read_to_string(folder.path().join("long/events.jsonl")).unwrap();
    write(folder.path(), "long/events.jsonl", &without_steps(&events));
    for args in [["replay"].as_slice(), &["check"], &["explain", "77"]] {
        let ask = |run: &str| {
            let all = [&args[..1], &[run], &args[1..]].concat();
            done(folder.path(), &all)
        };
        assert_eq!(ask("short"), ask("long"), "{args:?}");
    }
    // Other jobs, other decisions: that is seen where the header does not say what the log held.
    write(folder.path(), "long.swf", &log("; MaxProcs: 12\n; MaxJobs: 60000\n", 99));
    let said = refused(folder.path(), &["replay", "long"], 2);
    assert!(said.contains("long.swf: it has changed since"), "{said}");
    let events = fs::read_to_string(folder.path().join("long/events.jsonl")).unwrap();
    write(folder.path(), "long/events.jsonl", &without_inputs(&events));
    refused(folder.path(), &["replay", "long"], 1);
}

#[test]
fn a_log_holds_no_steps_of_very_many_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let line = |n: u64| format!("{n} {} -1 1 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n", n * 60);
    let jobs: String = (1..=50_001).map(line).collect();
    write(folder.path(), "some.toml", OF_LOG);
    write(folder.path(), "some.swf", &format!("; MaxProcs: 12\n; MaxJobs: 100\n{jobs}"));
    run(folder.path(), &["some.toml", "--out", "long"]);
    let events = fs::read_to_string(folder.path().join("long/events.jsonl")).unwrap();
    assert_eq!(events.lines().count(), 1);
    assert!(events.contains("more than 50000 jobs"), "{events}");
}

/// A log without steps, as a run of very many jobs leaves.
fn without_steps(events: &str) -> String {
    let header = events.lines().next().unwrap();
    let mut header: serde_json::Map<_, _> = serde_json::from_str(header).unwrap();
    header.insert("left-out".to_owned(), "the steps: there were too many".into());
    format!("{}\n", Value::Object(header))
}

/// A log without the digests of its input files, as older versions wrote.
fn without_inputs(events: &str) -> String {
    let (header, steps) = events.split_once('\n').unwrap();
    let mut header: serde_json::Map<_, _> = serde_json::from_str(header).unwrap();
    assert!(header.shift_remove("inputs").is_some());
    format!("{}\n{steps}", Value::Object(header))
}

#[test]
fn bad_experiments_are_named_with_file_and_place() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to, says) in [
        ("\"measy\"", "\"meazy\"", "did you mean 'measy'?"),
        ("\"model\"", "\"modle\"", "did you mean 'model'?"),
        ("jobs = 400", "jobs = -4", "bad.toml:7:1: workload.jobs"),
        ("load = 0.9", "load = 0.0", "workload.load"),
        ("seed = 3", "sede = 3", "did you mean 'seed'?"),
        ("model = \"fw-like\"", "model = \"fw\"", "there is no model 'fw'"),
        ("model = \"fw-like\"", "", "'model' is missing"),
        ("[scheduler]", "[scheduler]\nmigration-cost = \"20\"", "the unit of a number is missing"),
        ("processors = 64", "processors = 0", "workload.processors"),
        ("processors = 64", "processors = 7", "at least 8 processors"),
        ("[scheduler]", "[sharing]\nloss = [0.5, 0.1]\n[scheduler]", "sharing.loss"),
        (
            "[scheduler]",
            "[cloud]\ncatalogue = \"ec2-2020\"\n[scheduler]",
            "parallel jobs alone have a machine of their own",
        ),
    ] {
        assert!(MODEL.contains(from), "{from}");
        write(folder.path(), "bad.toml", &MODEL.replacen(from, to, 1));
        let before = tree(folder.path());
        let error = refused(folder.path(), &["run", "bad.toml"], 2);
        assert!(error.contains(says), "'{says}' is not in {error}");
        assert_eq!(tree(folder.path()), before, "something was left behind");
    }
    write(folder.path(), "good.toml", MODEL);
    for (args, says) in [
        (["run", "good.toml", "--plan", "x.json"].as_slice(), "only a bag of tasks has a plan"),
        (
            &["run", "good.toml", "--set", "scheduler.alpha=0.5"],
            "'alpha' is of name = \"burst-hads\"",
        ),
        (&["sweep", "good.toml", "--set", "seed=1,2", "--seeds", "3"], "--seeds 3"),
        (&["sweep", "good.toml", "--set", "scheduler.name=easy,meazy"], "did you mean 'measy'?"),
        (&["sweep", "good.toml", "--set", "workload.load=0.5,-1"], "workload.load"),
        (&["reproduce", "measy/kth-cost"], "--kth"),
        (&["reproduce", "burst-hads/readings", "--shard", "1/2"], "leave out --shard"),
    ] {
        let error = refused(folder.path(), args, 2);
        assert!(error.contains(says), "'{says}' is not in {error}");
    }
    // What a paper does not have its command line says, with what is like it.
    for (args, says) in [
        (["reproduce", "measy/figure-5"].as_slice(), "figure-6"),
        (&["reproduce", "measy", "--seed", "1", "--seeds", "3"], "--seeds"),
        (&["reproduce", "burst-hads", "--kth", "x.swf"], "--kth"),
    ] {
        let output = command(folder.path(), args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(says), "'{says}' is not in {error}");
    }
}

/// Every kind of malformed line stops the run with its place, or is left out and counted.
#[test]
fn malformed_logs_stop_the_run_or_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "some.toml", OF_LOG);
    let good = log("; MaxProcs: 12\n", 5);
    let last = |from: &str, to: &str| {
        assert!(good.lines().last().unwrap().contains(from));
        let (head, line) = good.trim_end().rsplit_once('\n').unwrap();
        format!("{head}\n{}\n", line.replacen(from, to, 1)).into_bytes()
    };
    let skip = ["run", "some.toml", "--set", "workload.on-malformed=skip", "--json", "--force"];
    for (bytes, says, kind) in [
        (last(" -1 -1 6", ""), "fields, not 18", "unreadable"),
        (last("1000", "-1000"), "below -1", "impossible"),
        (last(" 300 ", " -1 "), "submission time", "impossible"),
        (last(" 300 ", " 3 "), "before the job in the line above", "unsorted"),
        (last(" 6 1000 ", " 13 1000 "), "the machine has 12", "too_large"),
        ([good.as_bytes(), b"\0\xff\x1bjunk\xfe\n"].concat(), "is not a number", "unreadable"),
    ] {
        fs::write(folder.path().join("some.swf"), &bytes).unwrap();
        let error = refused(folder.path(), &["run", "some.toml"], 2);
        assert!(error.contains("some.swf, line ") && error.contains(says), "{error}");
        let summary: Value = serde_json::from_str(&done(folder.path(), &skip)).unwrap();
        assert_eq!(summary["left_out"][kind], 1, "{says}: {summary}");
        let jobs = summary["tasks"]["completed"].as_u64().unwrap();
        // The junk is a line of its own.
        assert_eq!(jobs, if bytes.ends_with(b"junk\xfe\n") { 5 } else { 4 }, "{says}");
        let text = done(folder.path(), &skip[..4]);
        assert!(text.contains("left out 1 malformed jobs"), "{text}");
    }
    for (name, bytes, says) in [
        ("some.swf", b"\x1f\x8b\x08cut".as_slice(), "can't read"),
        ("some.swf", &good.as_bytes()[15..], "MaxProcs"),
    ] {
        fs::write(folder.path().join(name), bytes).unwrap();
        let error = refused(folder.path(), &["run", "some.toml"], 2);
        assert!(error.contains("some.swf") && error.contains(says), "{error}");
    }
    fs::remove_file(folder.path().join("some.swf")).unwrap();
    let error = refused(folder.path(), &["run", "some.toml"], 2);
    assert!(error.contains("some.swf"), "{error}");
}

/// A run's header has the path of a log and a digest of its content. Once the log has changed, the run is not repeated
/// over its results, explained or resumed, unless the log is put back.
#[test]
fn a_run_whose_log_was_changed_is_another() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(at, "logged.toml", OF_LOG);
    let text = log("; MaxProcs: 16\n", 30);
    write(at, "some.swf", &text);
    let again = ["run", "logged.toml", "--quiet", "--out", "out"];
    let asked =
        [&["replay", "out"][..], &["check", "out"], &["explain", "out", "7"], &["twin", "out"]];
    let all_do = |why: &str| {
        for words in [&again[..]].iter().chain(&asked) {
            let output = command(at, words);
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{why}: {words:?}: {error}");
        }
    };
    done(at, &again);
    all_do("nothing has changed");
    let summary = fs::read_to_string(at.join("out/summary.json")).unwrap();

    // As long as before.
    write(at, "some.swf", &text.replacen(" 67 ", " 76 ", 1));
    let said = refused(at, &again, 2);
    for words in ["--out out", "some.swf has changed since", "--force"] {
        assert!(said.contains(words), "no '{words}' in: {said}");
    }
    assert_eq!(fs::read_to_string(at.join("out/summary.json")).unwrap(), summary);
    for words in asked {
        let said = refused(at, words, 2);
        assert!(said.contains("some.swf: it has changed since the run was made"), "{said}");
        assert!(said.contains("put back what it held"), "{said}");
    }
    // A live run that was killed has the same header.
    let events = fs::read_to_string(at.join("out/events.jsonl")).unwrap();
    fs::create_dir(at.join("killed")).unwrap();
    let live = events.replacen("\"mode\":\"virtual\"", "\"mode\":\"live\"", 1);
    write(at, "killed/events.jsonl", &live);
    let said = refused(at, &["resume", "killed"], 2);
    assert!(said.contains("some.swf: it has changed since"), "{said}");

    // An older version said nothing of what the log held, and had no hash chain.
    older(at, "out");
    let events = fs::read_to_string(at.join("out/events.jsonl")).unwrap();
    write(at, "out/events.jsonl", &without_inputs(&events));
    for words in asked {
        done(at, words);
    }
    done(at, &again);
    // What is not there any more may not be needed.
    fs::remove_file(at.join("some.swf")).unwrap();
    done(at, &["replay", "out"]);
    assert!(refused(at, &again, 2).contains("can't read"));
}
