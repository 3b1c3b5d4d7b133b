//! Signals and commands by which a cell is told to shut down, from outside or from inside.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read as _, Write as _},
    os::{
        fd::FromRawFd as _,
        unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::Path,
};

/// Name of the folder with the commands that shut the cell down, in the directory of the cell.
pub const COMMANDS: &str = "bin";
/// Commands by which a process of the cell requests the shutdown.
const SHUTDOWN_COMMANDS: [&str; 3] = ["shutdown", "poweroff", "halt"];

/// Number of the signal that requests the shutdown, as systemd has it: SIGRTMIN+4.
pub(super) fn power_off_signal() -> i32 {
    libc::SIGRTMIN() + 4
}

/// Writes the commands by which a process of the cell requests the shutdown.
pub(super) fn write_commands(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o755).create(folder)?;
    let text = format!("#!/bin/sh\nkill -{} 1\n", power_off_signal());
    for name in SHUTDOWN_COMMANDS {
        let path = folder.join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(&path)?;
        file.write_all(text.as_bytes())?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Signals to the first process, which are blocked and read from a descriptor: the ends of children, and requests of a
/// shutdown. A blocked signal also reaches the first process of a PID namespace from inside.
pub(super) struct CellSignals(pub(super) File);

impl CellSignals {
    #[expect(unsafe_code, reason = "the standard library knows no signals")]
    pub(super) fn receive() -> io::Result<Self> {
        // SAFETY: the set is this function's, and initialised before it is used; the descriptor is new, and nobody else's.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGCHLD, libc::SIGTERM, power_off_signal()] {
                libc::sigaddset(&raw mut set, signal);
            }
            match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) {
                0 => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
            match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                fd @ 0.. => Ok(Self(File::from_raw_fd(fd))),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Returns the next signal that has arrived; `None`: there is none.
    pub(super) fn next_signal(&self) -> io::Result<Option<i32>> {
        let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
        match (&self.0).read(&mut bytes) {
            Ok(_) => {
                let [a, b, c, d, ..] = bytes;
                Ok(i32::try_from(u32::from_ne_bytes([a, b, c, d])).ok())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Sends a signal to all other processes of the cell. Only the first process of a PID namespace does so: its kill(2)
/// reaches all others of the namespace, and none outside.
pub(super) fn signal_others(signal: i32) {
    if std::process::id() == 1 {
        #[expect(unsafe_code, reason = "the standard library signals its own children alone")]
        // SAFETY: takes numbers. Where nobody is left it says so, and so does the next wait.
        let _ = unsafe { libc::kill(-1, signal) };
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_shutdown_send_the_first_process_its_signal() {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join(COMMANDS);
        write_commands(&bin).unwrap();
        for name in SHUTDOWN_COMMANDS {
            let text = fs::read_to_string(bin.join(name)).unwrap();
            assert_eq!(text, "#!/bin/sh\nkill -38 1\n", "{name}");
            assert_eq!(fs::metadata(bin.join(name)).unwrap().permissions().mode() & 0o777, 0o755);
        }
        write_commands(&bin).unwrap_err();
    }
}
