//! Access to live runs: attacks that anybody on the network or on the host could make, and what the attackers learn.
//!
//! They need what the other live tests need (`whole_runs.rs`).

use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dormouse_tests::{
    UnderWay, Wire, checks_and_replays, dormouse, events, shared_live_turn, summary, text,
    timed_live_turn, wait_for, wait_for_event, wait_for_report,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Tasks of 300 s, which are checkpointed at a third of their work: twelve seconds of real time.
const TASKS: &str = r#"name = "attacked"
seed = 1
[cloud]
catalogue = "ec2-2020"
boot = "30s"
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
share = 0.08 # all of them have room at one worker, on half of this host
"#;

/// The names of the run's two workers.
const WORKERS: [&str; 2] = ["first-worker", "second-worker"];

/// A coordinator of two workers, and the data needed to connect to it.
struct Attacked {
    folder: tempfile::TempDir,
    out: PathBuf,
    port: SocketAddr,
    words: Vec<String>,
}

impl Attacked {
    fn prepare(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, out) = (folder.path().join("experiment.toml"), folder.path().join("out"));
        fs::write(&file, TASKS).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (file, dir, at) = (file.to_str().unwrap(), out.to_str().unwrap(), port.to_string());
        let words =
            ["coordinator", file, "--listen", &at, "--workers", "2", "--out", dir, "--resume"];
        let words = words.iter().chain(options).map(|word| (*word).to_owned()).collect();
        Self { folder, out, port, words }
    }

    fn coordinator(&self) -> UnderWay {
        let words: Vec<_> = self.words.iter().map(String::as_str).collect();
        UnderWay::begin(&self.out, &words)
    }

    /// Starts the two workers, which wait for the token and connect to this address.
    fn workers(&self, address: SocketAddr) -> [Child; 2] {
        WORKERS.map(|name| {
            let said = fs::File::create(self.says(name)).unwrap();
            Command::new("unshare")
                .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
                .arg(dormouse())
                .args(["worker", "--coordinator", &address.to_string(), "--name", name])
                .args(["--of", "2", "--root"])
                .arg(self.folder.path().join(name))
                .arg("--secret-file")
                .arg(self.out.join("secret"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(said)
                .spawn()
                .unwrap()
        })
    }

    /// The file with the output of a worker.
    fn says(&self, worker: &str) -> PathBuf {
        self.folder.path().join(format!("{worker}.log"))
    }

    /// The token in this file of the run's folder.
    fn token(&self, file: &str) -> String {
        fs::read_to_string(self.out.join(file)).unwrap().trim().to_owned()
    }

    /// Checks that the run has the same result as without an attack; `lost` workers were lost.
    fn is_unharmed(&self, lost: usize) {
        let summary = summary(&self.out);
        assert_eq!(summary["tasks"]["verified"], 8, "{summary:#}");
        let of = |event: &str| events(&self.out).iter().filter(|e| e["event"] == event).count();
        assert_eq!(of("host-lost"), lost, "{summary:#}");
        checks_and_replays(&self.out);
    }
}

fn finds(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|at| at == wanted)
}

/// The types of the TLS records in these bytes, the last of which may be cut off; `None` if the bytes are no TLS (RFC
/// 8446, 5.1).
fn tls_records(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut types = Vec::new();
    while let [kind @ 20..=23, 3, 1 | 3, high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        types.push(*kind);
        bytes = rest.get(length..).unwrap_or_default();
    }
    (bytes.len() < 5).then_some(types)
}

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
/// The type of encrypted TLS records.
const ENCRYPTED: u8 = 23;

/// The bytes of a checkpoint in the coordinator's store; an error if it has none yet.
fn stored(folder: &Path) -> Result<Vec<u8>, String> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|e| e.to_string())?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = fs::read(&path)
                && finds(&bytes, b"pages-1.img")
            {
                return Ok(bytes);
            }
        }
    }
    Err("no checkpoint is stored".to_owned())
}

/// An eavesdropper learns no token, no checkpoint and no event from the traffic between a coordinator, its workers and
/// an observer, while checkpoints are stored and another worker fetches one.
#[test]
fn who_listens_on_the_wire_learns_no_token_no_checkpoint_and_no_event() {
    let Some(_turn) = shared_live_turn() else { return };
    let attacked = Attacked::prepare(&[]);
    let wire = Wire::before(attacked.port);
    let coordinator = attacked.coordinator();
    let mut workers = attacked.workers(wire.address);
    wait_for_event(&attacked.out, "a checkpoint is taken", |e| e["report"] == "checkpoint-taken");
    let image = wait_for("a checkpoint", Duration::from_secs(20), || {
        stored(&attacked.out.join("checkpoints"))
    });
    let tokens = ["secret", "secret.observer", "secret.operator"].map(|file| attacked.token(file));
    let observer = Command::new(dormouse())
        .args(["events", &wire.address.to_string(), "--secret-file"])
        .arg(attacked.out.join("secret.observer"))
        .output()
        .unwrap();
    // Whoever took the checkpoint is lost, so that it goes to the other.
    let log = events(&attacked.out);
    let vm = &log.iter().find(|e| e["report"] == "checkpoint-taken").unwrap()["vm"];
    let created = log.iter().find(|e| e["report"] == "vm-created" && &e["vm"] == vm).unwrap();
    let host = log.iter().find(|e| e["event"] == "host-joined" && e["host"] == created["host"]);
    let lost = usize::from(host.unwrap()["name"].as_str().unwrap().starts_with(WORKERS[1]));
    kill(Pid::from_raw(workers[lost].id().cast_signed()), Signal::SIGKILL).unwrap();
    let ended = coordinator.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    workers.iter_mut().for_each(|worker| _ = worker.wait().unwrap());
    attacked.is_unharmed(1);
    assert!(summary(&attacked.out)["counts"]["restores"].as_u64().unwrap() > 0);

    let streams = wire.seen();
    // Every connection is TLS from its first byte to its last, and after the hello all of it is
    // encrypted. That says more than a search: gRPC packs the metadata of calls.
    for stream in streams.iter().filter(|stream| !stream.is_empty()) {
        let types = tls_records(stream).unwrap_or_else(|| panic!("no TLS: {:?}", &stream[..64]));
        let [HANDSHAKE, rest @ ..] = &types[..] else { panic!("no hello: {types:?}") };
        // A change of cipher is said for the sake of old relays, and means nothing.
        let clear = rest.iter().filter(|kind| ![20, ENCRYPTED].contains(kind)).count();
        assert_eq!(clear, 0, "{types:?}");
    }
    let seen = streams.concat();
    // It is all there: what was stored, and what was fetched.
    assert!(seen.len() > 2 * image.len(), "{} of {}", seen.len(), image.len());
    // A piece of the image that nothing else looks like.
    let telling = |piece: &&[u8]| {
        let mut bytes = piece.to_vec();
        bytes.sort_unstable();
        bytes.dedup();
        bytes.len() > 24
    };
    let piece = image.chunks_exact(64).find(telling).unwrap();
    let secret = |token: &str| token.rsplit('.').next().unwrap().as_bytes().to_vec();
    let said = &observer.stdout;
    let file = tokens.join("\n");
    for (what, at_the_end, wanted) in [
        ("the worker's token", file.as_bytes(), secret(&tokens[0])),
        ("the observer's token", file.as_bytes(), secret(&tokens[1])),
        ("the operator's token", file.as_bytes(), secret(&tokens[2])),
        ("how a token begins", file.as_bytes(), b"dm1.".to_vec()),
        ("the names of images", &image, b"pages-1.img".to_vec()),
        ("what is in an image", &image, piece.to_vec()),
        ("the text of events", said, b"\"event\":\"host-joined\"".to_vec()),
    ] {
        // The same search finds it before it was encrypted.
        assert!(finds(at_the_end, &wanted), "{what} is not where it should be");
        assert!(!finds(&seen, &wanted), "{what} crossed the wire in clear");
    }
}

/// A script that accepts connections at a port, as user nobody, and prints what it receives.
const LISTENER: &str = "
import socket, sys, time
at = socket.socket()
at.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
at.bind(('127.0.0.1', int(sys.argv[1])))
at.listen(64)
print('listens', flush=True)
heard, calls = b'', 0
while calls < 6:
    call, _ = at.accept()
    call.settimeout(0.3)
    calls += 1
    try:
        while part := call.recv(65536):
            heard += part
            call.sendall(b'\\0\\0\\x12\\x04\\0\\0\\0\\0\\0')
    except OSError:
        pass
    call.close()
sys.stdout.buffer.write(heard)
";

/// A process that takes the port of a dead coordinator learns nothing, and the workers keep trying until their
/// coordinator is back.
#[test]
fn who_takes_a_dead_coordinators_port_learns_nothing_and_its_workers_dial_on() {
    let Some(_turn) = shared_live_turn() else { return };
    let attacked = Attacked::prepare(&[]);
    let coordinator = attacked.coordinator();
    let mut workers = attacked.workers(attacked.port);
    wait_for_report(&attacked.out, "task-started", 0);
    let token = attacked.token("secret");
    drop(coordinator.told(Signal::SIGKILL));
    let mut listener = Command::new("python3")
        .args(["-c", LISTENER, &attacked.port.port().to_string()])
        .uid(65_534)
        .gid(65_534)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut heard = Vec::new();
    listener.stdout.take().unwrap().read_to_end(&mut heard).unwrap();
    assert!(listener.wait().unwrap().success());
    // They have called, and said no more than a stranger would.
    assert!(heard.len() > 100, "{heard:?}");
    let heard = heard.strip_prefix(b"listens\n").unwrap();
    let secret = token.rsplit('.').next().unwrap().as_bytes();
    let types = tls_records(heard).unwrap_or_else(|| panic!("no TLS: {heard:?}"));
    assert!(types.iter().all(|kind| [HANDSHAKE, ALERT].contains(kind)), "{types:?}");
    // Shorter ones are in a kilobyte of random bytes by chance now and then.
    for word in [secret, b"attacked", WORKERS[0].as_bytes(), b"dormouse"] {
        assert!(!finds(heard, word), "{:?} in {heard:?}", String::from_utf8_lossy(word));
    }
    for (worker, name) in workers.iter_mut().zip(WORKERS) {
        let said = fs::read_to_string(attacked.says(name)).unwrap();
        assert_eq!(worker.try_wait().unwrap(), None, "{name} has left: {said}");
        assert!(said.contains("the connection to the coordinator is broken"), "{said}");
    }
    let ended = attacked.coordinator().ended();
    assert!(ended.status.success(), "{}", text(&ended));
    workers.iter_mut().for_each(|worker| assert!(worker.wait().unwrap().success()));
    attacked.is_unharmed(0);
}

/// Time for which no message passes; a worker counts as lost after 2 s.
const PARTITION: Duration = Duration::from_millis(1200);

/// A connection that carries bytes for at least this long is that of a session, whose worker beats every 250 ms. A
/// connection that is in a handshake or waits for the welcome is done or silent sooner.
const SESSION: Duration = Duration::from_millis(700);

/// A partition that is shorter than the allowed silence costs no worker, although lost data are not repeated in time.
#[test]
fn a_partition_shorter_than_lost_after_costs_no_worker() {
    let Some(_turn) = timed_live_turn() else { return };
    // With a later deadline it lasts longer than all three cuts.
    let limits = ["live.lost-after=2s", "live.patience=2s", "workload.deadline=\"20m\""];
    let options: Vec<_> = limits.iter().flat_map(|limit| ["--set", limit]).collect();
    let attacked = Attacked::prepare(&options);
    let wire = Wire::before(attacked.port);
    let coordinator = attacked.coordinator();
    let mut workers = attacked.workers(wire.address);
    wait_for_report(&attacked.out, "task-started", 0);
    for _ in 0..3 {
        let before = wire.directions();
        wire.partition(PARTITION);
        // Nothing passes until it is over, and then each worker has a new session. A cut that came before its welcome would
        // make one silence of two.
        wait_for("new sessions", Duration::from_secs(20), || {
            let directions = wire.in_use(before, SESSION);
            let said = || WORKERS.map(|name| fs::read_to_string(attacked.says(name)));
            if directions >= 4 {
                Ok(())
            } else {
                Err(format!("{directions} directions: {:?}", said()))
            }
        });
    }
    let ended = coordinator.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    workers.iter_mut().for_each(|worker| assert!(worker.wait().unwrap().success()));
    attacked.is_unharmed(0);
}

/// A token gives access to what its role may do, as the commands show.
#[test]
fn a_token_opens_what_its_role_may() {
    let Some(_turn) = shared_live_turn() else { return };
    let attacked = Attacked::prepare(&[]);
    let coordinator = attacked.coordinator();
    let dormouse = |words: &[&str]| Command::new(dormouse()).args(words).output().unwrap();
    let dir = attacked.out.to_str().unwrap();
    wait_for("the coordinator", Duration::from_secs(20), || {
        let there = attacked.out.join("address").exists();
        if there { Ok(()) } else { Err("it does not listen".to_owned()) }
    });
    let of = |file: &str| attacked.out.join(file).to_str().unwrap().to_owned();
    let address = attacked.port.to_string();
    for (file, words, may) in [
        ("secret.observer", &["status"][..], true),
        ("secret.operator", &["status"], true),
        ("secret", &["status"], false),
        ("secret.observer", &["cancel"], false),
        ("secret.observer", &["close"], false),
        ("secret", &["cancel"], false),
    ] {
        let said = dormouse(&[words, &[&address, "--secret-file", &of(file)]].concat());
        assert_eq!(said.status.success(), may, "{file} {words:?}: {}", text(&said));
        if !may {
            assert_eq!(said.status.code(), Some(2), "{}", text(&said));
            assert!(text(&said).contains("which may not do this"), "{}", text(&said));
        }
    }
    // Looking on needs no more than is printed by default; a new token takes the place of the old.
    let shown = text(&dormouse(&["token", dir]));
    assert_eq!(shown.trim(), attacked.token("secret.observer"));
    let former = attacked.folder.path().join("former");
    fs::write(&former, &shown).unwrap();
    assert!(dormouse(&["token", dir, "--renew", "--valid", "1h"]).status.success());
    let said = dormouse(&["status", &address, "--secret-file", former.to_str().unwrap()]);
    assert!(text(&said).contains("not that of this run's observer"), "{}", text(&said));
    // In the folder all is found.
    assert!(dormouse(&["status", dir]).status.success());
    assert!(dormouse(&["cancel", dir]).status.success());
    drop(coordinator.ended());
    assert!(!attacked.out.join("secret.operator").exists());
    assert!(!attacked.out.join("identity").exists());
}
