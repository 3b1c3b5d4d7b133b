//! A worker's directory, under its canonical path.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    sync::Arc,
};

use dormouse_folders::{LOCK, Lock, Tried, remove_tree, try_lock_in};
use nix::sys::statvfs::statvfs;

use super::{
    LeaseError, Result, TaskName, UserLeases, WorkspaceError, leases::LeaseFolder, mounts,
};
use crate::jail::{JailLayout, UserRange};

/// Mode of a directory that only its owner can use.
const OWN: u32 = 0o700;
/// Mode of a directory that only its owner can list. Others can use names in it that they know.
const LISTED_BY_NOBODY: u32 = 0o711;
/// Largest total size of the files of all tasks of a worker, in bytes.
const TASK_FILES_BYTES: u64 = 512 << 20;
/// Smallest size limit of a task's directory, in bytes: a page.
const LEAST_TASK_BYTES: u64 = 4096;
/// Bytes that a boot writes into the directory of an instance: its order, its programs' links, and its console.
const BOOT_BYTES: u64 = 2 << 20;

/// Path at which every worker sees its own directory.
pub const ROOT: &str = "/run/dormouse";

/// Directory of a worker. Only one worker at a time can have it open.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// Leases of the users that own the directories of tasks; `None`: the worker's user owns them.
    users: Option<Arc<UserLeases>>,
    /// Directory of locks by which the workers of this host lend users to tasks. `None`: the users of other workers' tasks aren't
    /// known.
    leases: Option<LeaseFolder>,
    /// Lock held as long as the workspace is. The end of the process, however it comes, unlocks it.
    _lock: Lock,
}

impl Workspace {
    /// Creates the directory if it doesn't exist, locks it, and enters the mount namespace in which its path is
    /// [`ROOT`]. Call this once, before any thread is started.
    ///
    /// The directories of tasks are in memory: what a task writes counts as memory of its VM, and is gone when the
    /// worker ends.
    ///
    /// # Errors
    ///
    /// The directory can't be made, belongs to another user or is a link, another worker uses it, or mounts don't
    /// work.
    pub fn enter_workspace(directory: &Path) -> Result<Self> {
        let lock = lock_directory(directory)?;
        let leases = LeaseFolder::of_host().inspect_err(|error| {
            tracing::warn!(%error, "users of tasks can't be coordinated with other workers on this host");
        });
        mounts::private_run_tmpfs(directory, Path::new(ROOT))?;
        let workspace = Self::laid_out(PathBuf::from(ROOT), lock)?;
        // Those of a worker from before they were in memory.
        workspace.remove_all_tasks()?;
        mounts::tmpfs_for_tasks(&workspace.tasks_directory(), TASK_FILES_BYTES)?;
        Ok(Self { leases: leases.ok(), ..workspace })
    }

    /// Returns the same workspace, in which users of the range `users` own the directories of tasks (`None`: the worker's user
    /// does).
    ///
    /// # Errors
    ///
    /// The users can't be lent on this host.
    pub fn with_users(self, users: Option<UserRange>) -> Result<Self> {
        let Some(users) = users else { return Ok(self) };
        let folder = match self.leases {
            Some(folder) => folder,
            None => {
                let path = self.root.join("users");
                let opened = LeaseFolder::open_at(&path);
                opened.map_err(|source| WorkspaceError::File {
                    action: "lend users in",
                    path,
                    source,
                })?
            }
        };
        let users = Some(Arc::new(UserLeases::new(users, folder)));
        Ok(Self { users, leases: None, ..self })
    }

    /// Returns the leases of users to tasks, if tasks have users of their own.
    #[must_use]
    pub const fn user_leases(&self) -> Option<&Arc<UserLeases>> {
        self.users.as_ref()
    }

    /// Returns the paths of the workspace that a jail shows to tasks.
    #[must_use]
    pub fn jail_layout(&self, criu: Option<&Path>) -> JailLayout {
        JailLayout {
            mount_point: self.root.join("jail"),
            tasks: self.tasks_directory(),
            programs: self.root.join("programs"),
            criu: criu.map(Path::to_owned),
        }
    }

    /// Uses the directory where it is, without a mount namespace: for tests, and for workers whose checkpoints aren't
    /// sent to others.
    ///
    /// # Errors
    ///
    /// The directory can't be made, or another worker uses it.
    pub fn in_place(directory: &Path) -> Result<Self> {
        let lock = lock_directory(directory)?;
        Self::laid_out(directory.to_owned(), lock)
    }

    fn laid_out(root: PathBuf, lock: Lock) -> Result<Self> {
        let workspace = Self { root, users: None, leases: None, _lock: lock };
        // Tasks find their own directories and programs; checkpoints hold the memory of all.
        for (directory, mode) in [
            ("tasks", LISTED_BY_NOBODY),
            ("programs", 0o755),
            ("checkpoints", OWN),
            ("contents", OWN),
        ] {
            let path = workspace.root.join(directory);
            create_directory(&path)?;
            allow_mode(&path, mode)?;
        }
        Ok(workspace)
    }

    /// Returns the directory of a task; see [`Workspace::create_task`].
    #[must_use]
    pub fn task_directory(&self, name: &TaskName) -> PathBuf {
        self.tasks_directory().join(name.relative_path())
    }

    /// Returns the directory of all task directories.
    #[must_use]
    pub fn tasks_directory(&self) -> PathBuf {
        self.root.join("tasks")
    }

    /// Returns the directory of checkpoints.
    #[must_use]
    pub fn checkpoints_directory(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// Returns the directory of the contents with which tasks begin.
    #[must_use]
    pub fn contents_directory(&self) -> PathBuf {
        self.root.join("contents")
    }

    /// Mounts a memory file system of `bytes` bytes over the existing directory of a task, which limits its size. The
    /// directory's earlier files are hidden. Programs in it can be executed.
    ///
    /// # Errors
    ///
    /// The mount is refused.
    pub fn bound_task(&self, name: &TaskName, bytes: u64) -> Result<()> {
        let path = self.task_directory(name);
        let owner = fs::symlink_metadata(&path).map_err(|source| WorkspaceError::File {
            action: "look at",
            path: path.clone(),
            source,
        })?;
        mounts::take_away(&path)?;
        // A tmpfs without a size would have half of the host's memory.
        mounts::tmpfs_for_task(&path, bytes.max(LEAST_TASK_BYTES), (owner.uid(), owner.gid()))
    }

    /// Changes the size of the memory file system that is mounted over the directory of a task; returns whether what is in it, and
    /// what a boot adds to it, has room there. If it has not, the size becomes what both take.
    ///
    /// # Errors
    ///
    /// The mount can't be changed.
    pub fn resize_task(&self, name: &TaskName, bytes: u64) -> Result<bool> {
        let path = self.task_directory(name);
        let needed = self.used_bytes(name)?.saturating_add(BOOT_BYTES);
        mounts::resize_tmpfs(&path, bytes.max(needed).max(LEAST_TASK_BYTES))?;
        Ok(needed <= bytes)
    }

    /// Returns the bytes that are used of the file system that has the directory of a task.
    ///
    /// # Errors
    ///
    /// The directory can't be looked at.
    pub fn used_bytes(&self, name: &TaskName) -> Result<u64> {
        let path = self.task_directory(name);
        let stat = statvfs(&path).map_err(|source| WorkspaceError::File {
            action: "ask for the size of the file system of",
            path,
            source: source.into(),
        })?;
        let used = stat.blocks().saturating_sub(stat.blocks_free());
        Ok(used.saturating_mul(stat.fragment_size()))
    }

    /// Makes the directory of a task if it doesn't exist, and gives it to a user that no other task of this host has.
    ///
    /// # Errors
    ///
    /// The directory can't be made, or other tasks have all users.
    pub fn create_task(&self, name: &TaskName) -> Result<PathBuf> {
        self.create_for(name, |users| users.lend_user(name))
    }

    /// Makes the directory for a check of a task's results, and gives it to a user that no task and no other check
    /// has.
    ///
    /// # Errors
    ///
    /// The directory can't be made, or other checks have all users for checks.
    pub fn create_check(&self, name: &TaskName) -> Result<PathBuf> {
        self.create_for(name, |users| users.lend_to_check(name))
    }

    fn create_for(
        &self,
        name: &TaskName,
        lend: impl FnOnce(&UserLeases) -> Result<u32, LeaseError>,
    ) -> Result<PathBuf> {
        let path = self.task_directory(name);
        create_directory(&path)?;
        if let Some(run) = path.parent() {
            allow_mode(run, LISTED_BY_NOBODY)?;
        }
        if let Some(users) = &self.users {
            let user = lend(users)
                .map_err(|source| WorkspaceError::NoUser { task: name.clone(), source })?;
            give_to(&path, user)?;
        }
        Ok(path)
    }

    /// Removes the directory of a task with its contents.
    ///
    /// # Errors
    ///
    /// A file in it can't be removed.
    pub fn remove_task(&self, name: &TaskName) -> Result<()> {
        let path = self.task_directory(name);
        mounts::take_away(&path)?;
        remove(&path)?;
        if let Some(users) = &self.users {
            users.give_back(name);
        }
        Ok(())
    }

    /// Removes the directories of all tasks of a run that has ended on this worker.
    ///
    /// # Errors
    ///
    /// A file in them can't be removed.
    pub fn remove_run(&self, run: &str) -> Result<()> {
        // Any name of a task is good to have its run's checked.
        let path = self.task_directory(&TaskName::new(run, "0")?);
        let Some(folder) = path.parent() else { return Ok(()) };
        let tasks = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            tasks => tasks,
        };
        let fail =
            |source| WorkspaceError::File { action: "list", path: folder.to_owned(), source };
        for task in tasks.map_err(fail)? {
            mounts::take_away(&task.map_err(fail)?.path())?;
        }
        remove(folder)?;
        if let Some(users) = &self.users {
            users.give_back_all(run);
        }
        Ok(())
    }

    /// Removes the directories of all tasks, when a worker starts and no task runs.
    ///
    /// # Errors
    ///
    /// A file can't be removed.
    pub fn remove_all_tasks(&self) -> Result<()> {
        // What is in it and not itself, which may be a mount.
        let tasks = self.tasks_directory();
        let fail = |source| WorkspaceError::File { action: "list", path: tasks.clone(), source };
        for run in fs::read_dir(&tasks).map_err(fail)? {
            remove(&run.map_err(fail)?.path())?;
        }
        Ok(())
    }

    /// Copies a program into the workspace. Returns the path by which to start it, which is the same on all workers
    /// that have the same program.
    ///
    /// # Errors
    ///
    /// The program can't be read or copied.
    pub fn install_program(&self, program: &Path) -> Result<PathBuf> {
        let file = |action, path: &Path| {
            let path = path.to_owned();
            move |source| WorkspaceError::File { action, path, source }
        };
        let contents = fs::read(program).map_err(file("read the program", program))?;
        let digest = blake3::hash(&contents).to_hex();
        let name = program.file_name().unwrap_or(program.as_os_str());
        let directory = self.root.join("programs").join(&digest.as_str()[..16]);
        let installed = directory.join(name);
        if fs::read(&installed).is_ok_and(|there| there == contents) {
            return Ok(installed);
        }
        create_directory(&directory)?;
        allow_mode(&directory, 0o755)?;
        // Never half a program under its name, and never "text file busy" for one being run.
        let partial = directory.join(format!(".{}.partial", std::process::id()));
        fs::write(&partial, &contents).map_err(file("write", &partial))?;
        fs::set_permissions(&partial, fs::Permissions::from_mode(0o755))
            .map_err(file("make executable", &partial))?;
        fs::rename(&partial, &installed).map_err(file("create", &installed))?;
        Ok(installed)
    }
}

/// Gives the directory of a task to a user, who may already own it.
pub(crate) fn give_to(path: &Path, user: u32) -> Result<()> {
    let fail = |action| {
        let path = path.to_owned();
        move |source| WorkspaceError::File { action, path, source }
    };
    let owner = fs::symlink_metadata(path).map_err(fail("look at"))?.uid();
    if owner != user {
        // Another user's mode is right already, and not to be changed without CAP_FOWNER.
        if owner == nix::unistd::geteuid().as_raw() {
            allow_mode(path, OWN)?;
        }
        chown(path, Some(user), Some(user)).map_err(fail("give its user"))?;
    }
    Ok(())
}

/// Makes the directory if it doesn't exist, ensures that it belongs to this process's user, and locks it.
fn lock_directory(directory: &Path) -> Result<Lock> {
    loop {
        create_directory(directory)?;
        make_own(directory)?;
        match try_lock_in(directory)? {
            Tried::Ours(lock) => return Ok(lock),
            Tried::SomebodyElses => {
                return Err(WorkspaceError::InUse { path: directory.to_owned() });
            }
            // It has just been removed as an abandoned one.
            Tried::Nothing => {}
        }
    }
}

/// Refuses a directory that is a link or belongs to another user, and takes other users' permissions away: the directory holds
/// checkpoints, which contain the memory of tasks.
fn make_own(directory: &Path) -> Result<()> {
    let fail =
        |action| move |source| WorkspaceError::File { action, path: directory.to_owned(), source };
    let found = fs::symlink_metadata(directory).map_err(fail("look at"))?;
    let owner = found.uid();
    if found.is_symlink() || !found.is_dir() {
        return Err(WorkspaceError::NotOwn {
            path: directory.to_owned(),
            what: "it is a link".to_owned(),
        });
    }
    if owner != nix::unistd::geteuid().as_raw() {
        let what = format!("it belongs to user {owner}");
        return Err(WorkspaceError::NotOwn { path: directory.to_owned(), what });
    }
    refuse_others_files(directory)?;
    if found.mode() & 0o077 != 0 {
        allow_mode(directory, OWN)?;
    }
    Ok(())
}

/// Refuses a directory that has files and was never a worker's directory, because a worker removes the files that it finds.
fn refuse_others_files(directory: &Path) -> Result<()> {
    let fail = |source| WorkspaceError::File { action: "list", path: directory.to_owned(), source };
    let is_empty = fs::read_dir(directory).map_err(fail)?.next().is_none();
    if is_empty || directory.join(LOCK).symlink_metadata().is_ok() {
        return Ok(());
    }
    let what = "it holds files that are not a worker's".to_owned();
    Err(WorkspaceError::NotOwn { path: directory.to_owned(), what })
}

fn allow_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|source| {
        WorkspaceError::File { action: "set the permissions of", path: path.to_owned(), source }
    })
}

fn create_directory(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(OWN).create(path).map_err(|source| {
        WorkspaceError::File { action: "create the directory", path: path.to_owned(), source }
    })
}

fn remove(path: &Path) -> Result<()> {
    remove_tree(path).map_err(|source| WorkspaceError::File {
        action: "remove",
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_files_of_others_is_no_workers_directory() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tasks")).unwrap();
        fs::write(dir.path().join("tasks/source"), "of a user").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode();
        allow_mode(dir.path(), 0o755).unwrap();
        let before = mode(dir.path());
        let refused = Workspace::in_place(dir.path()).unwrap_err();
        assert!(matches!(refused, WorkspaceError::NotOwn { .. }), "{refused}");
        assert!(dir.path().join("tasks/source").exists());
        assert_eq!(mode(dir.path()), before);
        // One that was a worker's is taken again, whatever the worker before left in it.
        let used = tempfile::tempdir().unwrap();
        drop(Workspace::in_place(used.path()).unwrap());
        fs::write(used.path().join("tasks/left"), "").unwrap();
        drop(Workspace::in_place(used.path()).unwrap());
    }

    #[test]
    fn a_directory_serves_one_worker_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = Workspace::in_place(dir.path()).unwrap();
        assert!(matches!(Workspace::in_place(dir.path()), Err(WorkspaceError::InUse { .. })));
        drop(first);
        Workspace::in_place(dir.path()).unwrap();
    }

    #[test]
    fn a_root_of_others_is_refused_and_one_that_others_see_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        fs::create_dir(&precious).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        assert!(matches!(Workspace::in_place(&link), Err(WorkspaceError::NotOwn { .. })));
        assert_eq!(fs::read_dir(&precious).unwrap().count(), 0, "nothing was written there");
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        allow_mode(&open, 0o755).unwrap();
        let workspace = Workspace::in_place(&open).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&open), 0o700);
        assert_eq!(mode(&workspace.checkpoints_directory()), 0o700);
        assert_eq!(mode(&open.join(LOCK)), 0o600);
        if nix::unistd::geteuid().is_root() {
            let theirs = dir.path().join("theirs");
            fs::create_dir(&theirs).unwrap();
            chown(&theirs, Some(12_345), None).unwrap();
            let refused = Workspace::in_place(&theirs).unwrap_err().to_string();
            assert!(refused.contains("belongs to user 12345"), "{refused}");
            let workspace = workspace.with_users(Some("70-79".parse().unwrap())).unwrap();
            let task = workspace.create_task(&TaskName::new("run", "13").unwrap()).unwrap();
            let found = fs::metadata(&task).unwrap();
            assert_eq!((found.gid(), found.mode() & 0o777), (found.uid(), 0o700));
            assert!((70..79).contains(&found.uid()), "{}", found.uid());
            // The tenth user is of checks, one at a time, and of no task.
            let check = |name| workspace.create_check(&TaskName::new("run", name).unwrap());
            let first = check("9-check-1").unwrap();
            assert_eq!(fs::metadata(&first).unwrap().uid(), 79);
            let none = check("8-check-1").unwrap_err();
            let why = std::error::Error::source(&none).unwrap().to_string();
            assert!(why.contains("--task-users than 70-79"), "{why}");
            workspace.remove_task(&TaskName::new("run", "9-check-1").unwrap()).unwrap();
            assert_eq!(fs::metadata(check("8-check-1").unwrap()).unwrap().uid(), 79);
            // Nine tasks have one each; the tenth is told why it has none, and has one once another has ended.
            let task = |number: u32| TaskName::new("run", number.to_string()).unwrap();
            let more = (14..22).map(|number| workspace.create_task(&task(number)).unwrap());
            let users = more.map(|path| fs::metadata(path).unwrap().uid());
            let mut users: Vec<u32> = users.chain([found.uid()]).collect();
            users.sort_unstable();
            assert_eq!(users, (70..79).collect::<Vec<_>>());
            let none = workspace.create_task(&task(22)).unwrap_err();
            let why = std::error::Error::source(&none).unwrap().to_string();
            assert!(why.contains("all users of 70-79 are taken by other tasks on this host: give more --task-users"), "{why}");
            workspace.remove_task(&task(14)).unwrap();
            workspace.create_task(&task(22)).unwrap();
        }
    }

    /// This needs root, for the mount.
    #[test]
    fn a_task_of_a_quota_can_hold_no_more_and_run_what_it_holds() {
        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var("CI").is_err(), "in CI nothing is skipped");
            eprintln!("skipped: mounts need root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::in_place(dir.path()).unwrap();
        let workspace = workspace.with_users(Some("70-79".parse().unwrap())).unwrap();
        let name = TaskName::new("run", "13").unwrap();
        for round in 0..2 {
            let task = workspace.create_task(&name).unwrap();
            workspace.bound_task(&name, 64 << 10).unwrap();
            let found = fs::metadata(&task).unwrap();
            assert_eq!((found.gid(), found.mode() & 0o777), (found.uid(), 0o700));
            assert!((70..79).contains(&found.uid()), "{}", found.uid());
            assert_eq!(fs::read_dir(&task).unwrap().count(), 0, "round {round}");
            let solve = task.join("solve");
            fs::write(&solve, "#!/bin/sh\nexit 7\n").unwrap();
            allow_mode(&solve, 0o755).unwrap();
            let status = std::process::Command::new(&solve).status().unwrap();
            assert_eq!(status.code(), Some(7));
            assert!(!crate::directory::is_full(&task).unwrap());
            let error = fs::write(task.join("much"), vec![1; 65 << 10]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert!(crate::directory::is_full(&task).unwrap());
            match round {
                0 => workspace.remove_task(&name).unwrap(),
                _ => workspace.remove_run("run").unwrap(),
            }
            assert!(!task.exists());
        }
    }

    #[test]
    fn a_link_in_place_of_the_lock_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        fs::create_dir(dir.path().join("w")).unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join("w").join(LOCK)).unwrap();
        Workspace::in_place(&dir.path().join("w")).unwrap_err();
        assert!(!victim.exists());
    }

    #[test]
    fn a_program_is_named_by_its_contents() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("task");
        let workspace = Workspace::in_place(&dir.path().join("w")).unwrap();
        fs::write(&program, "one").unwrap();
        let one = workspace.install_program(&program).unwrap();
        assert_eq!(workspace.install_program(&program).unwrap(), one);
        fs::write(&program, "two").unwrap();
        let two = workspace.install_program(&program).unwrap();
        assert_ne!(one, two);
        assert_eq!(fs::read_to_string(one).unwrap(), "one");
        assert_eq!(fs::metadata(two).unwrap().permissions().mode() & 0o777, 0o755);
    }
}
