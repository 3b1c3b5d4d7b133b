//! A task's view of files is a small Linux: programs that take one for granted leave what they leave outside of a jail, though
//! their VMs are taken away and they go on from their checkpoints on others.
//!
//! They need what the other live tests need, and the programs themselves, which `scripts/test` installs: Python with
//! mpi4py, Node.js, a C compiler, a Java runtime without a screen, Open MPI.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use dormouse_tests::{
    checks_and_replays, dormouse_says, nothing_is_left_but, shared_live_turn, summary, traces,
};

/// Four VMs on two hosts, which are all taken away in the middle of the work.
const CLOUD: &str = r#"name = "small-linux"
seed = 1
[cloud]
catalogue = "ec2-2020"
boot = "20s"
preemption-notice = "40s"
[[interruption]]
model = "schedule"
acts = [{ at = "100s", action = "preempt", type = "c3.large" }]
[scheduler]
name = "fifo"
fleet = [{ type = "c3.large", market = "spot", count = 4 }]
[checkpoint]
policy = "every"
period = "40s"
fixed = "2s"
per-megabyte = "0s"
[live]
speedup = 20
workers = 2
[workload]
kind = "bag"
deadline = "2h"
"#;

/// A program, its inputs, and whether CRIU can carry it.
struct Resident {
    name: &'static str,
    command: &'static [&'static str],
    inputs: &'static [&'static str],
    saves: &'static str,
}

const RESIDENTS: [Resident; 6] = [
    Resident {
        name: "bash",
        command: &["/bin/bash", "system.sh", "250"],
        inputs: &["system.sh"],
        saves: "criu",
    },
    Resident {
        name: "python",
        command: &["/usr/bin/python3", "system.py", "1500"],
        inputs: &["system.py"],
        saves: "criu",
    },
    Resident {
        name: "node",
        command: &["node", "system.js", "4000"],
        inputs: &["system.js"],
        saves: "criu",
    },
    Resident {
        name: "gcc",
        command: &["sh", "-c", "gcc -O1 -pthread system.c -o system && ./system > said"],
        inputs: &["system.c"],
        saves: "criu",
    },
    Resident {
        name: "java",
        command: &["java", "-Xmx64m", "-XX:+UseSerialGC", "-cp", ".", "Jvm", "4000"],
        inputs: &["Jvm.class"],
        saves: "criu",
    },
    Resident {
        name: "mpi",
        command: &["mpirun", "--oversubscribe", "-n", "4", "/usr/bin/python3", "mpi.py", "60"],
        inputs: &["mpi.py"],
        saves: "none",
    },
];

/// Habits of programs that each check themselves, for as long as they are told: those that a VM has, too.
const HABITS: [&str; 36] = [
    "abstract_unix",
    "bigenv",
    "clocks",
    "cwd_deleted",
    "daemon",
    "dirfd",
    "flock2",
    "hardlink",
    "http_self",
    "inotify_after",
    "inotify_events",
    "iouring",
    "lease",
    "meta",
    "mmap_shared",
    "mp_pool",
    "mp_sem",
    "named_fifo",
    "ofd",
    "otmpfile",
    "pending",
    "plain",
    "procfd",
    "prof_timer",
    "pty",
    "rawsock",
    "rlimit",
    "rotate",
    "shm_named",
    "signalfd",
    "sparse",
    "sqlite_wal",
    "subprocess_each",
    "sysfd",
    "tcp_self",
    "urandom",
];
/// Real seconds that each of them has.
const HABITS_TAKE: &str = "14";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/own")
}

fn provide(folder: &Path, inputs: &[&str]) {
    for input in inputs {
        fs::copy(fixtures().join(input), folder.join(input)).unwrap();
    }
}

/// What a program says that nobody disturbs, outside of any jail.
fn undisturbed(resident: &Resident) -> String {
    let alone = tempfile::tempdir().unwrap();
    provide(alone.path(), resident.inputs);
    let [program, arguments @ ..] = resident.command else { unreachable!("each has a program") };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(alone.path());
    // Here tests are root, as which Open MPI warns.
    let allowed = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
    let ended = command.envs(allowed.map(|name| (name, "1"))).output().unwrap();
    assert!(ended.status.success(), "{}: {ended:?}", resident.name);
    fs::read_to_string(alone.path().join("said")).unwrap()
}

fn task(name: &str, command: &[&str], inputs: &[&str], saves: &str) -> String {
    format!(
        "[[workload.task]]\nname = {name:?}\ncommand = {command:?}\ninputs = {inputs:?}\n\
         outputs = [\"said\"]\nruntime = {{ \"c3.large\" = \"300s\" }}\nmemory = \"400 MB\"\n\
         directory = \"256 MiB\"\nthreads = 200\nsaves = {saves:?}\n"
    )
}

#[test]
fn programs_leave_what_they_leave_outside_of_a_jail() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let mut tasks = String::new();
    for Resident { name, command, inputs, saves } in &RESIDENTS {
        provide(folder.path(), inputs);
        tasks += &task(name, command, inputs, saves);
    }
    let inputs = ["all_habits.sh", "habits.py"];
    provide(folder.path(), &inputs);
    let command: Vec<_> =
        ["/bin/bash", "all_habits.sh", HABITS_TAKE].into_iter().chain(HABITS).collect();
    tasks += &task("habits", &command, &inputs, "criu");
    let (file, out) = (folder.path().join("experiment.toml"), folder.path().join("out"));
    fs::write(&file, format!("{CLOUD}{tasks}")).unwrap();
    let _ =
        dormouse_says(&["run", file.to_str().unwrap(), "--live", "--out", out.to_str().unwrap()]);
    let of_run = summary(&out);
    let said = |n: usize| {
        let task = out.join(format!("tasks/{n}"));
        fs::read_to_string(task.join("outputs/said")).unwrap_or_else(|error| {
            let errors = fs::read_to_string(task.join("stderr")).unwrap_or_default();
            panic!("task {n}: {error}: {errors}: {of_run:#}")
        })
    };
    for (n, resident) in RESIDENTS.iter().enumerate() {
        assert_eq!(said(n), undisturbed(resident), "{}: {of_run:#}", resident.name);
    }
    let habits = said(RESIDENTS.len());
    let right = HABITS.map(|name| format!("{name} OK"));
    assert_eq!(habits.lines().collect::<Vec<_>>(), right, "{of_run:#}");
    assert_eq!(of_run["tasks"]["completed"], 7, "{of_run:#}");
    // One whose checkpoint is not there in time begins anew.
    assert!(of_run["counts"]["restores"].as_u64().unwrap() >= 4, "{of_run:#}");
    checks_and_replays(&out);
    nothing_is_left_but(&before);
}
