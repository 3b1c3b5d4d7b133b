//! A worker's directory, under its canonical path.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::{
    Error, Result, TaskName,
    lock::{Lock, Tried, try_lock},
    mounts,
};

/// The file in a worker's directory on which it holds a lock.
pub(super) const LOCK: &str = "lock";

/// Where every worker sees its own directory.
pub const ROOT: &str = "/run/dormouse";

/// A worker's directory. The worker that has it open is the only one.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// Held as long as the workspace is: its end, however it comes, unlocks.
    _lock: Lock,
}

impl Workspace {
    /// Creates the directory if need be, locks it, and enters the mount namespace in which it
    /// is [`ROOT`]. To be called once, before any thread is started.
    ///
    /// # Errors
    /// Where the directory cannot be made, another worker uses it, or mounts do not work.
    pub fn enter(directory: &Path) -> Result<Self> {
        let lock = lock(directory)?;
        mounts::private_run_tmpfs(directory, Path::new(ROOT))?;
        Self::laid_out(PathBuf::from(ROOT), lock)
    }

    /// Uses the directory where it is, without a mount namespace: for tests, and for
    /// what needs no checkpoints to travel.
    ///
    /// # Errors
    /// Where the directory cannot be made or another worker uses it.
    pub fn in_place(directory: &Path) -> Result<Self> {
        let lock = lock(directory)?;
        Self::laid_out(directory.to_owned(), lock)
    }

    fn laid_out(root: PathBuf, lock: Lock) -> Result<Self> {
        let workspace = Self { root, _lock: lock };
        for directory in ["tasks", "programs", "checkpoints"] {
            create(&workspace.root.join(directory))?;
        }
        Ok(workspace)
    }

    /// The directory of a task; see [`Workspace::create_task`].
    #[must_use]
    pub fn task(&self, name: &TaskName) -> PathBuf {
        self.tasks().join(name.path())
    }

    /// Where all task directories are.
    #[must_use]
    pub fn tasks(&self) -> PathBuf {
        self.root.join("tasks")
    }

    /// Where the checkpoints are.
    #[must_use]
    pub fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// Makes the directory of a task, if need be.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn create_task(&self, name: &TaskName) -> Result<PathBuf> {
        let path = self.task(name);
        create(&path)?;
        Ok(path)
    }

    /// Removes the directory of a task and what is in it.
    ///
    /// # Errors
    /// Where something in it cannot be removed.
    pub fn remove_task(&self, name: &TaskName) -> Result<()> {
        remove(&self.task(name))
    }

    /// Removes the directories of all tasks: at a worker's start none of them runs.
    ///
    /// # Errors
    /// Where something cannot be removed.
    pub fn remove_all_tasks(&self) -> Result<()> {
        remove(&self.tasks())?;
        create(&self.tasks())
    }

    /// Copies a program in and returns the path to start it by, which is the same on every
    /// worker that has the same program.
    ///
    /// # Errors
    /// Where it cannot be read or copied.
    pub fn install_program(&self, program: &Path) -> Result<PathBuf> {
        let file = |action, path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { action, path, source }
        };
        let contents = fs::read(program).map_err(file("read the program", program))?;
        let digest = blake3::hash(&contents).to_hex();
        let name = program.file_name().unwrap_or(program.as_os_str());
        let directory = self.root.join("programs").join(&digest.as_str()[..16]);
        let installed = directory.join(name);
        if fs::read(&installed).is_ok_and(|there| there == contents) {
            return Ok(installed);
        }
        create(&directory)?;
        // Never half a program under its name, and never "text file busy" for one being run.
        let partial = directory.join(format!(".{}.partial", std::process::id()));
        fs::write(&partial, &contents).map_err(file("write", &partial))?;
        fs::set_permissions(&partial, fs::Permissions::from_mode(0o755))
            .map_err(file("make executable", &partial))?;
        fs::rename(&partial, &installed).map_err(file("create", &installed))?;
        Ok(installed)
    }
}

/// Makes the directory, if need be, this process's.
fn lock(directory: &Path) -> Result<Lock> {
    let path = directory.join(LOCK);
    let fail = |source| Error::File { action: "lock", path: path.clone(), source };
    loop {
        create(directory)?;
        match OpenOptions::new().create(true).append(true).open(&path) {
            // It has just been removed as an abandoned one.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            made => made.map_err(fail)?,
        };
        match try_lock(&path).map_err(fail)? {
            Tried::Ours(lock) => return Ok(lock),
            Tried::SomebodyElses => return Err(Error::InUse { path: directory.to_owned() }),
            Tried::Nothing => {}
        }
    }
}

fn create(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|source| Error::File {
        action: "create the directory",
        path: path.to_owned(),
        source,
    })
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(Error::File { action: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_directory_serves_one_worker_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = Workspace::in_place(dir.path()).unwrap();
        assert!(matches!(Workspace::in_place(dir.path()), Err(Error::InUse { .. })));
        drop(first);
        Workspace::in_place(dir.path()).unwrap();
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
