//! Starting a program that works for the worker itself: CRIU.

use std::{
    ffi::{OsStr, OsString, c_void},
    fs::{File, OpenOptions},
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    path::Path,
    ptr,
};

use super::{
    Task,
    clone::clone_and_wait,
    exec::{Failure, Image, enter},
};
use crate::cgroup::Entry;

/// The descriptor at which a helper finds its socket.
pub(crate) const SOCKET: RawFd = 3;

/// What the new process does before its program, by the number it notes.
const STEPS: [&str; 5] = [
    "leading a process group",
    "entering the control groups",
    "tying its life to the worker's",
    "setting up its files",
    "executing it",
];

struct Birth<'a> {
    image: Image,
    entry: Option<&'a Entry>,
    null: File,
    socket: RawFd,
    failed: Failure,
}

/// Starts `program`, a path or a name on `PATH`, as a child of this thread that leads a process
/// group, in the groups of `entry` if there is one. It has `socket` as its descriptor [`SOCKET`],
/// nothing else of the worker's but the environment, and is killed when this thread ends.
pub(crate) fn start(
    program: &Path,
    args: &[&str],
    socket: BorrowedFd<'_>,
    entry: Option<&Entry>,
) -> io::Result<Task> {
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let env = env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    let image = Image::of(program.as_os_str(), args.iter().map(OsStr::new), env)
        .map_err(|what| io::Error::other(format!("{what} holds a NUL byte")))?;
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    Birth { image, entry, null, socket: socket.as_raw_fd(), failed: Failure::default() }.give()
}

impl Birth<'_> {
    #[expect(unsafe_code, reason = "posix_spawn knows no groups and no death signal")]
    fn give(&self) -> io::Result<Task> {
        // SAFETY: `run` makes only system calls, on what was prepared before, and never returns;
        // `self` lives until then, since this waits.
        let task = unsafe { clone_and_wait(0, self.entry, Self::run, ptr::from_ref(self).cast())? };
        match self.failed.noted(&STEPS) {
            None => Ok(task),
            Some((step, source)) => {
                // It has ended, so this only reaps it.
                let _ = task.try_wait();
                Err(io::Error::new(source.kind(), format!("{step} failed: {source}")))
            }
        }
    }

    /// The new process up to its program; notes the step that failed.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed here")]
    extern "C" fn run(birth: *const c_void) -> ! {
        // SAFETY: it is the `Birth` of the thread that waits in `give`.
        let Self { image, entry, null, socket, failed } = unsafe { &*birth.cast::<Self>() };
        // SAFETY: async-signal-safe system calls on descriptors and strings prepared before.
        unsafe {
            if libc::setpgid(0, 0) < 0 {
                failed.at(0);
            }
            if entry.is_some_and(|entry| !enter(entry)) {
                failed.at(1);
            }
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
                failed.at(2);
            }
            for target in 0..SOCKET {
                if libc::dup2(null.as_raw_fd(), target) < 0 {
                    failed.at(3);
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
                failed.at(3);
            }
            image.execute();
            failed.at(4)
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{io::Read as _, os::fd::AsFd as _, os::unix::net::UnixStream, time::Duration};

    use super::*;
    use crate::process::Ended;

    #[test]
    fn it_leads_a_group_and_speaks_through_its_socket() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        // The fifth descriptor is the folder that is being read.
        let script =
            "cut -d' ' -f5 /proc/$$/stat >&3; set -- /proc/$$/fd/*; echo $$ $# >&3; exit 7";
        let task = start(Path::new("sh"), &["-c", script], theirs.as_fd(), None).unwrap();
        drop(theirs);
        let mut said = String::new();
        ours.read_to_string(&mut said).unwrap();
        let words: Vec<i32> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert_eq!(words, [task.pid(), task.pid(), 5]);
        assert_eq!(task.wait(Duration::from_secs(10)).unwrap(), Some(Ended::Exited(7)));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_and_leaves_no_child() {
        let (_ours, theirs) = UnixStream::pair().unwrap();
        let error = start(Path::new("/no/such/program"), &[], theirs.as_fd(), None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("executing it failed"), "{error}");
    }
}
