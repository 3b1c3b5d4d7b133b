//! The users that tasks have on this host, each lent to one task at a time.
//!
//! Workers that share a host share its users, so a user is lent by a lock on a file of this user's number in one folder
//! of the host. A worker that dies gives all of its users back with its locks. The file says to which task the user is
//! lent: attempts of one task share a user, on whichever worker they are, since a checkpoint can't change its user.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::TaskName;
use crate::jail::UserRange;

/// Path of the host's directory with a lock file for each user that is lent to a task.
const FOLDER: &str = "/run/dormouse-users";
/// Interval at which is checked whether another task has given back a user.
const LOOK: Duration = Duration::from_millis(50);
/// Size in bytes that is larger than the longest text of a lease.
const LONGEST: u64 = 1 << 10;

/// Directory of the locks, opened before a worker's mounts hide it.
#[derive(Debug)]
pub(super) struct LeaseFolder {
    folder: File,
}

impl LeaseFolder {
    /// Opens the directory that all workers of this host share.
    pub(super) fn of_host() -> io::Result<Self> {
        Self::open_at(Path::new(FOLDER))
    }

    /// Opens a directory, and makes it if it doesn't exist. The directory must belong to the user of this process.
    pub(super) fn open_at(path: &Path) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let folder = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let found = folder.metadata()?;
        if found.uid() != nix::unistd::geteuid().as_raw() || found.mode() & 0o022 != 0 {
            let why = format!("others may write into {}", path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(Self { folder })
    }

    fn lease_path(&self, user: u32) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{user}", self.folder.as_raw_fd()))
    }

    /// Tries to lend a user to a task. Returns `None` if another task has that user.
    fn try_lend(&self, user: u32, task: &TaskName) -> io::Result<Option<LentUser>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.custom_flags(libc::O_NOFOLLOW).open(self.lease_path(user))?;
        match file.try_lock() {
            Ok(()) => {
                // Nobody's: it says from now on whose it is.
                file.set_len(0)?;
                file.write_all(task.to_string().as_bytes())?;
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // All attempts of a task share it; where somebody writes its name just now, it is another's.
        match file.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let lent = LentUser { user, file };
        Ok((lent.holder()? == task.to_string()).then_some(lent))
    }
}

/// User that is lent to a task; dropping the value gives the user back.
#[derive(Debug)]
struct LentUser {
    user: u32,
    file: File,
}

impl LentUser {
    /// Returns the name of the task to which the user is lent.
    fn holder(&self) -> io::Result<String> {
        let (mut file, mut text) = (&self.file, String::new());
        file.rewind()?;
        file.take(LONGEST).read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for LentUser {
    fn drop(&mut self) {
        // A process that is just being started may have the same file open.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, user = self.user, "the user of a task can't be given back");
        }
    }
}

/// Reason why a task gets no user of its own.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Other tasks on this host have all users that the given range has for tasks.
    #[error("all users of {0} are taken by other tasks on this host: give more --task-users")]
    AllTaken(UserRange),
    /// Other checks on this host have all users that the given range has for checks.
    #[error("all users for checks are taken: give more --task-users than {0}")]
    NoChecker(UserRange),
    /// Another task has the user that is in the task's checkpoint.
    #[error(
        "user {user} of its checkpoint is taken by another task on this host: give more \
         --task-users than {users}"
    )]
    Taken {
        /// User in the checkpoint.
        user: u32,
        /// The range of users for tasks.
        users: UserRange,
    },
    /// The system refuses.
    #[error("users for tasks can't be reserved")]
    System(#[from] io::Error),
}

/// Users that are lent to a worker's tasks.
pub struct UserLeases {
    users: UserRange,
    folder: LeaseFolder,
    lent: Mutex<BTreeMap<TaskName, LentUser>>,
}

impl fmt::Debug for UserLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lent = self.lent_users();
        f.debug_struct("UserLeases").field("users", &self.users).field("lent", &lent).finish()
    }
}

impl UserLeases {
    pub(super) const fn new(users: UserRange, folder: LeaseFolder) -> Self {
        Self { users, folder, lent: Mutex::new(BTreeMap::new()) }
    }

    fn lent_users(&self) -> MutexGuard<'_, BTreeMap<TaskName, LentUser>> {
        // Every change of it is whole, whoever panicked with it.
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends a user to a task, unless the task has one.
    ///
    /// # Errors
    ///
    /// Other tasks have all users, or the system refuses.
    pub(super) fn lend_user(&self, task: &TaskName) -> Result<u32, LeaseError> {
        let candidates = self.users.of_task(task.run(), task.task());
        self.lend_first(task, candidates)?.ok_or(LeaseError::AllTaken(self.users))
    }

    /// Lends a user to a check of a task's results, unless the check has one. Tasks can't get such a user.
    ///
    /// # Errors
    ///
    /// Other checks have all users, or the system refuses.
    pub(super) fn lend_to_check(&self, check: &TaskName) -> Result<u32, LeaseError> {
        let candidates = self.users.of_checks();
        self.lend_first(check, candidates)?.ok_or(LeaseError::NoChecker(self.users))
    }

    fn lend_first(
        &self,
        task: &TaskName,
        candidates: impl Iterator<Item = u32>,
    ) -> Result<Option<u32>, LeaseError> {
        let mut lent = self.lent_users();
        if let Some(has) = lent.get(task) {
            return Ok(Some(has.user));
        }
        for user in candidates {
            if let Some(lease) = self.folder.try_lend(user, task)? {
                // Somebody may be left of a worker that was killed.
                if !is_free(&lease, task)? {
                    continue;
                }
                lent.insert(task.clone(), lease);
                return Ok(Some(user));
            }
        }
        Ok(None)
    }

    /// Lends a task the user that is in its checkpoint, in place of its present user; waits for a limited time while another task
    /// has that user. Returns `None` if the user is not in the range for tasks; the inspection of the images will refuse it.
    ///
    /// # Errors
    ///
    /// Another task still has the user, or the system refuses.
    pub(crate) fn lend_again(
        &self,
        task: &TaskName,
        user: u32,
        wait: Duration,
    ) -> Result<Option<u32>, LeaseError> {
        if !self.users.are_of_tasks(user) {
            return Ok(None);
        }
        let begun = Instant::now();
        loop {
            if self.lent_users().get(task).is_some_and(|has| has.user == user) {
                return Ok(Some(user));
            }
            if let Some(lease) = self.folder.try_lend(user, task)? {
                self.lent_users().insert(task.clone(), lease);
                return Ok(Some(user));
            }
            if begun.elapsed() >= wait {
                return Err(LeaseError::Taken { user, users: self.users });
            }
            thread::sleep(LOOK);
        }
    }

    /// Gives back the user of a task.
    pub(super) fn give_back(&self, task: &TaskName) {
        self.lent_users().remove(task);
    }

    /// Gives back the users of all tasks of a run.
    pub(super) fn give_back_all(&self, run: &str) {
        self.lent_users().retain(|task, _| task.run() != run);
    }
}

/// Returns whether no process of a user runs on this host, as far as this worker can see. A process may run if the task runs on
/// another worker too.
fn is_free(lease: &LentUser, task: &TaskName) -> io::Result<bool> {
    if lease.holder()? != task.to_string() {
        return Ok(false);
    }
    for process in fs::read_dir("/proc")? {
        let name = process?.file_name();
        let Some(pid) = name.to_str().filter(|name| name.bytes().all(|it| it.is_ascii_digit()))
        else {
            continue;
        };
        // It may be gone by now.
        let owner = fs::metadata(Path::new("/proc").join(pid)).map(|found| found.uid());
        if owner.is_ok_and(|owner| owner == lease.user) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn workers(range: &str, count: usize) -> (Vec<UserLeases>, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("users");
        let worker =
            || UserLeases::new(range.parse().unwrap(), LeaseFolder::open_at(&folder).unwrap());
        ((0..count).map(|_| worker()).collect(), dir)
    }

    fn name(run: &str, task: impl ToString) -> TaskName {
        TaskName::new(run, task.to_string()).unwrap()
    }

    #[test]
    fn no_two_tasks_of_two_workers_have_one_user_and_the_one_too_many_is_refused() {
        // 18 of them are of tasks.
        let (workers, _dir) = workers("900100-900119", 2);
        let mut users = BTreeSet::new();
        for number in 0..18_u32 {
            // The same numbers of two runs, and numbers that come to the same by the length of the range.
            let (worker, run) = (&workers[number as usize % 2], ["a", "b"][number as usize / 9]);
            assert!(
                users.insert(worker.lend_user(&name(run, number % 9 * 18)).unwrap()),
                "{number}"
            );
        }
        assert_eq!(users, (900_100..=900_117).collect());
        for worker in &workers {
            let no = worker.lend_user(&name("c", 1)).unwrap_err().to_string();
            assert!(no.contains("all users of 900100-900119 are taken by other tasks on this host: give more --task-users"), "{no}");
        }
        // Whoever has one keeps it, and what is given back is another's.
        let has = workers[0].lend_user(&name("a", 0)).unwrap();
        assert_eq!(workers[0].lend_user(&name("a", 0)).unwrap(), has);
        workers[0].give_back(&name("a", 0));
        assert_eq!(workers[1].lend_user(&name("c", 1)).unwrap(), has);
        workers[1].give_back_all("a");
        assert!(workers[0].lend_user(&name("d", 1)).is_ok());
        // A worker that dies gives all back.
        let [first, second] = <[UserLeases; 2]>::try_from(workers).unwrap();
        drop(second);
        for task in 0..3 {
            first.lend_user(&name("e", task)).unwrap();
        }
    }

    #[test]
    fn attempts_of_one_task_share_its_user_and_a_checkpoint_keeps_it() {
        let (workers, _dir) = workers("900200-900219", 2);
        let (one, other) = (&workers[0], &workers[1]);
        let task = name("a", 3);
        let user = one.lend_user(&task).unwrap();
        let wait = Duration::ZERO;
        other.lend_again(&task, user, wait).unwrap();
        assert_eq!(other.lend_user(&task).unwrap(), user);
        // Of another task it is not to be had before both have given it back.
        let no = |worker: &UserLeases| worker.lend_again(&name("b", 3), user, wait).unwrap_err();
        assert!(
            no(one).to_string().contains("is taken by another task on this host"),
            "{}",
            no(one)
        );
        one.give_back(&task);
        assert!(matches!(no(one), LeaseError::Taken { .. }));
        std::thread::scope(|scope| {
            let patient =
                scope.spawn(|| one.lend_again(&name("b", 3), user, Duration::from_secs(60)));
            other.give_back(&task);
            patient.join().unwrap().unwrap();
        });
        assert_eq!(one.lend_user(&name("b", 3)).unwrap(), user);
        // What is no task's user is nobody's to lend: of root, and of a check.
        for not_lent in [0, 900_219] {
            assert_eq!(one.lend_again(&name("b", 4), not_lent, wait).unwrap(), None);
            assert_ne!(one.lend_user(&name("b", 4)).unwrap(), not_lent);
        }
    }

    #[test]
    fn checks_have_users_that_no_task_has() {
        let (workers, _dir) = workers("900300-900319", 2);
        let checks = [&workers[0], &workers[1]]
            .map(|worker| worker.lend_to_check(&name("a", "1-check-1")).unwrap());
        // The same check of one task is one check.
        assert_eq!(checks, [900_318, 900_318]);
        assert_eq!(workers[0].lend_to_check(&name("a", "2-check-1")).unwrap(), 900_319);
        let no = workers[1].lend_to_check(&name("a", "3-check-1")).unwrap_err().to_string();
        assert!(no.contains("give more --task-users than 900300-900319"), "{no}");
    }

    /// This needs root, to start a process of another user.
    #[test]
    fn a_user_of_whom_a_process_is_left_is_lent_to_nobody() {
        use std::os::unix::process::CommandExt as _;
        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var("CI").is_err(), "in CI nothing is skipped");
            eprintln!("skipped: another user's process needs root");
            return;
        }
        let (workers, _dir) = workers("900400-900419", 1);
        let task = name("a", 3);
        let first = workers[0].users.of_task("a", "3").next().unwrap();
        let mut left = std::process::Command::new("/bin/sleep");
        let mut left = left.arg("1000").uid(first).gid(first).spawn().unwrap();
        let lent = workers[0].lend_user(&task);
        left.kill().unwrap();
        left.wait().unwrap();
        assert_ne!(lent.unwrap(), first);
        workers[0].give_back(&task);
        assert_eq!(workers[0].lend_user(&task).unwrap(), first);
    }

    #[test]
    fn a_folder_that_others_may_write_into_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(LeaseFolder::open_at(&open).is_err());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(LeaseFolder::open_at(&link).is_err());
    }
}
