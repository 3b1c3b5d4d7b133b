//! SIGTERM handler that also works as PID 1.

use std::io;

/// Exit status of a task that SIGTERM ends, as shells report it.
const TERMINATED: libc::c_int = 128 + libc::SIGTERM;

/// Makes SIGTERM end the process.
///
/// The kernel drops signals with a default action for the first process of a PID namespace,
/// so a task that runs there would not notice SIGTERM without a handler. There is nothing to
/// tidy up: the result is written in one rename, and the progress page is valid at any time.
pub(crate) fn exit_on_sigterm() -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = terminate;
    #[expect(unsafe_code, reason = "the standard library has no signal handling")]
    // SAFETY: the handler has the type the kernel calls and is async-signal-safe.
    let previous = unsafe { libc::signal(libc::SIGTERM, handler as libc::sighandler_t) };
    if previous == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

extern "C" fn terminate(_signal: libc::c_int) {
    #[expect(unsafe_code, reason = "std::process::exit is not async-signal-safe")]
    // SAFETY: _exit is async-signal-safe and does not return.
    unsafe {
        libc::_exit(TERMINATED)
    }
}
