//! Tests of `dormouse metadata`: a metadata endpoint without a run, called as programs and libraries on a VM call it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use dormouse_tests::{dormouse, run_in, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde_json::{Value, json};

/// A scenario at speed-up ten: the VM gets its notice after a second, and ends after two.
const SCENARIO: &str = "\
[cloud]
preemption-notice = \"5m\"
[live.metadata]
tokens = \"required\"
tags = { Name = \"worker\" }
[[interruption]]
model = \"schedule\"
acts = [
    { at = \"10s\", action = \"rebalance\", vm = 0 },
    { at = \"15s\", action = \"preempt\", vm = 1 },
    { at = \"20s\", action = \"preempt\", type = \"c3.large\" },
]
";

/// A process of the metadata endpoint, which is killed when its test ends.
struct Endpoint {
    process: Child,
    address: String,
}

impl Endpoint {
    /// Starts an endpoint with these words on a free port.
    fn start(command: &mut Command, folder: &Path, words: &[&str]) -> Self {
        let command = command.arg("metadata").args(words).args(["--port", "0"]);
        let command = command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("http://").and_then(|rest| rest.split(' ').next());
        let address = address.unwrap_or_else(|| panic!("{words:?}: {line}")).to_owned();
        Self { process, address }
    }

    /// The status and the body of the answer to a request with these headers.
    fn ask(&self, request: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("{request} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.address);
        stream.write_all(head.as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The answer for a path of EC2's metadata, requested as boto3 does it: with a token that it gets first.
    fn metadata(&self, path: &str) -> (u16, String) {
        let ttl = ("x-aws-ec2-metadata-token-ttl-seconds", "21600");
        let (status, token) = self.ask("PUT /latest/api/token", &[ttl]);
        assert_eq!(status, 200, "{token}");
        let token = ("x-aws-ec2-metadata-token", token.as_str());
        self.ask(&format!("GET /latest/{path}"), &[token])
    }

    /// The content of a metadata path, once there is any.
    fn announced(&self, path: &str) -> String {
        wait_for(path, Duration::from_secs(30), || match self.metadata(path) {
            (200, body) => Ok(body),
            said => Err(format!("{said:?}")),
        })
    }

    /// Ends the endpoint with SIGTERM, as a supervisor does; returns its exit status.
    fn end(mut self) -> Option<i32> {
        kill(Pid::from_raw(self.process.id().cast_signed()), Signal::SIGTERM).unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Seconds from now to a time such as `2026-06-09T22:13:20Z`.
fn seconds_ahead(time: &str) -> i64 {
    let moment = dormouse_input::Moment::read(time).unwrap_or_else(|| panic!("{time}"));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    moment.second - i64::try_from(now).unwrap()
}

/// The command, run by a user without any rights.
fn as_nobody(folder: &Path) -> Command {
    if !geteuid().is_root() {
        return Command::new(dormouse());
    }
    let copy = folder.join("dormouse");
    fs::copy(dormouse(), &copy).unwrap();
    for path in [folder, &copy] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(copy);
    command.uid(65_534).gid(65_534);
    command
}

#[test]
fn a_scenario_is_announced_at_its_times() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("taken.toml"), SCENARIO).unwrap();
    let words = ["--scenario", "taken.toml", "--speedup", "10", "--tag", "team=weather"];
    let endpoint = Endpoint::start(&mut as_nobody(folder.path()), folder.path(), &words);
    let type_path = "GET /latest/meta-data/instance-type";
    assert_eq!(endpoint.ask(type_path, &[]).0, 401, "the scenario demands tokens");
    assert_eq!(endpoint.metadata("meta-data/instance-type"), (200, "c3.large".to_owned()));
    assert_eq!(endpoint.metadata("meta-data/tags/instance/").1, "Name\nteam");
    assert_eq!(endpoint.metadata("meta-data/iam/security-credentials/").0, 404);
    assert_eq!(endpoint.metadata("meta-data/spot/instance-action").0, 404, "it is too early");
    let rebalance = endpoint.announced("meta-data/events/recommendations/rebalance");
    let rebalance: Value = serde_json::from_str(&rebalance).unwrap();
    assert!((-10..=1).contains(&seconds_ahead(rebalance["noticeTime"].as_str().unwrap())));
    let action = endpoint.announced("meta-data/spot/instance-action");
    let action: Value = serde_json::from_str(&action).unwrap();
    assert_eq!(action["action"], "terminate");
    let time = action["time"].as_str().unwrap();
    assert!((15..=30).contains(&seconds_ahead(time)), "five minutes at ten times the pace: {time}");
    assert_eq!(endpoint.metadata("meta-data/spot/termination-time").1, time);
    // The same facts in the other dialects.
    let google = ("Metadata-Flavor", "Google");
    let preempted = endpoint.ask("GET /computeMetadata/v1/instance/preempted", &[google]);
    assert_eq!(preempted, (200, "TRUE".to_owned()));
    let events = "GET /metadata/scheduledevents?api-version=2020-07-01";
    let events = endpoint.ask(events, &[("Metadata", "true")]).1;
    let events: Value = serde_json::from_str(&events).unwrap();
    assert_eq!(events["Events"][0]["EventType"], "Preempt");
    let newest =
        endpoint.ask("GET /metadata/instance?api-version=2025-04-07", &[("Metadata", "true")]);
    assert_eq!(newest.0, 200);
    assert_eq!(endpoint.end(), Some(0));
}

/// The command lines with which amazon-ec2-metadata-mock is started work here, too.
#[test]
fn the_words_of_the_mock_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let start =
        |words: &[&str]| Endpoint::start(&mut Command::new(dormouse()), folder.path(), words);
    let spot = start(&["spot", "-d", "1", "--action", "stop", "-t", "2030-01-07T01:03:47Z", "-I"]);
    assert_eq!(spot.ask("GET /latest/meta-data/", &[]).0, 401, "-I demands tokens");
    let action = spot.announced("meta-data/spot/instance-action");
    let action: Value = serde_json::from_str(&action).unwrap();
    assert_eq!(action, json!({ "action": "stop", "time": "2030-01-07T01:03:47Z" }));
    assert_eq!(spot.metadata("meta-data/events/recommendations/rebalance").0, 200);
    assert_eq!(spot.metadata("meta-data/events/maintenance/scheduled").1, "[]");
    assert_eq!(spot.end(), Some(0));
    let events =
        start(&["-n", "localhost", "events", "-o", "instance-stop", "--state", "completed"]);
    let scheduled = wait_for("the event", Duration::from_secs(30), || {
        let (_, said) = events.ask("GET /latest/meta-data/events/maintenance/scheduled", &[]);
        serde_json::from_str::<Value>(&said).ok().filter(|all| all != &json!([])).ok_or(said)
    });
    assert_eq!(scheduled[0]["Code"], "instance-stop");
    assert_eq!(scheduled[0]["State"], "completed");
    assert_eq!(events.metadata("meta-data/spot/instance-action").0, 404);
    // Without any word everything is announced, and what is to come later is not yet.
    let all = start(&["--mock-delay-sec", "3600"]);
    assert_eq!(all.metadata("meta-data/instance-type").1, "m5.large");
    all.announced("meta-data/events/recommendations/rebalance");
    assert_eq!(all.metadata("meta-data/spot/instance-action").0, 404);
}

#[test]
fn what_cannot_be_served_is_refused_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let endpoint = Endpoint::start(&mut Command::new(dormouse()), at, &[]);
    let port = endpoint.address.rsplit(':').next().unwrap();
    fs::write(at.join("taken.toml"), SCENARIO).unwrap();
    fs::write(at.join("broken.toml"), "[[interruption]]\nmodel = \"schedul\"\n").unwrap();
    fs::write(at.join("offers.toml"), format!("{SCENARIO}[cloud]\n")).unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&["--port", port], "can't listen on 127.0.0.1:"),
        (&["--hostname", "no.such.host.invalid"], "--hostname no.such.host.invalid"),
        (&["--scenario", "nowhere.toml"], "nowhere.toml"),
        (&["--scenario", "broken.toml"], "broken.toml:2:"),
        (&["--scenario", "offers.toml"], "offers.toml:"),
        (&["--scenario", "j60-sc2", "--type", "m5.large"], "no such spot type"),
        (&["--scenario", "taken.toml", "spot"], "a scenario says what is announced"),
        (&["--user-data", "nowhere.txt"], "nowhere.txt"),
        (&["--tag", "a/b=c"], "'a/b' can't be the name of a tag"),
    ];
    for (words, why) in cases {
        let refused = run_in(at, &[&["metadata"][..], words].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.lines().count() == 1 && said.contains(why), "{words:?}: {said}");
    }
    for words in [&["spot", "--action", "explode"][..], &["--mock-trigger-time", "soon"]] {
        assert_eq!(
            run_in(at, &[&["metadata"][..], words].concat()).status.code(),
            Some(2),
            "{words:?}"
        );
    }
}
