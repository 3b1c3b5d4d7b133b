//! Roles in a run.

use std::fmt;
use std::str::FromStr;

/// Role of a token's bearer. No role includes another, except that an operator may also observe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A process that joins the run and runs its tasks, and may do nothing else.
    Worker,
    /// A person or program that may read status and events.
    Observer,
    /// A person or program that may act on the run: interrupt VMs, submit jobs, close and cancel.
    Operator,
}

impl Role {
    /// All roles, the most frequent first.
    pub const ALL: [Self; 3] = [Self::Worker, Self::Observer, Self::Operator];

    /// Name of the role in tokens and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Observer => "observer",
            Self::Operator => "operator",
        }
    }

    /// Name of the file in a run's folder with the token of this role.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Worker => "secret",
            Self::Observer => "secret.observer",
            Self::Operator => "secret.operator",
        }
    }

    /// True if this role has the rights of the role `wanted`.
    #[must_use]
    pub fn includes(self, wanted: Self) -> bool {
        self == wanted || (self, wanted) == (Self::Operator, Self::Observer)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|role| role.name() == name);
        known
            .ok_or_else(|| format!("there is no role `{name}`: it is worker, observer or operator"))
    }
}
