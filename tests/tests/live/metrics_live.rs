//! The metrics of a live run, scraped by a real Prometheus.
//!
//! It needs what live runs need (`tests/live.rs`), and the programs that `scripts/get-prometheus`
//! obtains. Elsewhere the test is skipped and says so; with `CI=true` that is a failure.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dormouse_tests::{UnderWay, dormouse, events, shared_live_turn, summary, text, wait_for};
use serde_json::Value;

/// Tasks of 300 s on one spot type that hibernates for good after the first checkpoints: about half
/// a minute of real time.
const EXPERIMENT: &str = r#"name = "measured"
seed = 1
[cloud]
catalogue = "ec2-2020"
boot = "30s"
[[interruption]]
model = "schedule"
acts = [{ at = "250s", action = "hibernate", type = "c3.large" }]
[workload]
kind = "bag"
deadline = "15m"
[[workload.task]]
name = "small"
count = 8
memory = "10 MB"
runtime = { "c3.large" = "300s", "t3.large" = "300s" }
[scheduler]
name = "burst-hads"
alpha = 0.1
[live]
speedup = 30
share = 0.1
"#;

/// The folder of `prometheus` and `promtool`; `None`, after printing so, if they are not installed.
fn programs() -> Option<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/get-prometheus");
    let said = Command::new(script).arg("--print").output().unwrap();
    if said.status.success() {
        return Some(PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()));
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "no Prometheus: {}", text(&said));
    println!("skipped: there is no Prometheus; scripts/get-prometheus obtains one");
    None
}

/// A process that is killed when its test ends, however that is.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The address of a run's page, read from the run's folder once the page is served.
fn page_in(out: &Path) -> String {
    wait_for("the page is served", Duration::from_secs(30), || {
        let file = out.join("http");
        let said =
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let whole = said.strip_suffix('\n').ok_or("half an address")?;
        Ok(whole.to_owned())
    })
}

/// A Prometheus that scrapes one target.
struct Prometheus {
    _process: Beside,
    address: String,
}

impl Prometheus {
    /// Starts Prometheus in this folder, with the alerts that the project ships.
    fn start(programs: &Path, folder: &Path, target: &str) -> Self {
        let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../testbed/watch/prometheus");
        let config = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\n\
             rule_files: ['{rules}/dormouse-rules.yml']\n\
             scrape_configs:\n  - job_name: dormouse\n    static_configs: [{{ targets: ['{target}'] }}]\n"
        );
        let file = folder.join("prometheus.yml");
        fs::write(&file, config).unwrap();
        // Free a moment ago, and nobody else's in a test's turn.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let said = fs::File::create(folder.join("prometheus.log")).unwrap();
        let process = Command::new(programs.join("prometheus"))
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .unwrap();
        let prometheus = Self { _process: Beside(process), address: port.to_string() };
        wait_for("Prometheus is ready", Duration::from_secs(60), || {
            let (status, body) = get(&prometheus.address, "/-/ready", &[])?;
            if status == 200 { Ok(()) } else { Err(format!("{status}: {body}")) }
        });
        prometheus
    }

    /// The present value of an expression that has one value.
    fn value(&self, expression: &str) -> Result<f64, String> {
        let encoded: String = expression
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
                byte => format!("%{byte:02X}"),
            })
            .collect();
        let path = format!("/api/v1/query?query={encoded}");
        let (status, body) = get(&self.address, &path, &[])?;
        let said: Value = serde_json::from_str(&body).map_err(|e| format!("{status}: {e}"))?;
        let of = said["data"]["result"].as_array().map_or(&[][..], Vec::as_slice);
        match of {
            [one] => one["value"][1].as_str().and_then(|it| it.parse().ok()).ok_or(body),
            _ => Err(format!("{expression}: {body}")),
        }
    }

    fn comes_to(&self, expression: &str, expected: f64) {
        wait_for(&format!("{expression} is {expected}"), Duration::from_secs(20), || {
            let value = self.value(expression)?;
            if (value - expected).abs() < 1e-9 { Ok(()) } else { Err(format!("it is {value}")) }
        });
    }
}

/// A server's answer to a request for this path: the status, and the whole text with head and body.
fn get(address: &str, path: &str, headers: &[&str]) -> Result<(u16, String), String> {
    let said = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        // In version 1.0 a body is as it is, and ends with the connection.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\n")?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        Ok(said)
    };
    let said = said().map_err(|error| format!("{address}{path}: {error}"))?;
    let status = said.split(' ').nth(1).and_then(|status| status.parse().ok());
    let (head, body) = said.split_once("\r\n\r\n").unwrap_or((&said, ""));
    let body = if headers.is_empty() { body.to_owned() } else { format!("{head}\r\n\r\n{body}") };
    status.map(|status| (status, body)).ok_or(said)
}

/// Runs `promtool` on this input; it must succeed without a warning.
fn promtool(programs: &Path, words: &[&str], input: &str) {
    let mut tool = Command::new(programs.join("promtool"));
    let tool = tool.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = tool.spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let said = process.wait_with_output().unwrap();
    assert!(said.status.success(), "promtool {words:?}: {}", text(&said));
    if words == ["check", "metrics"] {
        assert_eq!(text(&said), "", "promtool {words:?} warns");
    }
}

#[test]
fn prometheus_sees_a_live_run_to_its_end() {
    let Some(_turn) = shared_live_turn() else { return };
    let Some(programs) = programs() else { return };
    let rules =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../testbed/watch/prometheus/dormouse-rules.yml");
    promtool(&programs, &["check", "rules", rules], "");

    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("experiment.toml"), folder.path().join("out"));
    fs::write(&file, EXPERIMENT).unwrap();
    let run = UnderWay::live(&out, &file, &["--http", "127.0.0.1:0"]);
    let page = page_in(&out);
    let prometheus = Prometheus::start(&programs, folder.path(), &page);
    prometheus.comes_to("up", 1.0);
    prometheus.comes_to("dormouse_coordinator_up", 1.0);
    prometheus.comes_to("count(dormouse_run_info{experiment=\"measured\",mode=\"live\"})", 1.0);
    prometheus.comes_to("count(dormouse_session_connected == 1)", 1.0);

    // Both formats, while the run goes.
    let plain = wait_for("a task is done", Duration::from_secs(60), || {
        let (status, body) = get(&page, "/metrics", &[])?;
        assert_eq!(status, 200, "{body}");
        let done = "dormouse_tasks{kind=\"task\",state=\"done\"} ";
        let done = body.lines().find_map(|line| line.strip_prefix(done));
        if done.is_some_and(|done| done != "0") { Ok(body) } else { Err(format!("{done:?}")) }
    });
    promtool(&programs, &["check", "metrics"], &plain);
    let open = get(&page, "/metrics", &["Accept: application/openmetrics-text;version=1.0.0"]);
    let open = open.unwrap().1;
    assert!(open.contains("application/openmetrics-text") && open.ends_with("# EOF\n"), "{open}");
    let first = prometheus.value("dormouse_tasks{state=\"done\"}").unwrap_or_default();

    let ended = run.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    let (summary, log) = (summary(&out), events(&out));
    assert_eq!(summary["tasks"]["verified"], 8, "{summary:#}");
    // What was scraped while it went, whether or not it was scraped once more as it ended.
    let last = |series: &str| {
        prometheus
            .value(&format!("max_over_time({series}[5m])"))
            .unwrap_or_else(|why| panic!("{why}"))
    };
    let done = last("dormouse_tasks{state=\"done\"}");
    assert!((first..=8.0).contains(&done) && done >= 1.0, "{first} then {done} tasks were done");
    // One that comes too late, of an attempt that was given up, is none.
    let is_stale = |it: &Value| it["effects"].to_string().contains("\"stale\"");
    let taken = log.iter().filter(|it| it["report"] == "checkpoint-taken" && !is_stale(it));
    let checkpoints = taken.count();
    assert_eq!(summary["counts"]["checkpoints"], checkpoints, "{summary:#}");
    assert!(checkpoints > 0, "no checkpoints");
    assert!(last("dormouse_hibernations_total") >= 1.0);

    // All of it, from a page of the run that is over.
    drop(prometheus);
    let mut watch = Command::new(dormouse());
    let watch = watch.arg("watch").arg(&out).args(["--http", "127.0.0.1:0"]);
    let watch = Beside(watch.stdout(Stdio::null()).spawn().unwrap());
    let page = page_in(&out);
    let again = tempfile::tempdir().unwrap();
    let prometheus = Prometheus::start(&programs, again.path(), &page);
    let count = |n: usize| f64::from(u32::try_from(n).unwrap());
    prometheus.comes_to("dormouse_run_complete", 1.0);
    prometheus.comes_to("dormouse_coordinator_up", 0.0);
    prometheus.comes_to("dormouse_tasks{state=\"done\"}", 8.0);
    for histogram in ["size_bytes", "hold_seconds", "dump_seconds"] {
        prometheus.comes_to(&format!("dormouse_checkpoint_{histogram}_count"), count(checkpoints));
        prometheus.comes_to(
            &format!("dormouse_checkpoint_{histogram}_bucket{{le=\"+Inf\"}}"),
            count(checkpoints),
        );
    }
    prometheus.comes_to("dormouse_task_time_error_ratio_count", 8.0);
    // The first line is the log's header.
    prometheus.comes_to("dormouse_events_total", count(log.len() - 1));
    let cost = summary["cost_usd"].as_f64().unwrap();
    let scraped = prometheus.value("max_over_time(dormouse_cost_usd[1m])").unwrap();
    assert!((cost - scraped).abs() < 1e-6, "{scraped} of {cost} dollars");
    let (_, plain) = get(&page, "/metrics", &[]).unwrap();
    promtool(&programs, &["check", "metrics"], &plain);
    drop(watch);
}
