//! The name of a worker's tree: it says which process made it.

use std::{fmt, str::FromStr};

use crate::process::ProcessIdentity;

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
