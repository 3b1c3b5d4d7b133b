//! Kill storms: live runs whose coordinator, worker or both are killed at random moments, one to three times, and
//! which are resumed until they are over. Every task comes to the right answer, the log checks and replays, and
//! nothing of the run is left on the host.
//!
//! `STORMS` says how many (6), `STORM_SEED` which (1); `scripts/storm` sets both. The folder of a
//! storm that fails is kept. They need what the other live tests need (`whole_runs.rs`).

use std::fmt::{self, Write as _};
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use dormouse_tests::{
    JOBS, MARK, checks_and_replays, dormouse, events, jobs_experiment, orphans, shared_live_turn,
    summary, text, wait_for, workers_of,
};
use dormouse_units::RandomStream;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A kind of run: an experiment, its number of tasks, and the real seconds from the start of a process within which it
/// is killed, about as long as the run takes.
struct Kind {
    name: &'static str,
    experiment: fn() -> String,
    tasks: usize,
    within: f64,
}

/// Checkpoints at 20 s and 40 s of the work, hibernation for good at 50 s, and tasks that go on
/// elsewhere. Nine seconds of real time.
const A_BAG: &str = r#"name = "storm-bag"
[cloud]
catalogue = "ec2-2020"
boot = "15s"
[[interruption]]
model = "schedule"
acts = [{ at = "50s", action = "hibernate", type = "c3.large" }]
[workload]
kind = "bag"
deadline = "4m"
[[workload.task]]
name = "small"
count = 6
memory = "10 MB"
runtime = { "c3.large" = "60s", "t3.large" = "60s" }
[scheduler]
name = "burst-hads"
alpha = 0.1
[checkpoint]
overhead = 0.2
on = "all"
[live]
speedup = 20
share = 0.1
"#;

/// Faults for the storm's run: nothing passes between the workers and their coordinator for a while, then messages are
/// late, then some are lost.
const NETWORK_FAULTS: &str = r#"
[[fault]]
at = "12s"
kind = "partition"
lasts = "16s"
all = true
[[fault]]
at = "35s"
kind = "delay"
by = "40ms"
lasts = "20s"
all = true
[[fault]]
at = "60s"
kind = "loss"
part = 0.1
lasts = "20s"
all = true
"#;

const KINDS: [Kind; 3] = [
    Kind { name: "bag", experiment: || A_BAG.to_owned(), tasks: 6, within: 7.5 },
    Kind {
        name: "jobs",
        experiment: || jobs_experiment("storm-jobs", "measy", &JOBS),
        tasks: JOBS.len(),
        within: 6.0,
    },
    Kind {
        name: "a bag with network faults",
        experiment: || format!("{A_BAG}{NETWORK_FAULTS}").replace("storm-bag", "storm-faults"),
        tasks: 6,
        within: 8.0,
    },
];

/// Time limit for the end of a process after the last kill.
const ENDS: Duration = Duration::from_secs(120);

/// The process or processes that are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Coordinator,
    Worker,
    Both,
}

/// A kill that happened, and how long after the start of the process.
struct Killed {
    victim: Victim,
    after: Duration,
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:.2} s", self.victim, self.after.as_secs_f64())
    }
}

/// A storm on one run.
struct Storm {
    kind: &'static Kind,
    out: PathBuf,
    file: PathBuf,
    chance: RandomStream,
    begun: Instant,
    killed: Vec<Killed>,
    coordinators: Vec<u32>,
    /// Traces on this host that were there before the storm.
    before: Vec<String>,
}

/// A process of the run, which is killed when its test ends, however that is.
struct Leg {
    child: Child,
    begun: Instant,
}

impl Drop for Leg {
    fn drop(&mut self) {
        // It has ended, unless the storm failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Leg {
    /// The exit status of the process, if it ends by this instant.
    fn ends_by(&mut self, until: Instant) -> Option<ExitStatus> {
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return Some(status),
                None if Instant::now() >= until => return None,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn kill(&self, victim: Victim) {
        let workers = workers_of(self.child.id());
        let coordinator = Pid::from_raw(self.child.id().cast_signed());
        let all = match victim {
            Victim::Coordinator => vec![coordinator],
            Victim::Worker => workers,
            Victim::Both => [vec![coordinator], workers].concat(),
        };
        for pid in all {
            // It may have ended by itself.
            let sent = kill(pid, Signal::SIGKILL);
            assert!(matches!(sent, Ok(()) | Err(Errno::ESRCH)), "{pid}: {sent:?}");
        }
    }
}

impl Storm {
    fn new(folder: &Path, kind: &'static Kind, seed: u64, number: u64) -> Self {
        let file = folder.join("experiment.toml");
        fs::write(&file, (kind.experiment)()).unwrap();
        Self {
            kind,
            out: folder.join("out"),
            file,
            chance: RandomStream::new(seed, "storm", number),
            begun: Instant::now(),
            killed: Vec::new(),
            coordinators: Vec::new(),
            before: orphans(folder, &[]),
        }
    }

    fn says(&self) -> PathBuf {
        self.file.with_file_name("says.log")
    }

    /// Begins the run, or resumes it.
    fn leg(&mut self) -> Leg {
        let (out, file) = (self.out.to_str().unwrap(), self.file.to_str().unwrap());
        // Without the first line of its log it has not begun.
        let args = if events(&self.out).is_empty() {
            vec!["run", file, "--live", "--force", "--out", out]
        } else {
            vec!["resume", out]
        };
        let says = File::options().create(true).append(true).open(self.says()).unwrap();
        let child = Command::new(dormouse())
            .args(&args)
            .arg("--quiet")
            .env(MARK, self.out.as_os_str())
            .stdin(Stdio::null())
            .stdout(says.try_clone().unwrap())
            .stderr(says)
            .spawn()
            .unwrap();
        self.coordinators.push(child.id());
        Leg { child, begun: Instant::now() }
    }

    fn is_over(&self) -> bool {
        self.out.join("summary.json").exists()
    }

    fn draw(&mut self) -> (Victim, Duration) {
        let all = [Victim::Coordinator, Victim::Worker, Victim::Both];
        let victim = all[self.chance.draw_below(all.len())];
        // The first one before it can be over.
        let within = self.kind.within * if self.killed.is_empty() { 0.6 } else { 1.0 };
        (victim, Duration::from_secs_f64(within * self.chance.draw_unit()))
    }

    fn rages(&mut self) {
        let mut kills = 1 + self.chance.draw_below(3);
        while !self.is_over() {
            let mut leg = self.leg();
            let mut excused = false;
            while kills > 0 {
                let (victim, after) = self.draw();
                kills -= 1;
                if leg.ends_by(Instant::now() + after).is_some() {
                    break;
                }
                leg.kill(victim);
                self.killed.push(Killed { victim, after: leg.begun.elapsed() });
                excused = true;
                if victim != Victim::Worker {
                    break;
                }
            }
            let last = || format!("its log ends with {:?}", events(&self.out).last());
            let Some(status) = leg.ends_by(Instant::now() + ENDS) else {
                panic!("not over {ENDS:?} after the last kill; {}", last())
            };
            // A worker that is killed before its run has begun ends it; so does a killed coordinator.
            assert!(status.success() || excused, "it ended by itself with {status}; {}", last());
            assert!(!status.success() || self.is_over(), "it ended without results; {}", last());
        }
    }

    /// Checks that the answers are right and nothing is left behind.
    fn is_well(&self) {
        let summary = summary(&self.out);
        assert_eq!(summary["tasks"]["verified"], self.kind.tasks, "{:#}", summary["tasks"]);
        checks_and_replays(&self.out);
        let left = |but: &dyn Fn(&String) -> bool| {
            let mut left = orphans(&self.out, &self.coordinators);
            left.retain(|orphan| !but(orphan) && !self.before.contains(orphan));
            if left.is_empty() { Ok(()) } else { Err(format!("left: {left:#?}")) }
        };
        // A worker whose coordinator was killed waits for it for some seconds, and one that has never
        // reached it for half a minute. Its folder, mostly in memory, waits for the next start, which
        // removes it.
        wait_for("no process, group or mount is left", Duration::from_secs(45), || {
            left(&|orphan| orphan.starts_with('/') && orphan.contains("/dormouse-run-"))
        });
        let next = self.file.with_file_name("next.toml");
        fs::write(&next, A_BAG).unwrap();
        let refused = Command::new(dormouse())
            .args(["run", next.to_str().unwrap(), "--live", "--speedup", "5000", "--out"])
            .arg(self.file.with_file_name("refused"))
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        if let Err(left) = left(&|_| false) {
            panic!("after the next start: {left}");
        }
    }
}

/// Plays one storm; returns a line about it, and whether the run survived.
fn storm(seed: u64, number: u64) -> (String, bool) {
    let kind = &KINDS[usize::try_from(number % 3).unwrap_or_default()];
    let mut folder = tempfile::Builder::new()
        .prefix(&format!("dormouse-storm-{seed}-{number}-"))
        .tempdir()
        .unwrap();
    let mut storm = Storm::new(folder.path(), kind, seed, number);
    let survived = catch_unwind(AssertUnwindSafe(|| {
        storm.rages();
        storm.is_well();
    }));
    let mut line = format!("storm {number} of seed {seed}, {}: ", kind.name);
    let killed: Vec<_> = storm.killed.iter().map(ToString::to_string).collect();
    let killed = if killed.is_empty() { "nobody".to_owned() } else { killed.join(", ") };
    let faults = felt(&storm.out);
    let faults = if faults == 0 { String::new() } else { format!("{faults} network faults; ") };
    let took = storm.begun.elapsed().as_secs_f64();
    let _ = write!(line, "killed {killed}; {faults}{took:.1} s; ");
    if let Err(why) = &survived {
        let why = why.downcast_ref::<String>().map_or("it panicked", String::as_str);
        folder.disable_cleanup(true);
        let _ = write!(line, "FAILED, see {}: {why}", folder.path().display());
    } else {
        line.push_str("well");
    }
    (line, survived.is_ok())
}

/// The number of faults in the log of a run; each counts once, however many workers it affects.
fn felt(out: &Path) -> usize {
    let begun = |event: &serde_json::Value| {
        let is_one = event["event"] == "fault-felt" && event["felt"] == "begun";
        is_one.then(|| event["fault"].as_u64()).flatten()
    };
    events(out).iter().filter_map(begun).collect::<std::collections::BTreeSet<_>>().len()
}

/// A number from an environment variable; `otherwise` if that is not set.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn runs_survive_kills_at_any_moment() {
    let Some(_turn) = shared_live_turn() else { return };
    let (count, seed) = (number("STORMS", 6), number("STORM_SEED", 1));
    let mut failed = 0;
    for n in 1..=count {
        let (line, survived) = storm(seed, n);
        println!("{line}");
        failed += u64::from(!survived);
    }
    println!("{} of {count} storms survived", count - failed);
    assert_eq!(failed, 0, "of {count} storms");
}
