//! Workers that a coordinator of a real run takes or refuses.
//!
//! They need root and control groups. Elsewhere each is skipped and says so; with `CI=true` that is
//! a failure.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use dormouse_tests::{dormouse, live_turn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

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

/// The one line of a worker that was refused, which it is with status 2.
fn refusal(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "not one line: {said}");
    said
}

#[test]
fn a_worker_with_another_runs_secret_is_refused_at_once() {
    let Some(_turn) = live_turn() else { return };
    let run = Waiting::start("1");
    assert_eq!(fs::metadata(&run.secret).unwrap().mode() & 0o777, 0o600);
    let wrong = run.folder.path().join("wrong");
    fs::write(&wrong, "a5".repeat(32)).unwrap();
    let said = refusal(&run.worker("w", "w", &wrong).wait_with_output().unwrap());
    for word in ["not that of this run", "--secret-file", run.address.as_str()] {
        assert!(said.contains(word), "no '{word}' in: {said}");
    }
    run.end();
}
