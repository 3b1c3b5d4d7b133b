//! The end of a VM.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{
    attempt::Attempt,
    owner::{Message, Owner},
};
use crate::agent::{
    destroy::{kill_everything, remove_groups},
    report::{Key, vm_destroyed},
};

impl Owner {
    /// Kills all that runs, whatever is being done to it, and says so; what is left behind is
    /// cleared up after that.
    pub(crate) async fn destroy(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) {
        self.gate.end();
        self.report_share();
        kill_everything(self.id, &self.groups, &self.gate).await;
        self.host.report(vm_destroyed(self.id));
        let mut processes: Vec<_> =
            self.attempts.iter().filter_map(|a| a.process.clone()).collect();
        let mut launched = std::mem::take(&mut self.held);
        // The threads at work on it come to their ends, since there is nothing left to work on.
        while self.attempts.iter().any(Attempt::is_busy) {
            let key = match launched.pop() {
                Some((key, result)) => {
                    processes.extend(result.ok().map(|born| Arc::new(born.process())));
                    key
                }
                None => match inbox.recv().await {
                    Some(Message::Launched(key, result)) => {
                        launched.push((key, result));
                        continue;
                    }
                    Some(Message::Dumped(key, _) | Message::Left(key, _)) => key,
                    Some(_) => continue,
                    None => break,
                },
            };
            self.clear_up(key);
        }
        for key in self.attempts.iter().map(|a| a.key).collect::<Vec<_>>() {
            self.clear_up(key);
        }
        remove_groups(self.id, &self.groups, processes).await;
    }

    /// Takes an attempt out of the books, and its directory away.
    fn clear_up(&mut self, key: Key) {
        if let Some(attempt) = self.remove(key) {
            self.host.release(&attempt.name, key, true);
        }
    }
}
