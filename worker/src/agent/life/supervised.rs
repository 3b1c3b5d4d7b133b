//! The VMs of one session, as the session commands them: through the actor that supervises their owners.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::CreateVm;
use ractor::{Actor, ActorCell, ActorRef, rpc::CallResult};
use tokio::task::JoinHandle;

use crate::agent::{
    AgentError, Result,
    machine::LifeContext,
    vm::{CommandStamp, VmCommand},
    vms::{VmSupervisor, VmsMsg},
};

/// The VMs of one session, with the actors that own them.
#[derive(Debug)]
pub struct SupervisedVms {
    supervisor: ActorRef<VmsMsg>,
    ended: JoinHandle<()>,
}

impl SupervisedVms {
    /// Starts the actor that supervises the owners of VMs.
    ///
    /// # Errors
    ///
    /// The actor doesn't start.
    pub async fn begin(context: LifeContext) -> Result<Self> {
        let (supervisor, ended) = Actor::spawn(None, VmSupervisor, Arc::new(context))
            .await
            .map_err(|error| AgentError::Bug { what: error.to_string() })?;
        Ok(Self { supervisor, ended })
    }

    /// Returns the actor that supervises the owners of VMs.
    #[must_use]
    pub fn supervisor(&self) -> ActorCell {
        self.supervisor.get_cell()
    }

    /// Creates a VM.
    ///
    /// # Errors
    ///
    /// The supervisor is gone.
    pub fn create_vm(&self, create: Box<CreateVm>, asked: CommandStamp) -> Result<()> {
        self.tell_supervisor(VmsMsg::Create(create, asked))
    }

    /// Hands a command to a VM, which may not exist.
    ///
    /// # Errors
    ///
    /// The supervisor is gone.
    pub fn ask_vm(&self, vm: u32, ask: VmCommand, asked: CommandStamp) -> Result<()> {
        self.tell_supervisor(VmsMsg::Ask(vm, ask, asked))
    }

    fn tell_supervisor(&self, message: VmsMsg) -> Result<()> {
        self.supervisor.cast(message).map_err(|error| AgentError::Bug { what: error.to_string() })
    }

    /// Waits until the supervisor is gone, which must not happen.
    pub async fn wait_abandoned(&mut self) {
        // Whether it panicked is logged where it did.
        let _ = (&mut self.ended).await;
    }

    /// Destroys all VMs.
    pub async fn destroy_all(&self, patience: Duration) {
        let gone = self.supervisor.call(VmsMsg::DestroyAll, Some(patience)).await;
        if !matches!(gone, Ok(CallResult::Success(()))) {
            // The whole tree is killed and removed next.
            tracing::error!("VMs still exist after {} ms", patience.as_millis());
        }
        self.supervisor.stop(None);
    }
}
