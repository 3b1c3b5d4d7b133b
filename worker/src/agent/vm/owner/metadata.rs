//! What the programs of a VM are told of it.

use dormouse_proto::v1::Announce;

use super::{Owner, last_saves::save_at};
use crate::agent::vm::{clock::CommandStamp, metadata::VmMetadata};

impl Owner {
    /// The provider announces something to the VM.
    pub(super) fn announced(&mut self, said: &Announce, asked: &CommandStamp) {
        let save_at = save_at(said, asked);
        let notice =
            self.metadata.as_ref().and_then(|metadata| metadata.announce(said, asked, save_at));
        if let Some(notice) = notice {
            self.await_saves(said, asked);
            self.tell_programs(&notice);
        }
    }

    /// A program on the VM is about to be dumped.
    pub(super) fn hang_up(&self) {
        self.metadata.iter().for_each(VmMetadata::hang_up);
    }

    /// The VM is in use again.
    pub(super) fn resumed(&self) {
        self.metadata.iter().for_each(VmMetadata::resumed);
    }

    /// What programs on the VM have in their environment.
    pub(super) fn own_env(&self) -> Vec<(String, String)> {
        self.metadata.as_ref().map_or_else(Vec::new, VmMetadata::own_env)
    }
}
