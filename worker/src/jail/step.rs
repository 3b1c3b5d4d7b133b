//! Steps by which a new process makes its own view of files: prepared beforehand, and carried out by system calls
//! alone.

use std::{
    ffi::{CStr, CString},
    io,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    ptr,
};

use nix::mount::{MntFlags, MsFlags};
use nix::sched::CloneFlags;

/// A step by which a new process makes a task's view of files. The process shares all memory with the worker, so all data that the
/// step needs is made beforehand.
#[derive(Debug)]
pub(super) enum JailStep {
    /// Move the process to a copy of its mount namespace.
    Unshare,
    Mount {
        source: Option<CString>,
        target: CString,
        kind: Option<CString>,
        flags: MsFlags,
        data: Option<CString>,
        /// True if the step may fail because its source or target is missing.
        may_lack: bool,
    },
    /// Unmount the file system that is mounted at the given path.
    Unmount(CString),
    Directory {
        path: CString,
        mode: libc::mode_t,
    },
    File {
        path: CString,
        content: Vec<u8>,
    },
}

impl JailStep {
    /// Takes the step; returns whether it succeeded. The error is in `errno`.
    ///
    /// # Safety
    ///
    /// Only in a new process, which has a mount namespace of its own from the first step on.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed there")]
    pub(super) unsafe fn take_step(&self) -> bool {
        let pointer = |text: &Option<CString>| text.as_deref().map_or(ptr::null(), CStr::as_ptr);
        // SAFETY: strings that live as long as this, and numbers.
        unsafe {
            match self {
                Self::Unshare => libc::unshare(CloneFlags::CLONE_NEWNS.bits()) == 0,
                Self::Mount { source, target, kind, flags, data, may_lack } => {
                    let (source, kind, data) = (pointer(source), pointer(kind), pointer(data));
                    let flags = flags.bits();
                    libc::mount(source, target.as_ptr(), kind, flags, data.cast()) == 0
                        || *may_lack
                            && matches!(*libc::__errno_location(), libc::ENOENT | libc::EINVAL)
                }
                Self::Unmount(target) => {
                    libc::umount2(target.as_ptr(), MntFlags::MNT_DETACH.bits()) == 0
                }
                Self::Directory { path, mode } => {
                    (libc::mkdir(path.as_ptr(), *mode) == 0
                        || *libc::__errno_location() == libc::EEXIST)
                        && libc::chmod(path.as_ptr(), *mode) == 0
                }
                Self::File { path, content } => write(path, content),
            }
        }
    }

    /// Returns the step in words, for a process that failed at it.
    pub(super) fn step_words(&self) -> String {
        let name = |path: &CString| path.to_string_lossy().into_owned();
        match self {
            Self::Unshare => "making a mount namespace of its own".to_owned(),
            Self::Mount { target, .. } => format!("mounting {}", name(target)),
            Self::Unmount(target) => format!("unmounting {}", name(target)),
            Self::Directory { path, .. } => format!("making {}", name(path)),
            Self::File { path, .. } => format!("writing {}", name(path)),
        }
    }
}

/// Writes a file that everybody may read, with the content `content`; returns whether that succeeded.
#[expect(unsafe_code, reason = "bare system calls are all that is allowed there")]
unsafe fn write(path: &CStr, content: &[u8]) -> bool {
    // SAFETY: a string and bytes that live as long as this, and a descriptor of this function's.
    unsafe {
        let flags =
            libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let file = libc::open(path.as_ptr(), flags, 0o644);
        if file < 0 {
            return false;
        }
        let written = libc::write(file, content.as_ptr().cast(), content.len());
        let allowed = libc::fchmod(file, 0o644) == 0;
        libc::close(file) == 0 && allowed && usize::try_from(written) == Ok(content.len())
    }
}

/// Steps by which a new process makes a task's view of files, carried out one after the other.
#[derive(Debug, Default)]
pub(super) struct JailSteps(pub(super) Vec<JailStep>);

impl JailSteps {
    pub(super) fn add_mount(
        &mut self,
        source: &Path,
        target: &Path,
        kind: Option<&str>,
        flags: MsFlags,
        data: &str,
    ) -> io::Result<()> {
        let text = |text: &str| CString::new(text).map_err(io::Error::other);
        self.0.push(JailStep::Mount {
            source: Some(c_path(source)?),
            target: c_path(target)?,
            kind: kind.map(text).transpose()?,
            flags,
            data: Some(text(data)?),
            may_lack: false,
        });
        Ok(())
    }

    pub(super) fn add_bind(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.add_mount(from, to, None, MsFlags::MS_BIND, "")
    }

    /// Adds a step that mounts `from` over `to`, if both exist.
    pub(super) fn add_cover(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.if_there(from, to, MsFlags::MS_BIND)
    }

    /// Adds a step that makes `path` read-only, if it exists.
    pub(super) fn add_protection(&mut self, path: &Path) -> io::Result<()> {
        self.if_there(path, path, MsFlags::MS_BIND)?;
        self.if_there(path, path, read_only())
    }

    fn if_there(&mut self, from: &Path, to: &Path, flags: MsFlags) -> io::Result<()> {
        let (source, target) = (Some(c_path(from)?), c_path(to)?);
        self.0.push(JailStep::Mount {
            source,
            target,
            kind: None,
            flags,
            data: None,
            may_lack: true,
        });
        Ok(())
    }

    pub(super) fn add_unmount(&mut self, at: &Path) -> io::Result<()> {
        self.0.push(JailStep::Unmount(c_path(at)?));
        Ok(())
    }

    pub(super) fn add_directory(&mut self, path: &Path, mode: libc::mode_t) -> io::Result<()> {
        self.0.push(JailStep::Directory { path: c_path(path)?, mode });
        Ok(())
    }

    pub(super) fn add_file(&mut self, path: &Path, content: impl Into<Vec<u8>>) -> io::Result<()> {
        self.0.push(JailStep::File { path: c_path(path)?, content: content.into() });
        Ok(())
    }

    /// Takes all steps; the error is the number of the step that failed.
    ///
    /// # Safety
    ///
    /// Only in a new process. The first step has to be [`JailStep::Unshare`], or the process has to be in a namespace
    /// that only a task uses.
    #[expect(unsafe_code, reason = "bare system calls are all that is allowed there")]
    pub(super) unsafe fn take_all(&self) -> Result<(), u32> {
        for (number, step) in (0..).zip(&self.0) {
            // SAFETY: as promised by the caller.
            if !unsafe { step.take_step() } {
                return Err(number);
            }
        }
        Ok(())
    }

    /// Returns all steps in words.
    pub(super) fn all_words(&self) -> Vec<String> {
        self.0.iter().map(JailStep::step_words).collect()
    }
}

/// Flags that make a bind mount read-only.
fn read_only() -> MsFlags {
    MsFlags::MS_REMOUNT
        | MsFlags::MS_BIND
        | MsFlags::MS_RDONLY
        | MsFlags::MS_NOSUID
        | MsFlags::MS_NODEV
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}
