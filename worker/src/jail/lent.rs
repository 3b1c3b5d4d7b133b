//! Access from outside to a cell's root and its filter of system calls.

use std::{fs::File, io, os::fd::AsFd as _, thread};

use nix::{
    fcntl::{OFlag, open},
    sched::{CloneFlags, setns, unshare},
    sys::stat::Mode,
};

use super::{CELL, JailCell};

impl JailCell {
    /// Opens the tasks' root directory, to read the files below it; `None`: tasks have no root of their own.
    ///
    /// # Errors
    ///
    /// The namespace can't be entered.
    pub(crate) fn open_root(&self) -> io::Result<Option<File>> {
        let Some(mounts) = self.mount_namespace() else { return Ok(None) };
        let enter = || -> io::Result<File> {
            // A thread that shares its directories with others can't enter.
            unshare(CloneFlags::CLONE_FS)?;
            setns(mounts.as_fd(), CloneFlags::CLONE_NEWNS)?;
            let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            Ok(File::from(open(CELL, flags, Mode::empty())?))
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("root".to_owned());
            let thread = thread.spawn_scoped(scope, enter)?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
        })
        .map(Some)
    }

    /// Returns whether tasks may only make the listed system calls.
    pub(crate) fn has_filter(&self) -> bool {
        self.call_filter().is_some()
    }

    /// Returns the filter of system calls in the kernel's form, which CRIU's images have too; `None`: there is no filter.
    pub(crate) fn filter_bytes(&self) -> Option<Vec<u8>> {
        let lines = self.call_filter()?.iter();
        let bytes = lines.flat_map(|line| {
            let [code_low, code_high] = line.code.to_ne_bytes();
            let [a, b, c, d] = line.k.to_ne_bytes();
            [code_low, code_high, line.jt, line.jf, a, b, c, d]
        });
        Some(bytes.collect())
    }
}
