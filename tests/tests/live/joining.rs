//! Workers that the coordinator of a real run accepts or refuses.
//!
//! They need root and control groups. Elsewhere each is skipped and says so; with `CI=true` that is
//! a failure.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dormouse_tests::{dormouse, shared_live_turn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A token in the right format that belongs to no run.
const TOKEN: &str = "dm1.worker.99999999999.\
                     0000000000000000000000000000000000000000000000000000000000000000.\
                     0000000000000000000000000000000000000000000000000000000000000000";

/// A run that waits for its workers.
struct Waiting {
    coordinator: Child,
    says: BufReader<ChildStderr>,
    address: String,
    secret: PathBuf,
    folder: tempfile::TempDir,
}

impl Waiting {
    fn start(workers: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut coordinator = Command::new(dormouse())
            .args(["coordinator", "j60-sc2", "--listen", "127.0.0.1:0", "--workers", workers])
            .arg("--out")
            .arg(folder.path().join("out"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut says = BufReader::new(coordinator.stderr.take().unwrap());
        let mut line = String::new();
        says.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").and_then(|rest| rest.split_once(';'));
        let address = address.unwrap_or_else(|| panic!("{line}")).0.to_owned();
        let secret = folder.path().join("out/secret");
        assert!(line.contains(secret.to_str().unwrap()), "{line}");
        Self { coordinator, says, address, secret, folder }
    }

    fn worker(&self, name: &str, root: &str, secret: &Path) -> Child {
        Command::new(dormouse())
            .args(["worker", "--coordinator", &self.address, "--name", name, "--secret-file"])
            .arg(secret)
            .arg("--root")
            .arg(self.folder.path().join(root))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn end(mut self) {
        kill(Pid::from_raw(self.coordinator.id().cast_signed()), Signal::SIGTERM).unwrap();
        // What is not read would make it wait.
        let reading = std::thread::spawn(move || self.says.lines().count());
        self.coordinator.wait().unwrap();
        reading.join().unwrap();
    }
}

#[test]
fn a_worker_that_has_not_joined_ends_with_who_started_it() {
    let Some(_turn) = shared_live_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, TOKEN).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    // Nobody listens there.
    let worker = "\"$0\" worker --coordinator 127.0.0.1:1 --name w --parent $$ --root \"$1\" \
                  --secret-file \"$2\" 2>&1 & echo $!; wait";
    let mut shell = Command::new("sh")
        .args(["-c", worker])
        .args([dormouse(), &folder.path().join("root"), &secret])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut says = BufReader::new(shell.stdout.take().unwrap());
    let mut line = String::new();
    says.read_line(&mut line).unwrap();
    let worker = Pid::from_raw(line.trim().parse().unwrap());
    // It says so once it dials in vain.
    let mut said = String::new();
    while !said.contains("no coordinator answers yet") {
        assert!(says.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let begun = Instant::now();
    shell.kill().unwrap();
    shell.wait().unwrap();
    while kill(worker, None).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(10), "it is still there: {said}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The one line of output of a worker that was refused; checks that its exit status is 2.
fn refusal(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "not one line: {said}");
    said
}

#[test]
fn a_worker_with_another_runs_secret_is_refused_at_once() {
    let Some(_turn) = shared_live_turn() else { return };
    let run = Waiting::start("1");
    assert_eq!(fs::metadata(&run.secret).unwrap().mode() & 0o777, 0o600);
    let wrong = run.folder.path().join("wrong");
    fs::write(&wrong, TOKEN).unwrap();
    let said = refusal(&run.worker("w", "w", &wrong).wait_with_output().unwrap());
    for word in ["not that of this run", "--secret-file", run.address.as_str()] {
        assert!(said.contains(word), "no '{word}' in: {said}");
    }
    run.end();
}

#[test]
fn of_two_workers_of_one_name_the_second_is_refused_at_once() {
    let Some(_turn) = shared_live_turn() else { return };
    let run = Waiting::start("2");
    let mut first = run.worker("w", "first", &run.secret);
    // It has its session once it says so.
    let mut says = BufReader::new(first.stderr.take().unwrap());
    let mut line = String::new();
    says.read_line(&mut line).unwrap();
    assert!(line.contains("joined"), "{line}");
    let second = run.worker("w", "second", &run.secret).wait_with_output().unwrap();
    let said = refusal(&second);
    assert!(said.contains("name w is connected") && said.contains("--name"), "{said}");
    assert_eq!(first.try_wait().unwrap(), None, "the first is none the worse for it");
    run.end();
    assert_eq!(first.wait().unwrap().code(), Some(0));
}

#[test]
fn who_joins_is_said_once_by_either_side() {
    let Some(_turn) = shared_live_turn() else { return };
    let mut run = Waiting::start("2");
    let worker = run.worker("w", "w", &run.secret);
    let mut line = String::new();
    run.says.read_line(&mut line).unwrap();
    assert!(line.contains("worker w joined as host0, with") && line.contains("cores"), "{line}");
    let address = run.address.clone();
    run.end();
    let said = worker.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(0));
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("joined run j60-sc2") && said.contains(&address), "{said}");
}

/// A worker that gets no answer tries for the time that it was given, ever more seldom, and then gives up.
#[test]
fn a_worker_without_a_coordinator_says_so_ever_more_seldom_and_then_gives_up() {
    let Some(_turn) = shared_live_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, TOKEN).unwrap();
    let begun = Instant::now();
    let output = Command::new(dormouse())
        // Nobody listens there.
        .args(["worker", "--coordinator", "127.0.0.1:1", "--wait", "15s", "--secret-file"])
        .arg(&secret)
        .arg("--root")
        .arg(folder.path().join("root"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(begun.elapsed().as_secs() >= 12, "it gave up early: {said}");
    let lines: Vec<_> = said.lines().collect();
    // At once, after 2, 6 and 14 s, and at the end: in time of its own, the last two may be one.
    assert!((3..=6).contains(&lines.len()), "{} lines: {said}", lines.len());
    assert!(lines[0].contains("no coordinator answers yet"), "{said}");
    assert!(lines.last().unwrap().contains("nothing was heard from the coordinator"), "{said}");
}
