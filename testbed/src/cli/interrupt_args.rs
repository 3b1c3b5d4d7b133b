//! The arguments of `dormouse interrupt`: an action of the provider, and the VMs that it affects.

use clap::Args;
use dormouse_watch::WantedAction;

use super::args::RunningArgs;

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("target").required(true).args(["vm", "kind", "zone", "all"])))]
pub(crate) struct InterruptArgs {
    #[command(flatten)]
    pub(crate) at: RunningArgs,
    /// What the provider is to do
    #[arg(value_enum)]
    pub(crate) action: ActionArg,
    /// Interrupt one spot VM, by its number
    #[arg(long, value_name = "N", value_parser = vm_number)]
    pub(crate) vm: Option<u32>,
    /// Interrupt all spot VMs of a type
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// Interrupt all spot VMs of a zone
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,
    /// Interrupt all spot VMs
    #[arg(long)]
    pub(crate) all: bool,
    /// Reason, which is written to the log
    #[arg(long)]
    pub(crate) why: Option<String>,
}

/// Actions on spot VMs that a user can request from the provider of a live run.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ActionArg {
    /// Freeze the VMs at once and keep their memory
    Hibernate,
    /// Thaw the VMs that the provider has hibernated
    Resume,
    /// Give notice, then end the VMs for good
    Preempt,
    /// Recommend to replace the VMs
    Rebalance,
}

impl From<ActionArg> for WantedAction {
    fn from(action: ActionArg) -> Self {
        match action {
            ActionArg::Hibernate => Self::Hibernate,
            ActionArg::Resume => Self::Resume,
            ActionArg::Preempt => Self::Preempt,
            ActionArg::Rebalance => Self::Rebalance,
        }
    }
}

/// Parses the number of a VM, with or without `vm` before it.
fn vm_number(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("vm").unwrap_or(text);
    number
        .parse()
        .map_err(|_| "give a VM as the run calls it, such as vm3, or its number".to_owned())
}
