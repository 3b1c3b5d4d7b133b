//! The metadata of a VM, which its programs read.

use std::sync::Arc;

use dormouse_metadata::{EndpointSettings, MetadataService, TokenRule, VmAnnouncement};
use dormouse_proto::v1::{Announce, CreateVm, Metadata};
use dormouse_units::Time;

use super::clock::CommandStamp;
use crate::{
    agent::machine::{LifeContext, VmMachine},
    metadata::{Clock, Endpoint, Moment, random_key, read_announcement, vm_facts},
};

/// Metadata of a VM: its endpoint, and the clock that gives the times shown at the endpoint.
#[derive(Debug)]
pub(crate) struct VmMetadata {
    endpoint: Endpoint,
    clock: Clock,
}

impl VmMetadata {
    /// Opens the metadata endpoint of a VM that is being created; `None` if the VM has no endpoint. A VM whose endpoint
    /// can't be opened is created nevertheless.
    pub(super) async fn begin_metadata(
        context: &LifeContext,
        create: &CreateVm,
        asked: &CommandStamp,
        machine: &Arc<dyn VmMachine>,
    ) -> Option<Self> {
        let of = create.metadata.as_ref()?;
        let clock = Clock { speedup: context.speedup, zero_unix_us: of.zero_unix_us };
        match open(&context.run, create, of, clock, asked, machine).await {
            Ok(endpoint) => Some(Self { endpoint, clock }),
            Err(why) => {
                tracing::warn!(vm = create.vm, why, "a VM has no metadata endpoint");
                None
            }
        }
    }

    /// Publishes an announcement of the provider at the endpoint; returns the notice for programs if it is an
    /// interruption, which they may use to save their work until `save_at` on the run's clock.
    pub(super) fn announce_event(
        &self,
        said: &Announce,
        asked: &CommandStamp,
        save_at: Option<Time>,
    ) -> Option<String> {
        let what = read_announcement(said, self.clock, decided_moment(asked))?;
        let is_interruption = matches!(what, VmAnnouncement::Interruption(_));
        self.endpoint.announce_event(what);
        let save_by = save_at.map(|at| self.clock.shown_time(Some(at), decided_moment(asked)));
        is_interruption.then(|| self.endpoint.announced_notice(save_by))?
    }

    /// Publishes an announcement at the endpoint.
    pub(super) fn announce(&self, what: VmAnnouncement) {
        self.endpoint.announce_event(what);
    }

    /// Closes the metadata connections of the VM's programs, one of which is about to be dumped.
    pub(super) fn hang_up(&self) {
        self.endpoint.hang_up();
    }

    /// Withdraws earlier announcements, as the VM is in use again.
    pub(super) fn vm_resumed(&self) {
        self.endpoint.announce_event(VmAnnouncement::Resumed);
    }

    /// Returns environment variables by which programs on the VM find its metadata.
    pub(super) fn own_env(&self) -> Vec<(String, String)> {
        self.endpoint.own_env()
    }
}

async fn open(
    run: &str,
    create: &CreateVm,
    of: &Metadata,
    clock: Clock,
    asked: &CommandStamp,
    machine: &Arc<dyn VmMachine>,
) -> Result<Endpoint, String> {
    let key = random_key().map_err(|error| error.to_string())?;
    let tokens = if of.tokens_required { TokenRule::Required } else { TokenRule::Optional };
    let facts = vm_facts(run, create, of, clock, decided_moment(asked));
    let address = facts.address;
    let service = MetadataService::new(facts, EndpointSettings { tokens }, key);
    let hop_limit = Some(of.hop_limit).filter(|hops| (1..=255).contains(hops));
    Arc::clone(machine).open_endpoint(service, address, hop_limit).await
}

/// Returns when a command was decided, as a time of the metadata endpoint.
fn decided_moment(asked: &CommandStamp) -> Moment {
    Moment::moment_ago(asked.decided_at().elapsed(), asked.at)
}
