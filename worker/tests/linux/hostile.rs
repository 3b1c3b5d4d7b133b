//! Images of processes that are no valid tasks, as an attacker with a worker's token can make and seal them: they are
//! refused, and even if CRIU restores them they never run.

use std::{
    env,
    ffi::CString,
    fs, io,
    os::{fd::AsRawFd as _, unix::ffi::OsStrExt as _, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    ptr, thread,
};

use dormouse_worker::{
    cgroup::{TierSlot, VmGroups},
    criu::AfterDump,
    jail::{CELL, JailDemand, MountView, ViewOccupant},
    process::HelpedTask,
    store::{CheckpointFile, ImageKey, SavedProgress, StoredCheckpoint},
    workspace::TaskName,
};

use crate::{
    harness,
    task::STRUCK,
    worker::{KEY, SOON, Worker, name, wait_for},
};

/// Name of the environment variable that sets how often a harmful image is restored; a high number is for runs by
/// hand.
const REPEATS: &str = "DORMOUSE_HOSTILE_RESTORES";

/// A right that a process has and no task may have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Excess {
    /// The process is root, with all capabilities and no filter.
    Root,
    /// The process runs as the task's user, without a filter, and can still gain privileges.
    Unfiltered,
    /// The process holds a directory outside of the tasks' root.
    Holding,
}

/// A worker with a task in a jail, into whose namespaces other processes can be put.
struct Scene {
    worker: Worker,
    vm: VmGroups,
    /// A valid task.
    honest: dormouse_worker::process::ChildProcess,
    _directory: tempfile::TempDir,
}

impl Scene {
    fn set_up() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut worker = Worker::start_jailed(directory.path(), JailDemand::Full);
        let vm = worker.vm(1);
        // What is in another slot is none of a restore's business.
        let entry = vm.slot_groups(0, TierSlot::B).unwrap();
        let honest = worker.program(&name("1"), &["spin"]).start_task(&entry, SOON).unwrap();
        Self { worker, vm, honest, _directory: directory }
    }

    /// Takes a checkpoint of a task that makes a file at each of its instructions, and ends the task.
    fn of_honest(&self, task: &TaskName) -> StoredCheckpoint {
        let struck = self.worker.start_task(task, &self.vm, &["strike"]);
        let taken = self.take(task, struck.pid(), AfterDump::Kill);
        struck.wait_end(SOON).unwrap().unwrap();
        taken
    }

    /// Takes a checkpoint of a process that was never a task, and seals it under the name of a valid task, as a
    /// worker's owner could.
    fn of_excess(&self, task: &TaskName, excess: Excess) -> StoredCheckpoint {
        let struck = self.worker.start_task(task, &self.vm, &["strike"]);
        let honest = self.take(task, struck.pid(), AfterDump::Continue);
        let (directory, images) =
            (self.worker.workspace.task_directory(task), honest.images_directory());
        fs::remove_dir_all(&images).unwrap();
        fs::create_dir(&images).unwrap();
        fs::remove_file(self.struck(task)).unwrap();
        let mut process = thread::scope(|scope| {
            let start = || start(struck.pid(), &self.worker.program, &directory, excess);
            scope.spawn(start).join().unwrap()
        });
        // Its namespaces are the other's now.
        struck.kill_all().unwrap();
        struck.wait_end(SOON).unwrap().unwrap();
        let pid = i32::try_from(process.id()).unwrap();
        self.vm.attach_process(0, TierSlot::A, pid).unwrap();
        self.await_struck(task);
        // CRIU is its own there, as whoever it likes.
        let user = (excess != Excess::Root).then(|| owner(&directory));
        let view = MountView::of_process(pid).unwrap();
        let inmate = self.vm.cell().map(|cell| HelpedTask { cell, user, view });
        let (work, kill) = (honest.directory(), AfterDump::Kill);
        let criu = harness::criu();
        criu.dump_process(pid, inmate, &images, work, kill, SOON, &mut |_| Ok(())).unwrap();
        process.wait().unwrap();
        self.seal(&honest);
        self.worker.store.load_checkpoint(task, honest.manifest().sequence).unwrap()
    }

    /// Writes and seals a manifest of the checkpoint's images, without other files.
    fn seal(&self, checkpoint: &StoredCheckpoint) {
        let mut manifest = checkpoint.manifest().clone();
        (manifest.files, manifest.open_files, manifest.images) = (vec![], vec![], vec![]);
        for entry in fs::read_dir(checkpoint.images_directory()).unwrap() {
            let entry = entry.unwrap();
            let bytes = fs::read(entry.path()).unwrap();
            let (name, size) = (entry.file_name().into_string().unwrap(), bytes.len() as u64);
            let blake3 = blake3::hash(&bytes).to_hex().to_string();
            manifest.images.push(CheckpointFile { name, size, blake3 });
        }
        let json = serde_json::to_vec(&manifest).unwrap();
        let seal = ImageKey::new(&KEY).unwrap().seal(&json);
        fs::write(checkpoint.directory().join("manifest.json"), json).unwrap();
        fs::write(checkpoint.directory().join("manifest.seal"), seal.to_hex().as_str()).unwrap();
    }

    fn take(&self, task: &TaskName, pid: i32, after: AfterDump) -> StoredCheckpoint {
        self.await_struck(task);
        let seats = (&self.vm, &[(0, TierSlot::A)][..]);
        let checkpointer = self.worker.checkpointer();
        let taken = checkpointer.take_tree(task, pid, seats, after, SOON, SavedProgress::default);
        taken.unwrap().checkpoint
    }

    fn await_struck(&self, task: &TaskName) {
        let struck = self.struck(task);
        wait_for("its file", || {
            struck.exists().then_some(()).ok_or_else(|| "not there".to_owned())
        });
    }

    fn struck(&self, task: &TaskName) -> PathBuf {
        self.worker.workspace.task_directory(task).join(STRUCK)
    }

    /// Restores a checkpoint with CRIU without a check of its images, and returns the result.
    fn restore_blindly(
        &self,
        task: &TaskName,
        checkpoint: &StoredCheckpoint,
    ) -> Result<bool, String> {
        let directory = self.worker.workspace.task_directory(task);
        checkpoint.restore_files(&directory).unwrap();
        let _ = fs::remove_file(self.struck(task));
        let occupant = ViewOccupant {
            user: Some(owner(&directory)),
            directory: directory.clone(),
            names: None,
        };
        let (images, work) = (checkpoint.images_directory(), checkpoint.directory());
        let criu = harness::criu();
        let restored = criu.restore_process(
            &images,
            work,
            &self.vm,
            0,
            TierSlot::A,
            &occupant,
            SOON,
            &mut |_| Ok(()),
        );
        match restored {
            Ok(task_process) => {
                self.await_struck(task);
                task_process.kill_all().unwrap();
                task_process.wait_end(SOON).unwrap().unwrap();
                Ok(true)
            }
            Err(error) => {
                // Nothing of it is left that could still do it.
                let left = self.vm.list_pids().unwrap();
                assert_eq!(left, [self.honest.pid()].into(), "{error}");
                assert!(!self.struck(task).exists(), "it has run: {error}");
                Err(error.to_string())
            }
        }
    }
}

fn owner(directory: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(directory).unwrap().uid()
}

/// Starts a process with more rights than a task in the jail of a task. Must be called in a thread of its own.
#[expect(unsafe_code, reason = "it enters namespaces")]
fn start(inmate: i32, program: &Path, directory: &Path, excess: Excess) -> std::process::Child {
    let spaces = ["ipc", "uts", "net", "mnt"]
        .map(|it| fs::File::open(format!("/proc/{inmate}/ns/{it}")).unwrap());
    let c = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
    let user = owner(directory);
    let (root, directory) = (CString::new(CELL).unwrap(), c(directory));
    let processes = c(&Path::new(CELL).join("proc"));
    let done = |result: i32| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    let enter = move || {
        // SAFETY: system calls with numbers and strings that were made before.
        unsafe {
            done(libc::setsid())?;
            spaces.iter().try_for_each(|space| done(libc::setns(space.as_raw_fd(), 0)))?;
            libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC.cast_signed());
            if excess == Excess::Holding {
                let root = libc::open(c"/".as_ptr(), libc::O_DIRECTORY | libc::O_CLOEXEC);
                done(libc::dup2(root, 9))?;
            }
            // That of its own PID namespace, as a task has it.
            let proc = c"proc".as_ptr();
            done(libc::mount(proc, processes.as_ptr(), proc, 0, ptr::null()))?;
            done(libc::chroot(root.as_ptr()))?;
            done(libc::chdir(directory.as_ptr()))?;
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            (0..3).try_for_each(|to| done(libc::dup2(null, to)))?;
            if excess != Excess::Root {
                done(libc::setgroups(0, ptr::null()))?;
                done(libc::setresgid(user, user, user))?;
                done(libc::setresuid(user, user, user))?;
            }
            match excess {
                Excess::Root | Excess::Unfiltered => Ok(()),
                Excess::Holding => allow_all(),
            }
        }
    };
    // SAFETY: takes a number; children of this thread are in a new namespace.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWPID) }, 0);
    let mut command = Command::new(program);
    command.args(["task", "strike"]).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: `enter` makes only system calls.
    unsafe { command.pre_exec(enter) };
    command.spawn().unwrap()
}

/// Installs a filter of system calls that allows all, and gives up new privileges.
#[expect(unsafe_code, reason = "nothing here sets a filter")]
fn allow_all() -> io::Result<()> {
    let code = u16::try_from(libc::BPF_RET | libc::BPF_K).unwrap();
    let mut allow = libc::sock_filter { code, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let program = libc::sock_fprog { len: 1, filter: &raw mut allow };
    // SAFETY: the kernel reads the program, which lives as long.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A hostile image never runs: once, a sealed image of a root process without a filter made one worker's token enough
/// for root on all workers.
pub(crate) fn a_hostile_image_never_runs() {
    let scene = Scene::set_up();
    let (other_filter, new_privileges) = ("different filter", "can gain new privileges");
    let cases = [
        (Excess::Root, "is user or group 0 instead of", "is user 0 instead of"),
        (Excess::Unfiltered, new_privileges, new_privileges),
        (Excess::Holding, other_filter, "has / open"),
    ];
    for (number, (excess, in_images, in_processes)) in (10..).zip(cases) {
        let task = name(&number.to_string());
        let checkpoint = scene.of_excess(&task, excess);
        let _ = fs::remove_file(scene.struck(&task));
        let checkpointer = scene.worker.checkpointer();
        let refused =
            checkpointer.restore_task(&task, &scene.vm, 0, TierSlot::A, SOON).unwrap_err();
        let why = std::error::Error::source(&refused).map(ToString::to_string).unwrap_or_default();
        println!("{excess:?}: {why}");
        assert!(why.contains(in_images), "{excess:?}: {why}");
        assert!(!scene.struck(&task).exists(), "{excess:?}");
        let why = scene.restore_blindly(&task, &checkpoint).unwrap_err();
        println!("{excess:?}: {why}");
        assert!(why.contains(in_processes), "{excess:?}: {why}");
    }
    let repeats = env::var(REPEATS).ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let task = name("20");
    let checkpoint = scene.of_excess(&task, Excess::Root);
    for _ in 0..repeats {
        scene.restore_blindly(&task, &checkpoint).unwrap_err();
    }
    println!("restored and killed {repeats} times, and it has not run");
    // The same program as a task that is what it should be: it runs, so that the test can fail.
    let task = name("21");
    let checkpoint = scene.of_honest(&task);
    assert_eq!(scene.restore_blindly(&task, &checkpoint), Ok(true));
    scene.honest.kill_all().unwrap();
    scene.honest.wait_end(SOON).unwrap().unwrap();
}
