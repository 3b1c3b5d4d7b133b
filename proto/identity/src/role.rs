//! Roles that somebody may have in a run.

use std::fmt;
use std::str::FromStr;

/// The role that a token gives its bearer. No role includes another, but that an operator may look on, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A process that joins the run and runs its tasks. It may ask nothing else of the run.
    Worker,
    /// Somebody who looks on: status and events.
    Observer,
    /// Somebody who acts on the run: interrupts VMs, submits jobs, closes and cancels.
    Operator,
}

impl Role {
    /// All roles, the one that most bearers have first.
    pub const ALL: [Self; 3] = [Self::Worker, Self::Observer, Self::Operator];

    /// The role's name, as a token and the command line say it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Observer => "observer",
            Self::Operator => "operator",
        }
    }

    /// The name of the file in a run's folder that holds the token of this role.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Worker => "secret",
            Self::Observer => "secret.observer",
            Self::Operator => "secret.operator",
        }
    }

    /// Whether the bearer of this role may do what is `wanted` of that one.
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
