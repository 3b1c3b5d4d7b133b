//! The file of a log: which part of it is durable, and what a power cut leaves.

use std::fs;
use std::io;
use std::path::Path;

use super::damage::{Damage, tear_tail};
use super::seal_state::SealState;
use crate::death::PowerLoss;
use crate::draw::Draw;
use crate::log_change::LogChange;
use crate::stage::Stage;

/// The file of a log, with its seal.
#[derive(Debug, Default)]
pub(super) struct LogState {
    /// The content of the file that a power cut leaves for certain.
    durable: Vec<u8>,
    /// Changes since the last sync, in order.
    pending: Vec<LogChange>,
    /// Whether anything was ever written to the file: a power cut leaves no garbage in a file that was always empty.
    is_written: bool,
    /// Generation of the coordinator that holds the lock of the log.
    pub(super) lock: Option<u64>,
    pub(super) seal: SealState,
    /// Whether the disk has damaged a sealed part of the log.
    pub(super) is_damaged: bool,
}

impl LogState {
    pub(super) fn is_changed(&mut self, change: LogChange) {
        self.is_written |= matches!(change, LogChange::Written { .. });
        if change == LogChange::Cut(0) {
            self.seal.log_is_emptied();
        }
        self.pending.push(change);
    }

    /// Syncs the file; returns the changes that are durable by that.
    pub(super) fn is_synced(&mut self) -> Vec<LogChange> {
        let synced = std::mem::take(&mut self.pending);
        persist(&mut self.durable, &synced);
        synced
    }

    /// The durable content of the file with these changes made.
    fn with(&self, changes: &[LogChange]) -> Vec<u8> {
        let mut durable = self.durable.clone();
        persist(&mut durable, changes);
        durable
    }

    /// Cuts the power: a part of the unsynced changes is kept, sectors of the rest may be there or be replaced by
    /// others, and garbage may follow.
    pub(super) fn power_cut(
        &mut self,
        path: &Path,
        loss: &PowerLoss,
        chance: &mut Draw,
        stage: &Stage,
    ) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let whole = self.with(&pending);
        let survived = survivors(pending, loss.kept);
        self.durable = self.with(&survived);
        stage.survived(&survived);
        let mut content = self.durable.clone();
        if let Some(rest) = whole.strip_prefix(&content[..])
            && let 1.. = rest.len()
            && chance.one_in(2)
        {
            let mut tail = rest.to_vec();
            tear_tail(&mut tail, content.len(), &whole, chance);
            content.extend(tail);
        }
        self.seal.power_cut(loss.tears_seal, chance);
        let garbage = if self.is_written { loss.garbage } else { 0 };
        content.extend((0..garbage).map(|_| chance.below(256) as u8));
        if loss.tears_log
            && let Some(sealed) = self.seal.covered_bytes()
            && let Some(damage) = Damage::draw(sealed.min(content.len()), chance)
        {
            let mut rotten = content.clone();
            damage.happen(&mut rotten, &content, chance);
            self.is_damaged |= rotten.get(..sealed) != content.get(..sealed);
            content = rotten;
        }
        self.lock = None;
        fs::write(path, &content)?;
        // What stands there now is what the next one finds.
        self.durable = content;
        Ok(())
    }
}

/// Makes these changes to the content of a file.
fn persist(file: &mut Vec<u8>, changes: &[LogChange]) {
    for change in changes {
        match change {
            LogChange::Cut(length) => {
                file.resize(usize::try_from(*length).unwrap_or(usize::MAX), 0);
            }
            LogChange::Written { at, bytes, .. } => {
                let at = usize::try_from(*at).unwrap_or(usize::MAX);
                let end = at + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[at..end].copy_from_slice(bytes);
            }
        }
    }
}

/// The first of these changes, those that a power cut leaves if this part of their bytes (parts per million) is kept.
fn survivors(pending: Vec<LogChange>, kept: u32) -> Vec<LogChange> {
    let size = |change: &LogChange| match change {
        LogChange::Written { bytes, .. } => bytes.len(),
        LogChange::Cut(_) => 1,
    };
    let all: usize = pending.iter().map(size).sum();
    let mut left = all * kept as usize / 1_000_000;
    let mut survived = Vec::new();
    for change in pending {
        if left == 0 {
            break;
        }
        match change {
            LogChange::Written { at, mut bytes, by } => {
                bytes.truncate(left);
                left -= bytes.len();
                survived.push(LogChange::Written { at, bytes, by });
            }
            LogChange::Cut(length) => {
                left -= 1;
                survived.push(LogChange::Cut(length));
            }
        }
    }
    survived
}
