//! A coordinator that is stopped and resumed by the same command, as in a container, while its workers stay.
//!
//! It needs what the other live tests need (`whole_runs.rs`).

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dormouse_tests::{
    UnderWay, checks_and_replays, dormouse, events, nothing_is_left_but, shared_live_turn, summary,
    text, traces, wait_for_report,
};
use nix::sys::signal::Signal;

/// Tasks of 16 s of real time, each with checkpoints of which some fall into the time without a coordinator.
const BAG: &str = r#"name = "stopped"
[cloud]
catalogue = "ec2-2020"
boot = "60s"
[workload]
kind = "bag"
deadline = "25m"
[[workload.task]]
name = "small"
count = 4
memory = "10 MB"
runtime = { "c3.large" = "500s", "t3.large" = "500s" }
[scheduler]
name = "burst-hads"
alpha = 0.1
[checkpoint]
overhead = 0.1
on = "all"
[live]
speedup = 30
share = 0.1
lost-after = "2.5s"
"#;

/// Time for which the coordinator is stopped: more than three times the allowed silence of a worker.
const STOPPED: Duration = Duration::from_secs(8);

fn worker(address: &str, secret: &Path, name: &str, root: &Path) -> Child {
    Command::new(dormouse())
        .args(["worker", "--coordinator", address, "--name", name, "--of", "2", "--root"])
        .arg(root)
        .arg("--secret-file")
        .arg(secret)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn the_same_command_begins_a_run_goes_on_with_it_and_finds_it_over() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("experiment.toml"), folder.path().join("out"));
    fs::write(&file, BAG).unwrap();
    let (file, dir) = (file.to_str().unwrap(), out.to_str().unwrap());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let words =
        ["coordinator", file, "--listen", &address, "--workers", "2", "--out", dir, "--resume"];
    // They wait for the secret and the coordinator.
    let mut workers = ["w1", "w2"]
        .map(|name| worker(&address, &out.join("secret"), name, &folder.path().join(name)));

    let run = UnderWay::begin(&out, &words);
    wait_for_report(&out, "task-started", 0);
    let stopped = run.told(Signal::SIGTERM);
    assert_eq!(stopped.status.code(), Some(3), "{}", text(&stopped));
    assert!(text(&stopped).contains("paused"), "{}", text(&stopped));
    let stopped_at = events(&out).len();
    // This is how long it is stopped: nothing is waited for.
    std::thread::sleep(STOPPED);
    for worker in &mut workers {
        assert_eq!(worker.try_wait().unwrap(), None, "it has left");
    }

    let ended = UnderWay::begin(&out, &words).ended();
    assert!(ended.status.success(), "{}", text(&ended));
    for worker in workers {
        let ended = worker.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended));
    }
    let summary = summary(&out);
    assert_eq!(summary["tasks"]["verified"], 4, "{summary:#}");
    let events = events(&out);
    let of = |event: &str| events.iter().filter(|it| it["event"] == event).count();
    assert_eq!((of("resumed"), of("host-lost")), (1, 0), "{summary:#}");
    let attempts = |it: &&serde_json::Value| it["report"] == "task-started" && it["attempt"] != 1;
    assert_eq!(events.iter().find(attempts), None, "no work is begun again");
    // What was taken meanwhile was sent once it could be.
    let late = &events[stopped_at..];
    assert!(late.iter().any(|it| it["report"] == "checkpoint-taken"), "{late:#?}");
    assert_eq!(events.iter().find(|it| it["report"] == "checkpoint-failed"), None);
    checks_and_replays(&out);

    let again = UnderWay::begin(&out, &words).ended();
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
    let other = [&words[..], &["--seed", "7"]].concat();
    let refused = UnderWay::begin(&out, &other).ended();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("seed"), "{}", text(&refused));
    nothing_is_left_but(&before);
}
