//! Engines by name, and the commands by which they take jobs.

use std::fmt;
use std::str::FromStr;

/// An engine that runs the shards of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEngine {
    /// Slurm, to which jobs are submitted with `sbatch`.
    Slurm,
    /// HyperQueue, to which jobs are submitted with `hq`.
    HyperQueue,
    /// Kubernetes, to which jobs are submitted with `kubectl`.
    Kubernetes,
    /// No batch system: the shards run as processes on this host.
    Local,
}

impl JobEngine {
    /// All engines that can run the shards of a command.
    pub const ALL: [Self; 4] = [Self::Slurm, Self::HyperQueue, Self::Kubernetes, Self::Local];

    /// Name of the engine on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::HyperQueue => "hq",
            Self::Kubernetes => "kubernetes",
            Self::Local => "local",
        }
    }

    /// The engine's own command and where to get it; `None` if it needs none.
    pub(super) const fn command(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Slurm => Some(("sbatch", "Debian's package slurm-client has it")),
            Self::HyperQueue => Some((
                "hq",
                "it is one file of https://github.com/It4innovations/hyperqueue/releases",
            )),
            Self::Kubernetes => Some(("kubectl", "Debian's package kubernetes-client has it")),
            Self::Local => None,
        }
    }
}

impl fmt::Display for JobEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for JobEngine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        let known = Self::ALL.into_iter().find(|engine| engine.name() == text);
        known.ok_or_else(|| format!("there is no such engine; give one of {names}"))
    }
}
