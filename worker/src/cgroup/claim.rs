//! Who owns a worker's tree of control groups: the process that holds the lock on the tree's first group, and which the
//! tree's name names. A PID says nothing about a worker in another container. The kernel's own lock on the group's
//! directory works in every namespace, and ends with its holder, however the holder dies.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;
use std::{fmt, fs, io};

use nix::fcntl::{Flock, FlockArg};

use super::{CgroupError, Result};
use crate::process::ProcessIdentity;

/// Lock on the first control group of a worker's tree, held by the tree's owner; dropping the lock gives the tree up.
#[derive(Debug)]
pub(crate) struct TreeClaim {
    _lock: Option<Flock<File>>,
}

impl TreeClaim {
    /// Claims the tree whose first group `create` creates at `path`. Waits for a sweep that took the new group for an
    /// abandoned one, and then creates the group again.
    pub(crate) fn claim_tree(path: &Path, create: impl Fn() -> Result<()>) -> Result<Self> {
        loop {
            create()?;
            let fail = |source| CgroupError::Claim { path: path.to_owned(), source };
            let group = match File::open(path) {
                Ok(group) => group,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(fail(e)),
            };
            let inode = group.metadata().map_err(fail)?.ino();
            let lock =
                Flock::lock(group, FlockArg::LockExclusive).map_err(|(_, e)| fail(e.into()))?;
            if fs::metadata(path).is_ok_and(|now| now.ino() == inode) {
                return Ok(Self { _lock: Some(lock) });
            }
        }
    }

    /// Claims the tree with its first group at `path`; `None` if a process owns the tree.
    pub(crate) fn of_abandoned(path: &Path) -> Result<Option<Self>> {
        let fail = |source| CgroupError::Claim { path: path.to_owned(), source };
        let group = match File::open(path) {
            Ok(group) => group,
            // A tree is claimed by its first group before it has others: this is the rest of one.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(Self { _lock: None }));
            }
            Err(e) => return Err(fail(e)),
        };
        match Flock::lock(group, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(Self { _lock: Some(lock) })),
            Err((_, nix::Error::EWOULDBLOCK)) => Ok(None),
            Err((_, e)) => Err(fail(e.into())),
        }
    }
}

const PREFIX: &str = "dormouse-";

/// Name of a worker's tree, unique by its owner: `dormouse-<pidns>-<pid>-<start>`.
///
/// Whether the owner lives is known by the lock on the tree, and not by the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceName {
    /// Inode of the owner's PID namespace.
    pub pid_namespace: u64,
    /// The process that owns the tree.
    pub owner: ProcessIdentity,
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProcessIdentity { pid, start_ticks } = self.owner;
        write!(f, "{PREFIX}{}-{pid}-{start_ticks}", self.pid_namespace)
    }
}

impl FromStr for InstanceName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.strip_prefix(PREFIX).ok_or(())?.splitn(3, '-');
        let mut number = || parts.next().ok_or(())?.parse::<u64>().map_err(|_| ());
        let pid_namespace = number()?;
        let pid = i32::try_from(number()?).map_err(|_| ())?;
        let start_ticks = number()?;
        Ok(Self { pid_namespace, owner: ProcessIdentity { pid, start_ticks } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back() {
        let name = InstanceName {
            pid_namespace: 4_026_531_836,
            owner: ProcessIdentity { pid: 17, start_ticks: 991 },
        };
        assert_eq!(name.to_string(), "dormouse-4026531836-17-991");
        assert_eq!(name.to_string().parse(), Ok(name));
        for other in
            ["dormouse-init", "dormouse-1-2", "docker-1-2-3", "dormouse-1-2-3-4", "dormouse-1--2-3"]
        {
            assert_eq!(other.parse::<InstanceName>(), Err(()), "{other}");
        }
    }
}
