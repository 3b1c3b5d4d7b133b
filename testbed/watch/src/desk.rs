//! Acts that watching people request, sent to the run's coordinator.

use std::path::Path;

use dormouse_coordinator::{RemoteCoordinator, RemoteError, address_of};
use dormouse_identity::Role;
use dormouse_proto::v1;
use dormouse_proto::v1::interrupt_request::{Action, Target};
use serde::Deserialize;

use crate::source::token_in;

/// A request for an act of the provider, as the page and the command line send it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptionRequest {
    /// Kind of the provider's act.
    pub action: WantedAction,
    /// Spot VMs that the act aims at.
    pub target: WantedTarget,
    /// Author or reason of the request, for the log.
    #[serde(default)]
    pub why: String,
}

/// Acts that can be requested of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WantedAction {
    /// The provider freezes the VM at once and keeps its memory.
    Hibernate,
    /// The provider thaws hibernated VMs.
    Resume,
    /// The provider gives notice, then preempts the VM.
    Preempt,
    /// The provider recommends to replace the VM.
    Rebalance,
}

/// Spot VMs that an act aims at.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WantedTarget {
    /// The act aims at the VM with this number.
    Vm(u32),
    /// The act aims at all spot VMs of an instance type.
    Type(String),
    /// The act aims at all spot VMs of a zone.
    Zone(String),
    /// The act aims at all spot VMs.
    All,
}

impl InterruptionRequest {
    /// Converts the request into the message to the coordinator.
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

/// Why something that a user asked for on the live page, such as an interruption, was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeskError {
    /// The run has no coordinator.
    #[error("no coordinator serves the run: it is over, or was stopped")]
    Away,
    /// The coordinator does not answer, or refuses.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

async fn connect_coordinator(folder: &Path) -> Result<RemoteCoordinator, DeskError> {
    let address = address_of(folder)?.ok_or(DeskError::Away)?;
    let token = token_in(folder, Role::Operator).ok_or(DeskError::Away)?;
    Ok(RemoteCoordinator::dial_coordinator(&address, token).await?)
}

/// Ends the run in this folder before its time.
pub(crate) async fn cancel(folder: &Path, why: String) -> Result<(), DeskError> {
    Ok(connect_coordinator(folder).await?.cancel_run(why).await?)
}

/// Requests an act of the provider in the run in this folder; returns its time in emulated seconds
/// and the VMs that it hit.
pub(crate) async fn interrupt(
    folder: &Path,
    wanted: InterruptionRequest,
) -> Result<(f64, Vec<u32>), DeskError> {
    let reply = connect_coordinator(folder).await?.interrupt_vms(wanted.request()).await?;
    Ok((reply.emulated_at_us as f64 / 1e6, reply.vms))
}
