//! A worker for the tests, also as a process of its own that can be killed.

use std::{
    env, fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use dormouse_folders::remove_abandoned;
use dormouse_worker::{
    cgroup::{CgroupHierarchy, CpuQuota, GroupTree, InstanceName, TierSlot, VmGroups},
    checkpointer::Checkpointer,
    cleanup,
    criu::{AfterDump, CriuRelease},
    guardian::GroupGuardian,
    jail::{JailDemand, JailRequest, TaskJail},
    process::{ChildProcess, ProcessIdentity, ProgramCommand, pid_namespace, resume_process},
    store::{ExpectedCheckpoint, ImageKey, LocalCheckpoints, SavedProgress},
    workspace::{TaskName, Workspace, make_kernel_files_writable},
};

use crate::{harness, task::HELD};

/// The key of all workers in the tests.
pub(crate) const KEY: [u8; 32] = [9; 32];
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// Whether this machine is emulated, as `scripts/test-v2` tells: everything takes ten times as long, and overhead uses
/// more of a task's processor.
pub(crate) fn is_emulated() -> bool {
    env::var("EMULATED").is_ok_and(|emulated| emulated == "true")
}

pub(crate) struct Worker {
    pub(crate) guardian: GroupGuardian,
    pub(crate) workspace: Workspace,
    pub(crate) tree: GroupTree,
    pub(crate) store: LocalCheckpoints,
    pub(crate) cleaned: cleanup::CleanedUp,
    pub(crate) program: PathBuf,
    next_vm: u64,
}

impl Worker {
    /// Starts a worker by the same steps as a real one. Its tasks are jailed as `$DORMOUSE_JAIL` says, by default not
    /// at all: most tests check what is the same with a jail and without.
    pub(crate) fn start(directory: &Path) -> Self {
        let demand = env::var("DORMOUSE_JAIL").unwrap_or_else(|_| "none".to_owned());
        Self::start_jailed(directory, demand.parse().unwrap())
    }

    /// Starts a worker as [`Worker::start`] does, with tasks jailed as `demand` says.
    pub(crate) fn start_jailed(directory: &Path, demand: JailDemand) -> Self {
        let hierarchy = CgroupHierarchy::detect_version().unwrap();
        let name = InstanceName {
            pid_namespace: pid_namespace().unwrap(),
            owner: ProcessIdentity::current_process().unwrap(),
        };
        make_kernel_files_writable(&hierarchy).unwrap();
        let guardian = GroupGuardian::start_guardian(&hierarchy, name).unwrap();
        let program = env::current_exe().unwrap();
        let workspace = Workspace::enter_workspace(directory).unwrap();
        // Checkpoints of one process are finished by another.
        let key = ImageKey::new(&KEY).unwrap();
        let store =
            LocalCheckpoints::open(workspace.checkpoints_directory()).unwrap().with_key(key);
        let cleaned = cleanup::clean_up(&hierarchy, &workspace, &store, SOON).unwrap();
        let program = workspace.install_program(&program).unwrap();
        let tree = GroupTree::create_tree(hierarchy, name, CpuQuota::DEFAULT_PERIOD_US).unwrap();
        let wanted = JailRequest { demand, ..JailRequest::default() };
        let layout = workspace.jail_layout(Some(&harness::criu_program()));
        let jail = TaskJail::build_jail(&wanted, &layout).unwrap();
        if let Some(jail) = &jail {
            harness::criu().settle_in(&jail.make_cell("dormouse").unwrap(), SOON).unwrap();
        }
        let workspace =
            workspace.with_users(jail.as_ref().and_then(|jail| jail.user_range())).unwrap();
        let tree = tree.with_jail(jail);
        Self { guardian, workspace, tree, store, cleaned, program, next_vm: 1 }
    }

    /// A worker in a temporary directory, for a test that needs only one.
    pub(crate) fn temporary() -> (Self, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        (Self::start(directory.path()), directory)
    }

    pub(crate) fn vm(&mut self, vcpus: u32) -> VmGroups {
        let id = self.next_vm;
        self.next_vm += 1;
        self.tree.create_vm(id, vcpus, None).unwrap()
    }

    pub(crate) fn checkpointer(&self) -> Checkpointer {
        let version = CriuRelease { major: 4, minor: 1, sublevel: 1 };
        Checkpointer::new(harness::criu(), version, self.store.clone(), &self.workspace)
    }

    /// A command that runs this program as a task.
    pub(crate) fn program(&self, name: &TaskName, args: &[&str]) -> ProgramCommand {
        let directory = self.workspace.create_task(name).unwrap();
        ProgramCommand::new(&self.program, directory).arg("task").args(args)
    }

    pub(crate) fn start_task(&self, name: &TaskName, vm: &VmGroups, args: &[&str]) -> ChildProcess {
        let entry = vm.slot_groups(0, TierSlot::A).unwrap();
        self.program(name, args).start_task(&entry, SOON).unwrap()
    }

    /// Starts a `count` task that does not end before [`Worker::let_go`], however long CRIU takes.
    pub(crate) fn start_held(
        &self,
        name: &TaskName,
        vm: &VmGroups,
        mib: &str,
        steps: &str,
    ) -> ChildProcess {
        let program = self.program(name, &["count", mib, steps]);
        fs::write(self.workspace.task_directory(name).join(HELD), "").unwrap();
        program.start_task(&vm.slot_groups(0, TierSlot::A).unwrap(), SOON).unwrap()
    }

    /// Lets a task that was started or restored held come to its end.
    pub(crate) fn let_go(&self, name: &TaskName) {
        fs::remove_file(self.workspace.task_directory(name).join(HELD)).unwrap();
    }

    /// The step that a `count` task has reached.
    pub(crate) fn step(&self, name: &TaskName) -> u64 {
        let path = self.workspace.task_directory(name).join("progress");
        fs::read_to_string(path).unwrap_or_default().trim().parse().unwrap_or(0)
    }

    pub(crate) fn await_step(&self, name: &TaskName, step: u64) {
        wait_for(&format!("step {step} of {name}"), || {
            let now = self.step(name);
            if now >= step { Ok(()) } else { Err(now.to_string()) }
        });
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let removed = self.tree.remove(SOON);
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}

pub(crate) fn name(task: &str) -> TaskName {
    TaskName::new("test", task).unwrap()
}

/// Polls `seen` until it succeeds; fails with its last error after 20 s.
pub(crate) fn wait_for<T>(what: &str, mut seen: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match seen() {
            Ok(value) => return value,
            Err(last) if start.elapsed() > SOON => panic!("{what}: still {last} after 20 s"),
            Err(_) => std::thread::park_timeout(Duration::from_millis(2)),
        }
    }
}

/// A worker process with three tasks: one running, one restored, one in a frozen VM. It prints
/// the tasks' PIDs and then waits to be killed.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    match args {
        ["linger", directory] => linger(Path::new(directory)),
        ["export", directory] => export(Path::new(directory)),
        ["finish", directory] => finish(Path::new(directory)),
        ["sweep", place, root] => sweep(Path::new(place), Path::new(root)),
        _ => ExitCode::FAILURE,
    }
}

fn linger(directory: &Path) -> ExitCode {
    let mut worker = Worker::start(directory);
    let (running, frozen, restored) = (worker.vm(1), worker.vm(1), worker.vm(1));
    let a = worker.start_task(&name("running"), &running, &["spin"]);
    let b = worker.start_task(&name("frozen"), &frozen, &["spin"]);
    let c = worker.start_task(&name("restored"), &restored, &["count", "4", "1000000000"]);
    frozen.freeze_vm(SOON).unwrap();
    running.set_quota(0, Some(50_000)).unwrap();
    worker.await_step(&name("restored"), 10);
    let checkpointer = worker.checkpointer();
    checkpointer
        .take_checkpoint(
            &name("restored"),
            c.pid(),
            (&restored, 0, TierSlot::A),
            AfterDump::Kill,
            SOON,
            &mut |_| Ok(()),
            SavedProgress::default,
        )
        .unwrap();
    c.wait_end(SOON).unwrap().unwrap();
    let c =
        checkpointer.restore_task(&name("restored"), &restored, 0, TierSlot::A, SOON).unwrap().task;
    println!("{} {} {} {}", a.pid(), b.pid(), c.pid(), worker.guardian.identity().pid);
    std::io::stdout().flush().unwrap();
    loop {
        std::thread::park();
    }
}

/// Takes a checkpoint of a task at work and writes it to stdout as a stream.
fn export(directory: &Path) -> ExitCode {
    let mut worker = Worker::start(directory);
    let vm = worker.vm(1);
    let task = worker.start_held(&name("traveller"), &vm, "8", "6000");
    worker.await_step(&name("traveller"), 1500);
    let progress =
        || SavedProgress { attempt: 1, progress_ppm: 250_000, cpu_ns: vm.cpu_ns().unwrap() };
    let taken = worker
        .checkpointer()
        .take_checkpoint(
            &name("traveller"),
            task.pid(),
            (&vm, 0, TierSlot::A),
            AfterDump::Kill,
            SOON,
            &mut |_| Ok(()),
            progress,
        )
        .unwrap();
    task.wait_end(SOON).unwrap().unwrap();
    taken.checkpoint.export_checkpoint(&mut std::io::stdout().lock()).unwrap();
    ExitCode::SUCCESS
}

/// Reads a checkpoint from stdin, restores it and lets it finish; prints its result.
fn finish(directory: &Path) -> ExitCode {
    let mut worker = Worker::start(directory);
    let vm = worker.vm(1);
    let mut stream = Vec::new();
    std::io::stdin().lock().read_to_end(&mut stream).unwrap();
    let expected = ExpectedCheckpoint {
        task: name("traveller"),
        sequence: 1,
        attempts: 1..=1,
        program: "task".to_owned(),
        bytes: 1 << 30,
    };
    let arrived = worker.store.import_checkpoint(&mut stream.as_slice(), &expected).unwrap();
    assert_eq!(arrived.manifest().progress.progress_ppm, 250_000);
    let restored =
        worker.checkpointer().restore_task(&name("traveller"), &vm, 0, TierSlot::B, SOON).unwrap();
    resume_process(restored.task.pid()).unwrap();
    worker.let_go(&name("traveller"));
    let ended = restored.task.wait_end(SOON).unwrap();
    assert_eq!(ended, Some(dormouse_worker::process::ProcessEnd::Exited(0)));
    let directory = worker.workspace.task_directory(&name("traveller"));
    print!("{}", fs::read_to_string(directory.join("result")).unwrap());
    eprint!("{}", fs::read_to_string(directory.join("stdout")).unwrap());
    ExitCode::SUCCESS
}

/// Prefix of the names of the folders of runs' workers.
pub(crate) const RUN: &str = "dormouse-run-";

/// Starts a worker in `root`, which removes what dead workers left, and prints how many folders of dead runs were
/// removed in `place`.
fn sweep(place: &Path, root: &Path) -> ExitCode {
    let _worker = Worker::start(root);
    println!("{}", remove_abandoned(place, RUN).unwrap().len());
    ExitCode::SUCCESS
}

/// A command that runs this program as a worker process.
pub(crate) fn process(mode: &str, directory: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["worker", mode]).arg(directory);
    command
}

/// Starts a worker that waits to be killed; returns it with the process ids that it printed.
pub(crate) fn lingering(directory: &Path) -> (Child, Vec<i32>) {
    let mut child = process("linger", directory).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.as_mut().unwrap()),
        &mut line,
    )
    .unwrap();
    let pids = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    (child, pids)
}
