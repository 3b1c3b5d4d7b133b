//! Times that are dates: a run of a log with dates begins at its first submission, and dates are shown beside the
//! times of the run.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dormouse_tests::dormouse;
use serde_json::{Value, json};

const EXPERIMENT: &str = "name = \"dated\"\n[workload]\nkind = \"swf\"\nlog = \"log.swf\"\n\
                          [scheduler]\nname = \"easy\"\n";

fn command(folder: &Path, args: &[&str]) -> Output {
    Command::new(dormouse()).args(args).current_dir(folder).output().unwrap()
}

fn done(folder: &Path, args: &[&str]) -> String {
    let output = command(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A log of two jobs that each need both processors, submitted at these seconds.
fn log(header: &str, submitted: [u64; 2]) -> String {
    let job = |(n, at): (usize, u64)| {
        format!("{} {at} 0 100 2 -1 -1 2 100 -1 1 1 1 -1 1 1 -1 -1\n", n + 1)
    };
    let jobs: String = submitted.into_iter().enumerate().map(job).collect();
    format!("; MaxProcs: 2\n{header}{jobs}")
}

/// Runs this log into `out` of a new folder; returns the folder and the run's summary.
fn ran(log: &str) -> (tempfile::TempDir, Value) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("log.swf"), log).unwrap();
    fs::write(folder.path().join("e.toml"), EXPERIMENT).unwrap();
    let summary = done(folder.path(), &["run", "e.toml", "--out", "out", "--json"]);
    (folder, serde_json::from_str(&summary).unwrap())
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The values of a column of `jobs.csv`.
fn column(folder: &Path, name: &str) -> Vec<String> {
    let text = read(folder, "out/jobs.csv");
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let at = rows.next().unwrap().iter().position(|column| *column == name).unwrap();
    rows.map(|row| row[at].to_owned()).collect()
}

/// The labels of a chart that are times or numbers.
fn labels(svg: &str) -> Vec<&str> {
    let texts = svg.split("<text").skip(1).filter_map(|text| text.split_once('>'));
    texts.filter_map(|(_, rest)| rest.split('<').next()).collect()
}

/// Alea's wagap-2013.swf and AccaSim's logs have Unix seconds as submission times.
#[test]
fn a_log_of_unix_seconds_begins_with_its_first_submission() {
    let (folder, summary) = ran(&log("", [1_356_996_147, 1_356_996_157]));
    let folder = folder.path();
    assert_eq!(summary["makespan_s"], 200.0);
    assert_eq!(
        summary["clock"],
        json!({ "begins": "2012-12-31 23:22:27 UTC", "log_time_s": 1_356_996_147.0 })
    );
    // Whoever compares it with the log finds the log's times.
    assert_eq!(column(folder, "submission_time"), ["1356996147", "1356996157"]);
    assert_eq!(column(folder, "starting_time"), ["1356996147", "1356996247"]);
    assert_eq!(column(folder, "finish_time"), ["1356996247", "1356996347"]);
    assert_eq!(column(folder, "waiting_time"), ["0", "90"]);
    let schedule = read(folder, "out/schedule.swf");
    assert!(schedule.contains("\n2 1356996157 90 100 2 "), "{schedule}");

    // Both processors are busy for 200 s, and that is all there is in the figures.
    let page = read(folder, "out/report.html");
    assert!(page.contains("It begins 2012-12-31 23:22:27 UTC, with the first submission."));
    let load = page.split_once("Load over time").unwrap().1;
    let figure = load.split_once("Busy processors").unwrap().1.split_once("</svg>").unwrap().0;
    let labels = labels(figure);
    assert!(labels.contains(&"time since 2012-12-31 23:22:27 UTC"), "{labels:?}");
    let times: Vec<_> = labels.iter().filter(|label| label.ends_with(" s")).collect();
    assert_eq!((times[0], times[times.len() - 1]), (&"0 s", &"180 s"), "{labels:?}");
    assert!(labels.contains(&"2.0") && summary["utilisation"] == 1.0, "{labels:?}");

    let told = done(folder, &["explain", "out", "2"]);
    let lines = [
        "job 2 under easy: 2 processes, estimated 1m40s (dates: UTC)",
        "             10s  2012-12-31 23:22:37  submitted",
        "           3m20s  2012-12-31 23:25:47  ended: response 3m10s, of which it waited 1m30s",
    ];
    assert!(lines.iter().all(|line| told.lines().any(|told| told == *line)), "{told}");
    let told: Value =
        serde_json::from_str(&done(folder, &["explain", "out", "2", "--json"])).unwrap();
    assert_eq!(told["happened"][0]["at_s"], 10.0);
    assert_eq!(told["happened"][0]["date"], "2012-12-31 23:22:37");

    for (out, from, until) in
        [("w", "0h", "24h"), ("d", "2012-12-31T23:22", "2013-01-01 01:00:00+01:00")]
    {
        done(
            folder,
            &["export", "out", "--as", "svg", "--from", from, "--until", until, "--out", out],
        );
        let svg = read(folder, &format!("{out}/gantt.svg"));
        assert_eq!(svg.matches("class=\"item bar ").count(), 2, "{from}: {svg}");
        assert!(svg.contains("from 2012-12-31 23:22:27 UTC"), "{svg}");
    }
    for (from, said) in [
        ("2013-06-01", "the run ends at 3m20s (2012-12-31 23:25:47 UTC)"),
        ("2012-31-12", "it is not a date; write it like 2024-09-22T10:00:00"),
        ("1", "or a date like 2024-09-22T10:00:00"),
    ] {
        let output =
            command(folder, &["export", "out", "--as", "svg", "--from", from, "--out", "n"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.contains(said)), (Some(2), true), "{error}");
    }
    done(folder, &["check", "out"]);
    assert!(done(folder, &["replay", "out"]).contains("all as recorded"));
}

/// A log may have a gap of weeks: the bins of figures cover the run, and the log's times stay as they are.
#[test]
fn a_log_of_dates_may_have_a_gap_of_weeks() {
    let (folder, summary) =
        ran(&log("; UnixStartTime: 1700000000\n", [1_700_000_000, 1_702_000_000]));
    assert_eq!(summary["makespan_s"], 2_000_100.0);
    assert_eq!(summary["clock"]["begins"], "2023-11-14 22:13:20 UTC");
    assert_eq!(column(folder.path(), "starting_time"), ["1700000000", "1702000000"]);
    let told = done(folder.path(), &["explain", "out", "2"]);
    assert!(told.contains("555h33m20s  2023-12-08 01:46:40  submitted"), "{told}");
}

/// Logs of the archive count from their beginning and give its date in their header: their runs stay the same, with
/// dates shown beside the times.
#[test]
fn a_log_that_says_when_it_begins_has_dates() {
    let (folder, summary) = ran(&log("; UnixStartTime: 843480031\n", [5, 15]));
    let folder = folder.path();
    assert_eq!(summary["clock"], json!({ "begins": "1996-09-23 12:00:31 UTC" }));
    assert_eq!(column(folder, "submission_time"), ["5", "15"]);
    let told = done(folder, &["explain", "out", "1"]);
    assert!(told.contains("\n              5s  1996-09-23 12:00:36  submitted"), "{told}");
    // Scaled times are no dates.
    let scaled = ["run", "e.toml", "--set", "workload.load=0.5", "--out", "scaled", "--json"];
    let summary: Value = serde_json::from_str(&done(folder, &scaled)).unwrap();
    assert!(summary.get("clock").is_none(), "{summary}");
}

/// The times of a part of a log of many years, without its header, are no dates and are counted from the first one.
#[test]
fn times_that_are_far_but_no_dates_are_counted_from_the_first() {
    let (folder, summary) = ran(&log("", [90_000_000, 90_000_010]));
    assert_eq!(summary["clock"], json!({ "log_time_s": 90_000_000.0 }));
    assert_eq!(column(folder.path(), "finish_time"), ["90000100", "90000200"]);
    let told = done(folder.path(), &["explain", "out", "1"]);
    assert!(told.contains("\n              0s  submitted"), "{told}");
    let page = read(folder.path(), "out/report.html");
    assert!(
        page.contains("It begins with the first submission, at 90000000 s of its log."),
        "{page}"
    );
    let dated = ["export", "out", "--as", "svg", "--from", "2024-01-01", "--out", "n"];
    let error = String::from_utf8(command(folder.path(), &dated).stderr).unwrap();
    assert!(error.contains("--from: the run in out has no dates"), "{error}");
}

/// A log without dates has none in any output of its run.
#[test]
fn a_log_without_dates_has_none() {
    let (folder, summary) = ran(&log("; UnixStartTime: 0\n", [1_000, 1_010]));
    assert!(summary.get("clock").is_none(), "{summary}");
    let header = read(folder.path(), "out/events.jsonl");
    assert!(!header.lines().next().unwrap().contains("calendar"));
    assert!(read(folder.path(), "out/report.html").contains("time since the beginning"));
    let told = done(folder.path(), &["explain", "out", "1"]);
    assert!(told.contains("\n          16m40s  submitted"), "{told}");
}

/// Recorded prices with dates say when the run of a bag begins.
#[test]
fn a_bag_begins_at_the_date_of_its_prices() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "time,price\n2024-09-22T09:09:07Z,0.05\n2024-09-23T09:09:07Z,0.06\n";
    fs::write(folder.path().join("p.csv"), rows).unwrap();
    let prices = |start: &str| format!("cloud.prices.\"c3.large\"={{ file = \"p.csv\", {start} }}");
    for (set, begins) in [
        (prices("start = \"1h\""), Some("2024-09-22 10:09:07 UTC")),
        (prices("start = \"0s\""), Some("2024-09-22 09:09:07 UTC")),
        ("cloud.boot=\"45s\"".to_owned(), None),
    ] {
        let args = ["run", "j60-sc2", "--set", &set, "--out", "out", "--force", "--json"];
        let summary: Value = serde_json::from_str(&done(folder.path(), &args)).unwrap();
        let said = summary.pointer("/clock/begins").and_then(Value::as_str);
        assert_eq!(said, begins, "{set}");
        let told = done(folder.path(), &["explain", "out", "task0"]);
        assert_eq!(told.contains("  2024-09-22 "), begins.is_some(), "{told}");
        let svg = read(folder.path(), "out/gantt.svg");
        assert_eq!(svg.contains("tasks · from 2024-09-22 "), begins.is_some(), "{svg}");
    }
}

/// A job that follows another stands before the first in a run's stream, and a load that is scaled
/// leaves the first submission where it is: neither moves the beginning of the clock.
#[test]
fn jobs_that_follow_and_scaled_loads_leave_the_beginning_at_the_first_submission() {
    let at = 1_726_996_147_u64;
    let job = |number: u32, at: u64, after: &str| {
        format!("{number} {at} 0 100 2 -1 -1 2 100 -1 1 1 1 -1 1 1 {after}\n")
    };
    let jobs = [job(1, at, "-1 -1"), job(2, at + 500, "-1 -1"), job(3, at + 900, "1 30")];
    let (folder, _) = ran(&format!("; MaxProcs: 2\n{}", jobs.concat()));
    let starts = |folder: &Path| column(folder, "starting_time");
    let log_times = |times: [u64; 3]| times.map(|time| (at + time).to_string()).to_vec();
    assert_eq!(starts(folder.path()), log_times([0, 130, 500]));
    // Jobs of 200 processor-seconds each: three in 900 s on two processors are a load of a third.
    let plain = [job(1, at, "-1 -1"), job(2, at + 300, "-1 -1"), job(3, at + 900, "-1 -1")];
    fs::write(folder.path().join("log.swf"), format!("; MaxProcs: 2\n{}", plain.concat())).unwrap();
    let half = ["run", "e.toml", "--out", "half", "--set", "workload.load=0.16666666666666666"];
    done(folder.path(), &half);
    fs::rename(folder.path().join("out"), folder.path().join("before")).unwrap();
    fs::rename(folder.path().join("half"), folder.path().join("out")).unwrap();
    assert_eq!(starts(folder.path()), log_times([0, 600, 1_800]));
}
