//! Receipts of checkpoints, against which workers' reports of stored checkpoints are checked.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::contents::Which;

/// Length of a stored checkpoint, as far as the coordinator knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredLength {
    /// The checkpoint has exactly this many bytes; no contents are stored separately.
    Exactly(u64),
    /// The checkpoint has at least this many bytes, and possibly contents that were sent separately.
    AtLeast(u64),
}

impl StoredLength {
    /// Makes the stored length of a checkpoint: `bytes` bytes without the `contents` files that it refers to. The
    /// length is exact if there are no such files.
    pub(crate) const fn new(bytes: u64, contents: usize) -> Self {
        match contents {
            0 => Self::Exactly(bytes),
            _ => Self::AtLeast(bytes),
        }
    }

    const fn can_be(self, reported: u64) -> bool {
        match self {
            Self::Exactly(bytes) => reported == bytes,
            Self::AtLeast(bytes) => reported >= bytes,
        }
    }

    const fn bytes(self) -> u64 {
        let (Self::Exactly(bytes) | Self::AtLeast(bytes)) = self;
        bytes
    }
}

/// Lengths of all received checkpoints of unfinished tasks; a length stays when its checkpoint is removed.
#[derive(Debug, Default)]
pub(crate) struct CheckpointReceipts {
    table: Mutex<BTreeMap<u32, BTreeMap<Which, StoredLength>>>,
}

impl CheckpointReceipts {
    fn table(&self) -> MutexGuard<'_, BTreeMap<u32, BTreeMap<Which, StoredLength>>> {
        // Every change of it is whole, whoever panicked with it.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the length of a checkpoint before its worker gets the receipt.
    pub(crate) fn note_receipt(&self, task: u32, which: Which, length: StoredLength) {
        self.table().entry(task).or_default().insert(which, length);
    }

    /// Records that a checkpoint was received whose length is unknown; a length that is already recorded stays.
    pub(crate) fn note_unmeasured(&self, task: u32, which: Which) {
        let mut table = self.table();
        table.entry(task).or_default().entry(which).or_insert(StoredLength::AtLeast(0));
    }

    /// Removes the receipts of a task whose checkpoints are no longer needed.
    pub(crate) fn forget_task(&self, task: u32) {
        self.table().remove(&task);
    }

    /// Compares the length of a checkpoint that a worker reports as stored with the received length.
    ///
    /// # Errors
    ///
    /// No such checkpoint was received, or its length differs.
    pub(crate) fn compare_length(
        &self,
        task: u32,
        which: Which,
        reported: Option<u64>,
    ) -> Result<(), String> {
        let known = self.table().get(&task).and_then(|of_task| of_task.get(&which).copied());
        let known = known.ok_or("no part of it was ever stored here")?;
        match reported.filter(|reported| !known.can_be(*reported)) {
            None => Ok(()),
            Some(reported) => Err(format!(
                "it is reported with {reported} bytes, but {} were stored here",
                known.bytes()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_there_once_it_has_come_and_as_long_as_it_came() {
        let receipts = CheckpointReceipts::default();
        let none = receipts.compare_length(7, (1, 1), Some(0)).expect_err("nothing has come");
        assert!(none.contains("no part of it was ever stored"), "{none}");
        receipts.note_receipt(7, (1, 1), StoredLength::new(100, 0));
        receipts.note_receipt(7, (2, 1), StoredLength::new(100, 3));
        receipts.note_unmeasured(7, (1, 1));
        receipts.note_unmeasured(7, (3, 1));
        let compare =
            |number, reported| receipts.compare_length(7, (number, 1), Some(reported)).is_ok();
        let cases = [(1, 100), (1, 99), (1, 101), (2, 99), (2, 101), (3, 0), (4, 100)];
        let are = cases.map(|(number, reported)| compare(number, reported));
        assert_eq!(are, [true, false, false, false, true, true, false]);
        assert_eq!(receipts.compare_length(7, (1, 1), None), Ok(()));
        assert!(receipts.compare_length(7, (1, 2), Some(100)).is_err(), "another attempt's");
        receipts.forget_task(7);
        assert!(!compare(1, 100));
    }
}
