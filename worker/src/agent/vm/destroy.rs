//! The end of a VM.

use std::sync::Arc;

use super::owner::Owner;
use crate::agent::{
    destroy::{kill_everything, remove_groups},
    report::{Key, vm_destroyed},
};

impl Owner {
    /// Kills all that runs, whatever is being done to it, and says so; what is left behind is
    /// cleared up after that.
    pub(crate) async fn kill_all(&mut self) {
        self.gate.end();
        self.report_share();
        kill_everything(self.id, &self.groups, &self.gate).await;
        self.host.report(vm_destroyed(self.id));
    }

    /// Takes an attempt out of the books, and its directory away.
    pub(crate) fn clear_up(&mut self, key: Key) {
        if let Some(attempt) = self.remove(key) {
            self.dead.extend(attempt.process.clone());
            self.dead.extend(attempt.born.map(|born| Arc::new(born.process())));
            self.host.release(&attempt.name, key, true);
        }
    }

    /// Nothing is left of it.
    pub(crate) async fn remove_all(&mut self) {
        remove_groups(self.id, &self.groups, std::mem::take(&mut self.dead)).await;
    }
}
