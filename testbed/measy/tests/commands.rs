//! The commands as a user calls them.

use std::path::{Path, PathBuf};

use dormouse_measy::cli::{CliError, ExplainArgs, ReproduceArgs, RunArgs};
use dormouse_measy::{BatchExperiment, ExperimentError};

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

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn run(experiment: &Path, out: &Path) -> Result<serde_json::Value, CliError> {
    let args = RunArgs {
        experiment: experiment.to_owned(),
        seed: None,
        scheduler: None,
        out: out.to_owned(),
        json: true,
    };
    let mut text = Vec::new();
    args.run(&mut text)?;
    Ok(serde_json::from_slice(&text).expect("the summary is JSON"))
}

#[test]
fn a_run_leaves_its_files_and_the_same_digest_every_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let experiment = write(folder.path(), "small.toml", MODEL);
    let (one, two) = (folder.path().join("1"), folder.path().join("2"));
    let first = run(&experiment, &one).expect("it runs");
    let second = run(&experiment, &two).expect("it runs");
    assert_eq!(first, second);
    assert_eq!(first["tasks"]["completed"], 400);
    for name in ["jobs.csv", "schedule.swf", "summary.json"] {
        let read = |folder: &Path| std::fs::read(folder.join(name)).expect("it is there");
        assert_eq!(read(&one), read(&two), "{name}");
    }
    let csv = std::fs::read_to_string(one.join("jobs.csv")).expect("it is there");
    assert_eq!(csv.lines().count(), 401);
}

/// A schedule that a run wrote is a workload again.
#[test]
fn a_schedule_reads_back_as_a_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let experiment = write(folder.path(), "small.toml", MODEL);
    run(&experiment, folder.path()).expect("it runs");
    let again = write(
        folder.path(),
        "again.toml",
        "name = \"again\"\n[workload]\nkind = \"swf\"\nlog = \"schedule.swf\"\n\
         on-malformed = \"skip\"\n[scheduler]\nname = \"easy\"\n",
    );
    let summary = run(&again, &folder.path().join("again")).expect("it runs");
    // It is in the order of ends: what goes back in time is left out, and counted.
    let jobs = summary["tasks"]["completed"].as_u64().expect("a number");
    assert!((10..400).contains(&jobs), "{jobs}");
}

#[test]
fn explain_tells_of_the_wait_and_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let easy = MODEL.replace("measy", "easy");
    let experiment = write(folder.path(), "small.toml", &easy);
    let tell = |job| {
        let mut text = Vec::new();
        ExplainArgs { experiment: experiment.clone(), job }.run(&mut text)?;
        Ok::<_, CliError>(String::from_utf8(text).expect("text"))
    };
    let stories: Vec<_> = (1..=400).step_by(9).map(|job| tell(job).expect("it is there")).collect();
    assert!(stories.iter().all(|s| s.contains("submitted") && s.contains("ended: response")));
    for reason in ["head of the queue", "expected to end before the reservation of job", "only"] {
        assert!(stories.iter().any(|s| s.contains(reason)), "nobody is told '{reason}'");
    }
    assert!(tell(401).expect_err("no such job").to_string().contains("no job 401"));
}

#[test]
fn bad_experiments_are_named_with_file_and_place() {
    let folder = tempfile::tempdir().expect("a folder");
    for (from, to, says) in [
        ("\"measy\"", "\"meazy\"", "no batch scheduler 'meazy'"),
        ("jobs = 400", "jobs = -4", "line 7"),
        ("load = 0.9", "load = 0.0", "workload.load is 0"),
        ("seed = 3", "sede = 3", "unknown field `sede`"),
        ("model = \"fw-like\"", "model = \"fw\"", "no model 'fw'"),
        ("model = \"fw-like\"", "", "workload.model is missing"),
        ("[scheduler]", "[scheduler]\nmigration-cost = \"20\"", "lacks its unit"),
        ("processors = 64", "processors = 0", "workload.processors is 0"),
    ] {
        let path = write(folder.path(), "bad.toml", &MODEL.replace(from, to));
        let error = BatchExperiment::load(&path).expect_err(says).to_string();
        assert!(error.contains("bad.toml") && error.contains(says), "{error}");
    }
    let missing = BatchExperiment::load(&folder.path().join("none.toml"));
    assert!(matches!(missing, Err(ExperimentError::Read { .. })));
}

#[test]
fn a_missing_log_is_the_inputs_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "name = \"x\"\n[workload]\nkind = \"swf\"\nlog = \"no.swf\"\n[scheduler]\nname = \"easy\"\n";
    let experiment = write(folder.path(), "x.toml", text);
    let error = run(&experiment, &folder.path().join("out")).expect_err("no log");
    assert_eq!(error.exit_status(), 2);
    assert!(error.to_string().contains("no.swf"), "{error}");
}

#[test]
fn the_evaluation_is_the_same_bytes_on_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let reproduce = |threads: usize| {
        let out = folder.path().join(threads.to_string());
        let args = ReproduceArgs {
            figure: Some("figure-13".to_owned()),
            kth: None,
            jobs: Some(300),
            seed: 1,
            threads: Some(threads),
            out: out.clone(),
        };
        args.run(&mut Vec::new(), |_, _| {}).expect("it runs");
        ["table.csv", "report.md", "figure-13.svg"]
            .map(|name| std::fs::read(out.join(name)).expect("it is there"))
    };
    let one = reproduce(1);
    assert_eq!(one, reproduce(3));
    let table = String::from_utf8_lossy(&one[0]).into_owned();
    assert!(table.starts_with("case,metric,paper,ours_mean,ours_ci95_low,ours_ci95_high,n\n"));
    assert!(table.contains("fw-like/measy against keasy,break_even_cost_least_s,900,"), "{table}");
}

#[test]
fn a_figure_that_is_not_there_names_those_that_are() {
    let args = ReproduceArgs {
        figure: Some("figure-5".to_owned()),
        kth: None,
        jobs: None,
        seed: 1,
        threads: None,
        out: PathBuf::from("nowhere"),
    };
    let error = args.run(&mut Vec::new(), |_, _| {}).expect_err("no such figure");
    assert!(error.to_string().contains("figure-6"), "{error}");
    assert_eq!(error.exit_status(), 2);
}
