//! Acts of people who look on, on a run: taken to its coordinator.

use std::path::Path;

use dormouse_coordinator::{Remote, RemoteError, address_of};
use dormouse_identity::Role;
use dormouse_proto::v1;
use dormouse_proto::v1::interrupt_request::{Action, Target};
use serde::Deserialize;

use crate::source::token_in;

/// An act of the provider that somebody asks for, as the page and the command say it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interruption {
    /// The act that the provider is asked for.
    pub action: WantedAction,
    /// To which spot VMs.
    pub target: WantedTarget,
    /// Who asks for it or why, for the log.
    #[serde(default)]
    pub why: String,
}

/// The acts that the provider can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WantedAction {
    /// Freeze at once, keep the memory.
    Hibernate,
    /// Thaw what was hibernated.
    Resume,
    /// Give notice, then take.
    Preempt,
    /// Recommend to replace it.
    Rebalance,
}

/// The spot VMs that an act is meant for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WantedTarget {
    /// One VM, by its number.
    Vm(u32),
    /// All of an instance type.
    Type(String),
    /// All of a zone.
    Zone(String),
    /// All that there are.
    All,
}

impl Interruption {
    /// The request to a coordinator.
    #[must_use]
    pub fn request(self) -> v1::InterruptRequest {
        let action = match self.action {
            WantedAction::Hibernate => Action::Hibernate,
            WantedAction::Resume => Action::Resume,
            WantedAction::Preempt => Action::Preempt,
            WantedAction::Rebalance => Action::Rebalance,
        };
        let target = match self.target {
            WantedTarget::Vm(vm) => Target::Vm(vm),
            WantedTarget::Type(kind) => Target::Type(kind),
            WantedTarget::Zone(zone) => Target::Zone(zone),
            WantedTarget::All => Target::All(true),
        };
        v1::InterruptRequest { action: action.into(), target: Some(target), why: self.why }
    }
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeskError {
    /// The run has no coordinator.
    #[error("no coordinator serves the run: it is over, or was stopped")]
    Away,
    /// The coordinator does not answer, or refuses.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

async fn coordinator(folder: &Path) -> Result<Remote, DeskError> {
    let address = address_of(folder)?.ok_or(DeskError::Away)?;
    let token = token_in(folder, Role::Operator).ok_or(DeskError::Away)?;
    Ok(Remote::dial(&address, token).await?)
}

/// Ends the run in this folder before its time.
pub(crate) async fn cancel(folder: &Path, why: String) -> Result<(), DeskError> {
    Ok(coordinator(folder).await?.cancel(why).await?)
}

/// Has the provider act in the run in this folder: when that was, in emulated seconds, and the VMs that it
/// hit.
pub(crate) async fn interrupt(
    folder: &Path,
    wanted: Interruption,
) -> Result<(f64, Vec<u32>), DeskError> {
    let reply = coordinator(folder).await?.interrupt(wanted.request()).await?;
    Ok((reply.emulated_at_us as f64 / 1e6, reply.vms))
}
