//! A live run whose checkpoints are in a bucket, on a real server of S3's protocol, on loopback.
//!
//! It needs what the other live tests need (`whole_runs.rs`).

use std::fs;
use std::path::{Path, PathBuf};

use dormouse_tests::{
    UnderWay, checks_and_replays, events, nothing_is_left_but, shared_live_turn, summary, text,
    traces, wait_for_report,
};
use nix::sys::signal::Signal;
use s3::{KEY, SECRET, Server};
use tokio::runtime::Runtime;

#[path = "../../../testbed/bucket/src/tests/s3/mod.rs"]
mod s3;

/// Tasks of 20 s of real time, each with four checkpoints. They are small: the server is built without optimisation.
const BAG: &str = r#"name = "bucket"
[cloud]
catalogue = "ec2-2020"
boot = "60s"
[workload]
kind = "bag"
deadline = "25m"
[[workload.task]]
name = "small"
count = 4
memory = "1 MB"
runtime = { "c3.large" = "600s", "t3.large" = "600s" }
[scheduler]
name = "burst-hads"
alpha = 0.1
[checkpoint]
overhead = 0.1
on = "all"
[live]
speedup = 30
share = 0.1
"#;

/// A folder for a run and its experiment, and beside it a folder for the server's buckets.
struct RunFolder {
    folder: tempfile::TempDir,
    file: PathBuf,
    out: PathBuf,
}

impl RunFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, out) = (folder.path().join("experiment.toml"), folder.path().join("out"));
        fs::write(&file, BAG).unwrap();
        fs::create_dir_all(folder.path().join("s3/runs")).unwrap();
        Self { folder, file, out }
    }

    fn s3(&self) -> PathBuf {
        self.folder.path().join("s3")
    }

    fn begin(&self, url: &str, endpoint: &str, secret: &str) -> UnderWay {
        let (file, dir) = (self.file.to_str().unwrap(), self.out.to_str().unwrap());
        let url = format!("live.checkpoint-store.url={url}");
        let endpoint = format!("live.checkpoint-store.endpoint={endpoint}");
        let timeout = "live.checkpoint-store.timeout=5s";
        let set = ["--set", &url, "--set", &endpoint, "--set", timeout];
        let words = [&["run", file, "--live", "--out", dir], &set[..]].concat();
        UnderWay::begin_in(&self.out, &words, &environment(secret))
    }

    fn resume(&self) -> UnderWay {
        let words = ["resume", self.out.to_str().unwrap()];
        UnderWay::begin_in(&self.out, &words, &environment(SECRET))
    }
}

const fn environment(secret: &str) -> [(&str, &str); 2] {
    [("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", secret)]
}

/// The files below a folder, except for those that the server keeps for itself.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if name.starts_with('.') => {}
            false => found.push(path),
        }
    }
    found
}

#[test]
fn a_run_whose_coordinator_and_folder_of_checkpoints_are_lost_goes_on_from_the_bucket() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let (runtime, place) = (Runtime::new().unwrap(), RunFolder::new());
    let server = runtime.block_on(Server::start(&place.s3()));
    let run = place.begin("s3://runs/mine", &server.address, SECRET);
    wait_for_report(&place.out, "checkpoint-taken", 0);
    let killed = run.told(Signal::SIGKILL);
    assert_eq!(killed.status.code(), None, "{}", text(&killed));
    let is_checkpoint = |path: &PathBuf| path.to_string_lossy().contains("/checkpoints/");
    let stored = files(&place.s3()).into_iter().filter(is_checkpoint).count();
    assert!(stored > 0, "{:#?}", files(&place.s3()));
    // All that the host of the coordinator had of them is gone.
    for lost in ["checkpoints", "contents"] {
        fs::remove_dir_all(place.out.join(lost)).unwrap();
    }
    let after = events(&place.out).len();

    // The server is away when the run is gone on with, and says so.
    let address = server.address.trim_start_matches("http://").to_owned();
    runtime.block_on(server.stop());
    let refused = place.resume().ended();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("s3://runs/mine at http://"), "{}", text(&refused));
    assert!(text(&refused).contains("check that the server is running"), "{}", text(&refused));

    let _server = runtime.block_on(Server::start_at(&place.s3(), &address));
    let ended = place.resume().ended();
    assert!(ended.status.success(), "{}", text(&ended));
    let (summary, events) = (summary(&place.out), events(&place.out));
    assert_eq!(summary["tasks"]["verified"], 4, "{summary:#}");
    let late = &events[after..];
    let restored = |it: &&serde_json::Value| it["report"] == "task-started" && it["done"] != 0;
    assert!(late.iter().any(|it| restored(&it)), "none went on from a checkpoint: {late:#?}");
    let failed = |it: &&serde_json::Value| it["report"] == "task-failed";
    assert_eq!(late.iter().find(failed), None);
    checks_and_replays(&place.out);
    assert_eq!(files(&place.s3()), [""; 0].map(PathBuf::from), "they go with the run's end");
    let left: Vec<_> = before
        .into_iter()
        .chain(traces().into_iter().filter(|t| t.starts_with("/dev/shm")))
        .collect();
    nothing_is_left_but(&left);
}

#[test]
fn a_server_that_goes_away_in_the_middle_costs_checkpoints_and_no_work() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let (runtime, place) = (Runtime::new().unwrap(), RunFolder::new());
    let server = runtime.block_on(Server::start(&place.s3()));
    let run = place.begin("s3://runs", &server.address, SECRET);
    wait_for_report(&place.out, "checkpoint-taken", 0);
    let address = server.address.trim_start_matches("http://").to_owned();
    runtime.block_on(server.stop());
    wait_for_report(&place.out, "checkpoint-failed", 0);
    let _server = runtime.block_on(Server::start_at(&place.s3(), &address));
    let ended = run.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    let (summary, events) = (summary(&place.out), events(&place.out));
    assert_eq!(summary["tasks"]["verified"], 4, "{summary:#}");
    let failed = events.iter().find(|it| it["report"] == "checkpoint-failed").unwrap();
    let why = failed["why"].as_str().unwrap();
    assert!(why.contains("s3://runs at http://127.0.0.1:") && !why.contains('\n'), "{why}");
    let attempts = |it: &&serde_json::Value| it["report"] == "task-started" && it["attempt"] != 1;
    assert_eq!(events.iter().find(attempts), None, "no work is begun again");
    checks_and_replays(&place.out);
    nothing_is_left_but(&before);
}

#[test]
fn a_bucket_that_cannot_be_used_ends_a_run_before_it_begins() {
    let Some(_turn) = shared_live_turn() else { return };
    let (runtime, place) = (Runtime::new().unwrap(), RunFolder::new());
    let server = runtime.block_on(Server::start(&place.s3()));
    for (url, secret, said) in [
        ("s3://runs", "another", "AWS_SECRET_ACCESS_KEY"),
        ("s3://no-such-runs", SECRET, "make the bucket"),
        ("s3://runs", "", "AWS_SECRET_ACCESS_KEY is not set"),
        ("runs", SECRET, "write s3://BUCKET"),
    ] {
        let refused = place.begin(url, &server.address, secret).ended();
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        let all = text(&refused);
        let why: Vec<_> = all.lines().filter(|line| line.contains(said)).collect();
        assert_eq!(why.len(), 1, "{all}");
        assert!(!place.out.join("events.jsonl").exists());
    }
}
