//! Programs that expect a small Linux, in the jail: they give the same results as outside of it, although their VM is
//! hibernated, CRIU takes checkpoints of them as they run, or they are moved to another VM.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use dormouse_worker::{
    cgroup::{TierSlot, VmGroups},
    criu::AfterDump,
    jail::{JailDemand, NAME, ONE_COPY, ProgramBounds, SHELL},
    process::{ProcessEnd, ProgramCommand},
    store::SavedProgress,
};

use crate::worker::{SOON, Worker, name, wait_for};

/// A disturbance of a program in the middle of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramDisturbance {
    Nothing,
    /// The VM of the program is frozen, and thawed again.
    Hibernated,
    /// The program is dumped three times, and runs on.
    Checkpointed,
    /// The program is dumped and killed, as at the notice that its VM is taken away, and restored in another VM.
    Moved,
}

const DISTURBANCES: [ProgramDisturbance; 3] =
    [ProgramDisturbance::Hibernated, ProgramDisturbance::Checkpointed, ProgramDisturbance::Moved];

/// A program and its input.
struct Resident {
    name: &'static str,
    command: &'static str,
    inputs: &'static [&'static str],
    /// Whether CRIU can move the program.
    moves: bool,
    /// Whether the program opens and closes connections all the time.
    connects: bool,
}

/// Programs, each of which writes the file `began` in the middle of its work and `said` at its end.
const RESIDENTS: [Resident; 7] = [
    Resident {
        name: "bash",
        // Long: on a busy host CRIU comes several times until no process of a moment ends just then.
        command: "exec bash system.sh 200",
        inputs: &["system.sh"],
        moves: true,
        connects: false,
    },
    Resident {
        name: "python",
        command: "exec /usr/bin/python3 system.py 400",
        inputs: &["system.py"],
        moves: true,
        connects: true,
    },
    Resident {
        name: "node",
        command: "exec node system.js 2000",
        inputs: &["system.js"],
        moves: true,
        connects: true,
    },
    Resident {
        name: "gcc",
        command: "gcc -O1 -pthread system.c -o system && touch began && ./system > said",
        inputs: &["system.c"],
        moves: true,
        connects: false,
    },
    Resident {
        name: "java",
        command: "exec java -Xmx64m -XX:+UseSerialGC -cp . Jvm 5000",
        inputs: &["Jvm.class"],
        moves: true,
        connects: false,
    },
    Resident {
        name: "mpi",
        command: "exec mpirun --oversubscribe -n 4 /usr/bin/python3 mpi.py 60",
        inputs: &["mpi.py"],
        // It lives through some moves and not through others, by which its daemon ends with status 1.
        moves: false,
        connects: true,
    },
    Resident {
        name: "everyday",
        command: "exec bash everyday.sh",
        inputs: &["everyday.sh"],
        // Many programs of a second each: CRIU is for the others.
        moves: false,
        connects: false,
    },
];

/// Names of habits: what programs do and check as long as they are told to, and what must hold after a restore, too.
const HABITS: [&str; 44] = [
    "abstract_unix",
    "affinity",
    "affinity_thread",
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
    "sigcont",
    "signalfd",
    "sparse",
    "sqlite_wal",
    "stopped_child",
    "stopped_self_group",
    "subprocess_each",
    "sysfd",
    "tcp_self",
    "timerfd_fast",
    "timerfd_slow",
    "urandom",
    "waitstop",
];

fn provide(folder: &Path, inputs: &[&str]) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/own");
    for input in inputs {
        fs::copy(fixtures.join(input), folder.join(input)).unwrap();
    }
}

/// The output of a program without disturbance, outside of any jail.
fn outside(resident: &Resident) -> String {
    let alone = tempfile::tempdir().unwrap();
    provide(alone.path(), resident.inputs);
    let mut command = Command::new("sh");
    command.args(["-c", resident.command]).current_dir(alone.path());
    // Here it is root, as which Open MPI warns.
    let allowed = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
    let ended = command.envs(allowed.map(|name| (name, "1"))).output().unwrap();
    assert!(ended.status.success(), "{}: {ended:?}", resident.name);
    fs::read_to_string(alone.path().join("said")).unwrap()
}

/// The output of a program in the jail, and what a move has changed for it.
struct Outcome {
    said: String,
    /// What the kernel reports differently about the program since its restore; empty if it was not restored.
    changes: Vec<String>,
}

/// The outcome of a program in the jail that is disturbed in the middle of its work; a move takes it to the other VM.
fn inside(
    worker: &Worker,
    (vm, other): (&VmGroups, &VmGroups),
    resident: &Resident,
    disturbance: ProgramDisturbance,
) -> Outcome {
    let task = name(resident.name);
    let directory: PathBuf = worker.workspace.create_task(&task).unwrap();
    worker.workspace.bound_task(&task, 2 << 30).unwrap();
    provide(&directory, resident.inputs);
    let process = ProgramCommand::new("/bin/sh", &directory)
        .args(["-c", resident.command])
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &directory)
        .env("USER", NAME)
        .env("SHELL", SHELL)
        .env("LANG", "C.UTF-8")
        .env(ONE_COPY.0, ONE_COPY.1)
        .bounds(ProgramBounds { file_bytes: 4 << 30, processes: None })
        .start_task(&vm.slot_groups(0, TierSlot::A).unwrap(), SOON)
        .unwrap();
    let errors = || fs::read_to_string(directory.join("stderr")).unwrap_or_default();
    if disturbance != ProgramDisturbance::Nothing {
        wait_for(resident.name, || {
            assert_eq!(process.try_wait().unwrap(), None, "{}: {}", resident.name, errors());
            if directory.join("began").exists() { Ok(()) } else { Err("starting".to_owned()) }
        });
    }
    let (checkpointer, seats) = (worker.checkpointer(), [(0, TierSlot::A)]);
    let dump = |after| {
        let (seats, noted) = ((vm, &seats[..]), SavedProgress::default);
        checkpointer
            .take_tree(&task, process.pid(), seats, after, SOON, noted)
            .unwrap_or_else(|error| panic!("{}: {error:?}", resident.name));
    };
    match disturbance {
        ProgramDisturbance::Nothing | ProgramDisturbance::Moved => {}
        ProgramDisturbance::Hibernated => {
            vm.freeze_vm(SOON).unwrap();
            let before = vm.cpu_ns().unwrap();
            std::thread::sleep(Duration::from_millis(500));
            assert_eq!(vm.cpu_ns().unwrap(), before, "{} ran on", resident.name);
            vm.thaw_vm(SOON).unwrap();
        }
        ProgramDisturbance::Checkpointed => (0..3).for_each(|_| dump(AfterDump::Continue)),
    }
    let mut changes = Vec::new();
    let process = if disturbance == ProgramDisturbance::Moved {
        dump(AfterDump::Kill);
        process.wait_end(SOON).unwrap().unwrap();
        // Its files are those of the checkpoint, and not what is there by chance.
        worker.workspace.bound_task(&task, 2 << 30).unwrap();
        let restored = checkpointer.restore_task(&task, other, 0, TierSlot::A, SOON);
        let restored = restored.unwrap_or_else(|error| panic!("{}: {error:?}", resident.name));
        changes = restored.changes.expect("a program is looked at when it is saved");
        // CRIU leaves it as it was, and that is running.
        restored.task
    } else {
        process
    };
    assert_eq!(
        process.wait_end(SOON).unwrap(),
        Some(ProcessEnd::Exited(0)),
        "{}: {}",
        resident.name,
        errors()
    );
    let said = fs::read_to_string(directory.join("said")).unwrap();
    worker.workspace.remove_task(&task).unwrap();
    Outcome { said, changes }
}

pub(crate) fn programs_leave_what_they_leave_outside() {
    let directory = tempfile::tempdir().unwrap();
    let mut worker = Worker::start_jailed(directory.path(), JailDemand::Full);
    let (vm, other) = (worker.vm(4), worker.vm(4));
    for resident in &RESIDENTS {
        let right = outside(resident);
        let by_criu = |it: &ProgramDisturbance| !matches!(it, ProgramDisturbance::Hibernated);
        for disturbance in DISTURBANCES.into_iter().filter(|it| resident.moves || !by_criu(it)) {
            let begun = std::time::Instant::now();
            let Outcome { said, changes } = inside(&worker, (&vm, &other), resident, disturbance);
            println!("{} {disturbance:?}: {} ms", resident.name, begun.elapsed().as_millis());
            assert_eq!(said, right, "{} {disturbance:?}", resident.name);
            // Connections that come and go while they are looked at are not the same before and after: they are shown alone.
            match resident.connects {
                true => println!("{}: {changes:?}", resident.name),
                false => assert_eq!(changes, [""; 0], "{} is another after a move", resident.name),
            }
        }
    }
}

pub(crate) fn programs_of_each_habit_are_right() {
    let directory = tempfile::tempdir().unwrap();
    let mut worker = Worker::start_jailed(directory.path(), JailDemand::Full);
    let (vm, other) = (worker.vm(8), worker.vm(8));
    let command = format!("exec bash all_habits.sh 5 {}", HABITS.join(" "));
    let right = HABITS.map(|name| format!("{name} OK"));
    for disturbance in [ProgramDisturbance::Nothing, ProgramDisturbance::Moved] {
        let inputs = &["all_habits.sh", "habits.py"];
        let (name, command) = ("habits", command.clone().leak());
        let resident = Resident { name, command, inputs, moves: true, connects: true };
        let Outcome { said, changes } = inside(&worker, (&vm, &other), &resident, disturbance);
        assert_eq!(said.lines().collect::<Vec<_>>(), right, "{disturbance:?}");
        println!("{disturbance:?}: {changes:#?}");
    }
}

/// Things that CRIU loses for programs that use them (`lost.py`): a part of each sentence that a move reports, empty
/// if the worker restores what CRIU lost.
const LOST: [(&str, &[&str]); 3] = [
    ("stop_told", &["waitpid(2) has told its parent, and will tell it once more; have the parent"]),
    // Python keeps a descriptor of its own of what it maps.
    ("mapped_lock", &[LOCK_GONE, LOCK_GONE]),
    ("io_priority timer_slack locks socket_options signals settings", &[]),
];

const LOCK_GONE: &str = "locks was POSIX ADVISORY READ 128 128, and is not there; have it not map";

pub(crate) fn what_a_move_changes_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut worker = Worker::start_jailed(directory.path(), JailDemand::Full);
    let (vm, other) = (worker.vm(4), worker.vm(4));
    for (habits, named) in LOST {
        let command = format!("exec /usr/bin/python3 lost.py {habits} 2").leak();
        let resident =
            Resident { name: "lost", command, inputs: &["lost.py"], moves: true, connects: false };
        let outcome = inside(&worker, (&vm, &other), &resident, ProgramDisturbance::Moved);
        assert_eq!(outcome.said, "done\n");
        let changes = outcome.changes;
        assert_eq!(changes.len(), named.len(), "{habits}: {changes:#?}");
        let all = changes.iter().zip(named).all(|(change, part)| change.contains(part));
        assert!(all, "{habits}: {changes:#?}");
    }
}
