//! Errors of operations on control groups, with the path and the value.

use std::{io, path::PathBuf, time::Duration};

/// The result of a control group operation.
pub type Result<T, E = CgroupError> = std::result::Result<T, E>;

/// A control group operation that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// A group's file could not be read.
    #[error("can't read {}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A group's file did not take a value.
    #[error("can't write \"{value}\" to {}", path.display())]
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The value that the file refused.
        value: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A controller refused a setting made through cgroups-rs.
    #[error("can't set {setting} of {} to {value}", path.display())]
    Setting {
        /// The path of the group.
        path: PathBuf,
        /// The setting that the controller refused, in words.
        setting: &'static str,
        /// The value refused.
        value: String,
        /// The error of cgroups-rs.
        source: Box<cgroups_rs::error::Error>,
    },
    /// A thread could not be given its host cores.
    #[error("can't bind thread {thread} of {} to host cores", path.display())]
    Bind {
        /// The place where the group lists its threads.
        path: PathBuf,
        /// The ID of the thread.
        thread: i32,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A group could not be created.
    #[error("can't create the control group {}; it takes root, and a /sys/fs/cgroup mounted read-write", path.display())]
    Create {
        /// The path of the group.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The lock by which a worker owns a tree of control groups could not be taken.
    #[error("can't lock the control group {}", path.display())]
    Claim {
        /// The tree's first group.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A group could not be removed in time.
    #[error("can't remove the control group {} (after {} ms)", path.display(), after.as_millis())]
    Remove {
        /// The path of the group.
        path: PathBuf,
        /// The time for which the removal was tried.
        after: Duration,
        /// The last error of the kernel.
        source: io::Error,
    },
    /// A group's file has unexpected content.
    #[error("{} holds \"{content}\" instead of {expected}", path.display())]
    Unexpected {
        /// The path of the file.
        path: PathBuf,
        /// The text that is in the file.
        content: String,
        /// Content that the control group's file should have, in words.
        expected: String,
    },
    /// The host lacks a feature or a mount.
    #[error("{what}; {remedy}")]
    Missing {
        /// The feature or mount that is missing, as a clause.
        what: String,
        /// What the user can do about the error.
        remedy: &'static str,
    },
    /// A control group did not reach the wanted state before the deadline.
    #[error("{} did not become {wanted} within {} ms; last state: {last}", path.display(), after.as_millis())]
    Late {
        /// The file or group watched.
        path: PathBuf,
        /// The state that the control group or its file should have reached.
        wanted: &'static str,
        /// The state in which the control group or its file was last seen.
        last: String,
        /// The time for which the state was awaited.
        after: Duration,
    },
    /// The namespaces of a VM's tasks could not be made.
    #[error("a VM has no cell for its tasks")]
    Jail(#[source] crate::jail::JailError),
    /// The VM does not have the requested vCPU.
    #[error("VM group {} has {vcpus} vCPUs, but no vCPU {vcpu}", path.display())]
    NoSuchVcpu {
        /// The VM's group.
        path: PathBuf,
        /// The number of the requested vCPU.
        vcpu: u32,
        /// Number of vCPUs of the VM.
        vcpus: u32,
    },
}
