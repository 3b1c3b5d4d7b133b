//! The seal of a log: the content of its file, and what a power cut leaves of that.

use std::collections::VecDeque;

use dormouse_log::Seal;

use super::damage::Damage;
use crate::draw::Draw;

/// Number of older seals that a disk which loses a write may leave in place of the last one.
const FORMER: usize = 4;

/// The seal of a log; it is written to its real file only when somebody may read it there.
#[derive(Debug, Default)]
pub(super) struct SealState {
    /// The content that a reader of the seal finds.
    content: Option<Vec<u8>>,
    draft: Option<Draft>,
    /// The draft that was renamed to the seal, as long as that name is not durable.
    renamed: Option<Draft>,
    /// The seal that a power cut leaves, unless it leaves `renamed`.
    durable: Option<Vec<u8>>,
    /// Earlier seals that were durable, since the log was emptied.
    former: VecDeque<Vec<u8>>,
    /// Whether the disk has damaged the seal after it was durable.
    is_damaged: bool,
}

#[derive(Clone, Debug)]
struct Draft {
    content: Vec<u8>,
    is_synced: bool,
}

impl SealState {
    pub(super) fn content(&self) -> Option<&[u8]> {
        self.content.as_deref()
    }

    /// Number of bytes of the log that the seal covers; `None` if the seal is not whole.
    pub(super) fn covered_bytes(&self) -> Option<usize> {
        let seal: Seal =
            serde_json::from_slice(self.content()?).ok().filter(|_| !self.is_damaged)?;
        usize::try_from(seal.log.bytes).ok()
    }

    pub(super) const fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    pub(super) fn draft_is_written(&mut self, text: &str) {
        self.draft = Some(Draft { content: text.as_bytes().to_vec(), is_synced: false });
    }

    pub(super) fn draft_is_synced(&mut self) {
        if let Some(draft) = &mut self.draft {
            draft.is_synced = true;
        }
    }

    /// Notes that the draft was renamed to the seal.
    pub(super) fn is_renamed(&mut self) {
        if let Some(draft) = self.draft.take() {
            self.content = Some(draft.content.clone());
            self.renamed = Some(draft);
        }
    }

    /// Notes that the folder was synced: the seal's name is durable, and so is the seal if its draft was synced.
    pub(super) fn folder_is_synced(&mut self) {
        match self.renamed.take() {
            Some(draft) if draft.is_synced => {
                self.former.extend(self.durable.replace(draft.content));
                while self.former.len() > FORMER {
                    self.former.pop_front();
                }
                self.is_damaged = false;
            }
            unsynced => self.renamed = unsynced,
        }
    }

    /// Notes that the log was emptied: no earlier seal covers its lines.
    pub(super) fn log_is_emptied(&mut self) {
        self.former.clear();
    }

    /// Notes that the run's user had the seal made again, with this content.
    pub(super) fn is_made_anew(&mut self, content: Vec<u8>) {
        *self = Self { content: Some(content.clone()), durable: Some(content), ..Self::default() };
    }

    /// Cuts the power. A seal whose name is not durable may be there or not, and is torn if its draft was not synced.
    /// If `tears` is set, even a durable seal is damaged, gone or replaced by an older one.
    pub(super) fn power_cut(&mut self, tears: bool, chance: &mut Draw) {
        self.draft = None;
        if let Some(Draft { mut content, is_synced }) = self.renamed.take()
            && chance.one_in(2)
        {
            if !is_synced && let Some(damage) = Damage::draw(content.len(), chance) {
                damage.happen(&mut content, b"", chance);
            }
            self.durable = Some(content);
        }
        if tears && let Some(mut content) = self.durable.take() {
            let former = self.former.len();
            match chance.below(8) {
                0 => self.is_damaged = true,
                1 | 2 if former > 0 => {
                    let which = chance.below(u32::try_from(former).unwrap_or(1)) as usize;
                    self.durable = self.former.get(which).cloned();
                }
                _ => {
                    if let Some(damage) = Damage::draw(content.len(), chance) {
                        damage.happen(&mut content, b"\0", chance);
                    }
                    self.is_damaged = true;
                    self.durable = Some(content);
                }
            }
        }
        self.content.clone_from(&self.durable);
        self.former.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(seal: &mut SealState, text: &str, syncs_draft: bool) {
        seal.draft_is_written(text);
        if syncs_draft {
            seal.draft_is_synced();
        }
        seal.is_renamed();
        seal.folder_is_synced();
    }

    /// The contents that power cuts can leave of a seal that replaces another one.
    fn after_cuts(syncs_draft: bool, tears: bool) -> std::collections::BTreeSet<Option<Vec<u8>>> {
        let mut chance = Draw::new(1, "test", 1);
        let cut = |_| {
            let mut seal = SealState::default();
            sealed(&mut seal, "first", true);
            sealed(&mut seal, "second", syncs_draft);
            seal.power_cut(tears, &mut chance);
            seal.content().map(<[u8]>::to_vec)
        };
        (0..500).map(cut).collect()
    }

    #[test]
    fn a_seal_that_is_synced_before_its_rename_and_after_outlives_a_power_cut() {
        assert_eq!(after_cuts(true, false), [Some(b"second".to_vec())].into());
        let torn = after_cuts(false, false);
        assert!(torn.contains(&Some(b"first".to_vec())) && torn.contains(&Some(b"sec".to_vec())));
        let by_a_liar = after_cuts(true, true);
        assert!(by_a_liar.contains(&None) && by_a_liar.contains(&Some(b"first".to_vec())));
    }

    #[test]
    fn a_seal_whose_name_is_not_durable_may_be_the_former_one() {
        let mut seal = SealState::default();
        sealed(&mut seal, "first", true);
        seal.draft_is_written("second");
        seal.draft_is_synced();
        let mut chance = Draw::new(1, "test", 1);
        seal.power_cut(false, &mut chance);
        assert_eq!(seal.content(), Some(&b"first"[..]), "it was never renamed");
    }
}
