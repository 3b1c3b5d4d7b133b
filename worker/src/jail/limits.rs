//! Limits of a task beside its VM's memory and processors.

/// The size that a file of a task may grow to, in bytes. The task's directory also counts as memory of its VM.
pub const FILE_BYTES: u64 = 64 << 20;
/// The number of files that a process of a task may have open.
pub const OPEN_FILES: u64 = 1024;
/// Processes and threads that a VM's tasks may have in addition to [`PIDS_PER_VCPU`] for each vCPU; CRIU counts too during a
/// restore.
pub const PIDS: u64 = 64;
/// Processes and threads that a VM's tasks may have for each vCPU of the VM.
pub const PIDS_PER_VCPU: u64 = 64;

/// Limits of a program that differ from program to program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramBounds {
    /// Largest size of a file that the task writes, in bytes.
    pub file_bytes: u64,
    /// Processes and threads that the task may have at once; `None`: as many as the VM may have.
    pub processes: Option<u64>,
}

impl Default for ProgramBounds {
    fn default() -> Self {
        Self { file_bytes: FILE_BYTES, processes: None }
    }
}

impl ProgramBounds {
    /// Returns the limits of a task (getrlimit(2)), soft and hard alike.
    ///
    /// They are limits that CRIU can set again without CAP_SYS_RESOURCE.
    pub(super) fn resource_limits(self) -> [(libc::__rlimit_resource_t, u64); 6] {
        [
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_FSIZE, self.file_bytes),
            (libc::RLIMIT_NOFILE, OPEN_FILES),
            (libc::RLIMIT_MEMLOCK, 0),
            (libc::RLIMIT_MSGQUEUE, 0),
            // Counted for each user, and a task is a user of its own.
            (libc::RLIMIT_NPROC, self.processes.unwrap_or(libc::RLIM_INFINITY)),
        ]
    }
}
