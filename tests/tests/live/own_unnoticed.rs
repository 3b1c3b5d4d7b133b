//! Effects of checkpoints and moves on users' programs in live runs. There are none on stopped children and signals,
//! and what CRIU loses is restored. Where there are effects, they are reported: a program that does nothing after its
//! restore, and a save that comes too late.
//!
//! They need what the other live tests need (`whole_runs.rs`), and Python.

use std::fs;
use std::path::{Path, PathBuf};

use dormouse_tests::{
    checks_and_replays, dormouse_says, events, nothing_is_left_but, shared_live_turn, traces,
};
use serde_json::Value;

/// VMs of one vCPU that are all taken away in the middle of the work.
const CLOUD: &str = r#"name = "own-unnoticed"
[cloud]
boot = "5s"
preemption-notice = "NOTICE"
[[cloud.type]]
name = "v"
vcpus = 1
memory = "300 MiB"
on-demand = 0.1
spot = 0.03
limits = { spot = 40, on-demand = 0 }
[[interruption]]
model = "schedule"
acts = [{ at = "AT", action = "preempt", all = true }]
[scheduler]
name = "fifo"
fleet = [{ type = "v", market = "spot", count = COUNT }]
[checkpoint]
policy = "every"
period = "PERIOD"
[live]
speedup = SPEEDUP
"#;

/// Programs of `habits.py` that check what signals, what CRIU loses, and what their children do.
const HABITS: [&str; 6] =
    ["affinity", "sigcont", "stopped_child", "timerfd_fast", "timerfd_slow", "waitstop"];

/// A live run in a folder of its own; its tasks are set by the experiment text that is passed in.
struct OwnRun {
    folder: tempfile::TempDir,
}

impl OwnRun {
    fn of(cloud: &[(&str, &str)], tasks: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let filled = cloud.iter().fold(CLOUD.to_owned(), |text, (from, to)| text.replace(from, to));
        let workload = "[workload]\nkind = \"bag\"\ndeadline = \"90m\"\n";
        let file = folder.path().join("experiment.toml");
        fs::write(&file, format!("{filled}{workload}{tasks}")).unwrap();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/own");
        fs::copy(fixtures.join("habits.py"), folder.path().join("habits.py")).unwrap();
        let run = Self { folder };
        let out = run.out();
        let words = ["run", file.to_str().unwrap(), "--live", "--out", out.to_str().unwrap()];
        let _ = dormouse_says(&words);
        checks_and_replays(&out);
        run
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn result(&self, task: usize) -> String {
        fs::read_to_string(self.out().join(format!("tasks/{task}/outputs/result"))).unwrap()
    }

    /// The reports of this kind, in their order.
    fn reports(&self, kind: &str) -> Vec<Value> {
        events(&self.out()).into_iter().filter(|event| event["report"] == kind).collect()
    }

    fn explains(&self, task: &str) -> String {
        dormouse_says(&["explain", self.out().to_str().unwrap(), task])
    }
}

fn task(name: &str, command: &[&str]) -> String {
    format!(
        "[[workload.task]]\nname = {name:?}\ncommand = {command:?}\ninputs = [\"habits.py\"]\n\
         outputs = [\"result\"]\nmemory = \"150 MiB\"\n"
    )
}

#[test]
fn checkpoints_and_a_move_are_unnoticed() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let tasks = HABITS.map(|name| task(name, &["/usr/bin/python3", "habits.py", name, "18"]));
    let cloud =
        [("NOTICE", "40s"), ("AT", "50s"), ("COUNT", "6"), ("PERIOD", "15s"), ("SPEEDUP", "5")];
    let run = OwnRun::of(&cloud, &tasks.concat());
    for (task, name) in HABITS.iter().enumerate() {
        assert_eq!(run.result(task).trim(), format!("{name} OK"));
        let starts = run.reports("task-started");
        let starts: Vec<_> = starts.iter().filter(|it| it["task"] == task).collect();
        let [_, moved] = starts[..] else { panic!("{name} was not moved once: {starts:?}") };
        assert_ne!(moved["done"], 0, "{name} began anew");
    }
    // A busy host takes fewer than are due; the move took one of each in any case.
    assert!(!run.reports("checkpoint-taken").is_empty());
    nothing_is_left_but(&before);
}

#[test]
fn a_program_that_does_nothing_since_its_restore_is_told_of() {
    let Some(_turn) = shared_live_turn() else { return };
    // It sleeps for 14 minutes of the run's clock, and the other writes from time to time.
    let sleeps = task("sleeps", &["sh", "-c", "sleep 28; echo woken > result"]);
    let words =
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do sleep 2; echo $i; done; echo said > result";
    let writes = task("writes", &["sh", "-c", words]);
    let cloud =
        [("NOTICE", "40s"), ("AT", "150s"), ("COUNT", "2"), ("PERIOD", "60m"), ("SPEEDUP", "30")];
    let run = OwnRun::of(&cloud, &format!("{sleeps}{writes}"));
    assert_eq!([0, 1].map(|task| run.result(task)), ["woken\n", "said\n"]);
    let [idle] = &run.reports("task-idle")[..] else { panic!("{:?}", run.reports("task-idle")) };
    assert_eq!((&idle["task"], &idle["attempt"]), (&0.into(), &2.into()));
    assert!(idle["real_for_us"].as_u64().unwrap() >= 10_000_000, "{idle}");
    let told = run.explains("task0");
    assert!(told.contains("has neither computed nor written anything since"), "{told}");
    assert!(!run.explains("task1").contains("neither computed"));
}

#[test]
fn a_save_that_came_too_late_says_how_far_it_came() {
    let Some(_turn) = shared_live_turn() else { return };
    let program = "import os,time\na=os.urandom(60000000)\ntime.sleep(14)\n\
                   open('result','w').write('done')";
    // CRIU has two real seconds, and takes eight.
    let slow =
        "[[fault]]\nkind = \"slow-criu\"\nall = true\nat = \"40s\"\nlasts = \"60s\"\nby = \"8s\"\n";
    let cloud = [
        ("NOTICE", "10s"),
        ("AT", "60s"),
        ("COUNT", "1"),
        ("PERIOD", "60m"),
        ("SPEEDUP", "5"),
        ("[scheduler]", &format!("{slow}[scheduler]")),
    ];
    let run = OwnRun::of(&cloud, &task("large", &["/usr/bin/python3", "-c", program]));
    assert_eq!(run.result(0), "done");
    let told = run.explains("task0");
    assert!(told.contains("the stop that was asked for at 60.0 s was not done by then"), "{told}");
    let far = told.split("its checkpoint was being taken, ").nth(1).unwrap_or_default();
    let mib = |word: Option<&str>| word.and_then(|word| word.parse::<f64>().ok()).unwrap_or(-1.0);
    let mut words = far.split(' ');
    let (written, of) = (mib(words.next()), mib(words.nth(3)));
    // CRIU is kept waiting when all is written.
    assert!(written > 50.0 && of > 50.0, "{told}");
}
