//! Metadata that the programs of a VM can read.

use dormouse_proto::v1::{Announce, announce::What};

use super::{VmOwner, last_saves::save_at};
use crate::agent::vm::{clock::CommandStamp, metadata::VmMetadata};

impl VmOwner {
    /// Handles an announcement of the provider.
    pub(super) fn announce_event(&mut self, said: &Announce, asked: &CommandStamp) {
        if matches!(said.what, Some(What::Booted(_))) {
            return self.begin_cell();
        }
        if matches!(said.what, Some(What::TerminateAtUs(_) | What::StopAtUs(_))) {
            self.cell_has_notice();
        }
        let save_at = save_at(said, asked);
        let notice = self
            .metadata
            .as_ref()
            .and_then(|metadata| metadata.announce_event(said, asked, save_at));
        if let Some(notice) = notice {
            self.await_saves(said, asked);
            self.tell_programs(&notice);
        }
    }

    /// Closes metadata connections, as a program on the VM is about to be dumped.
    pub(super) fn hang_up(&self) {
        self.metadata.iter().for_each(VmMetadata::hang_up);
    }

    /// Withdraws announcements, as the VM is in use again.
    pub(super) fn vm_resumed(&self) {
        self.metadata.iter().for_each(VmMetadata::vm_resumed);
    }

    /// Returns environment variables for programs on the VM.
    pub(super) fn own_env(&self) -> Vec<(String, String)> {
        self.metadata.as_ref().map_or_else(Vec::new, VmMetadata::own_env)
    }
}
