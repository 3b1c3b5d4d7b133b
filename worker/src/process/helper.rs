//! Starting a program that works for the worker itself: CRIU.

use std::{
    ffi::{OsStr, OsString, c_void},
    fs::{File, OpenOptions},
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    path::Path,
    sync::Arc,
    time::Duration,
};

use super::{
    ChildProcess, ProcessGroups,
    clone::{CloneOutcome, clone_and_wait},
    exec::{ExecImage, FailedStep, enter_groups, group_files},
};
use crate::jail::{JailCell, MountView};

/// The descriptor at which a helper finds its socket.
pub(crate) const SOCKET: RawFd = 3;

/// Steps that a new process takes before it runs its program, indexed by the number that it records when a step fails.
const STEPS: [&str; 7] = [
    "leading a process group",
    "entering the control groups",
    "entering the namespaces of the tasks",
    "taking the real user of the task",
    "tying its life to the worker's",
    "setting up its files",
    "executing it",
];

/// The task that a helper works on.
#[derive(Debug)]
pub struct HelpedTask<'a> {
    /// The namespaces that the helper enters.
    pub cell: &'a Arc<JailCell>,
    /// User of the task; `None` if tasks have no users of their own.
    pub user: Option<u32>,
    /// The view of files that the helper gets: the task's view.
    pub view: MountView,
}

/// Number that stands for the first step of making the helper's view of files, behind the numbers of [`STEPS`].
const AFTER_STEPS: u32 = 7;
const _: () = assert!(STEPS.len() == AFTER_STEPS as usize);

struct HelperBirth {
    image: ExecImage,
    doors: Vec<RawFd>,
    cell: Option<Arc<JailCell>>,
    view: MountView,
    user: Option<u32>,
    null: File,
    socket: RawFd,
    failed: FailedStep,
}

/// Starts `program`, a path or a name on `PATH`, as a child of this thread that leads a process group, in the groups of
/// `entry` if there is one. The program has `socket` as its descriptor [`SOCKET`], nothing else of the worker's but the
/// environment, and is killed when this thread ends. If it works on a task in a cell, `program` is a path in the cell.
///
/// # Errors
/// Which step failed, and why; of the kind [`io::ErrorKind::TimedOut`] if the new process did not reach its program
/// before `deadline`.
#[expect(unsafe_code, reason = "posix_spawn knows no groups and no death signal")]
pub(crate) fn start_helper(
    program: &Path,
    args: &[&str],
    socket: BorrowedFd<'_>,
    entry: Option<&ProcessGroups>,
    inmate: Option<HelpedTask<'_>>,
    deadline: Duration,
) -> io::Result<ChildProcess> {
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let env = env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    let image = ExecImage::new(program.as_os_str(), args.iter().map(OsStr::new), env)
        .map_err(|what| io::Error::other(format!("{what} holds a NUL byte")))?;
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    let doors = entry.map(group_files).unwrap_or_default();
    let (cell, user, view) = match inmate {
        Some(HelpedTask { cell, user, view }) => {
            (Some(Arc::clone(cell)), user.filter(|_| cell.lends_user()), view)
        }
        None => (None, None, MountView::Common),
    };
    let (socket, failed) = (socket.as_raw_fd(), FailedStep::default());
    let birth = HelperBirth { image, doors, cell, view, user, null, socket, failed };
    // SAFETY: `run` makes only system calls, on what was prepared before, and never returns.
    match unsafe { clone_and_wait(0, entry, HelperBirth::run, birth, deadline) }? {
        CloneOutcome::Past(task, birth) => {
            let words = birth.view.step_words();
            let steps = STEPS.into_iter().chain(words.iter().map(String::as_str));
            match birth.failed.failed_step(&steps.collect::<Vec<_>>()) {
                None => Ok(task),
                Some((step, source)) => {
                    task.reap_ended();
                    Err(io::Error::new(source.kind(), format!("{step} failed: {source}")))
                }
            }
        }
        CloneOutcome::Late => Err(io::ErrorKind::TimedOut.into()),
    }
}

impl HelperBirth {
    /// Code that the new process runs until it executes its program; if a step fails, it records the step's number.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed here")]
    extern "C" fn run(birth: *const c_void) -> ! {
        // SAFETY: it is the `Birth` that was given to the clone.
        let Self { image, doors, cell, view, user, null, socket, failed } =
            unsafe { &*birth.cast::<Self>() };
        // SAFETY: async-signal-safe system calls on descriptors and strings prepared before.
        unsafe {
            if libc::setpgid(0, 0) < 0 {
                failed.fail_at(0);
            }
            if !enter_groups(doors) {
                failed.fail_at(1);
            }
            if !cell.as_ref().is_none_or(|cell| cell.enter_namespaces(view)) {
                failed.fail_at(2);
            }
            if let Err(step) = view.make_view() {
                failed.fail_at(AFTER_STEPS + step);
            }
            if !user.is_none_or(|user| JailCell::become_root_for(user)) {
                failed.fail_at(3);
            }
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
                failed.fail_at(4);
            }
            for target in 0..SOCKET {
                if libc::dup2(null.as_raw_fd(), target) < 0 {
                    failed.fail_at(5);
                }
            }
            // All of the worker's are closed at exec; the copy is not.
            let kept = if *socket == SOCKET {
                libc::fcntl(*socket, libc::F_SETFD, 0)
            } else {
                libc::dup2(*socket, SOCKET)
            };
            let above = SOCKET.unsigned_abs() + 1;
            let closed =
                libc::syscall(libc::SYS_close_range, above, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            if kept < 0 || closed < 0 {
                failed.fail_at(5);
            }
            image.execute_program();
            failed.fail_at(6)
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{fs, io::Read as _, os::fd::AsFd as _, os::unix::net::UnixStream};

    use super::*;
    use crate::process::ProcessEnd;

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn it_leads_a_group_and_speaks_through_its_socket() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        // The fifth descriptor is the folder that is being read.
        let script =
            "cut -d' ' -f5 /proc/$$/stat >&3; set -- /proc/$$/fd/*; echo $$ $# >&3; exit 7";
        let task = start_helper(Path::new("sh"), &["-c", script], theirs.as_fd(), None, None, SOON)
            .unwrap();
        drop(theirs);
        let mut said = String::new();
        ours.read_to_string(&mut said).unwrap();
        let words: Vec<i32> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert_eq!(words, [task.pid(), task.pid(), 5]);
        assert_eq!(task.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(7)));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_and_leaves_no_child() {
        let (_ours, theirs) = UnixStream::pair().unwrap();
        // Whoever looks whether it has ended may look too soon.
        for _ in 0..200 {
            let started =
                start_helper(Path::new("/no/such/program"), &[], theirs.as_fd(), None, None, SOON);
            let error = started.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            assert!(error.to_string().starts_with("executing it failed"), "{error}");
            assert_eq!(fs::read_to_string("/proc/thread-self/children").unwrap(), "");
        }
    }
}
