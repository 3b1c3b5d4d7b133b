//! Who owns a worker's tree of control groups: the process that holds the lock on the tree's first group.
//!
//! A PID says nothing about a worker in another container. The kernel's own lock on the group's directory works in
//! every namespace, and ends with its holder, however the holder dies.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

use nix::fcntl::{Flock, FlockArg};

use super::{CgroupError, Result};

/// The lock on a tree's group; dropping it gives the tree up.
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
