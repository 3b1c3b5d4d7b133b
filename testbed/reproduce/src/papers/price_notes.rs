//! Oddities of the price records of a reproduction that were corrected.

use std::collections::{BTreeMap, BTreeSet};

use super::own::CellComputation;
use crate::sweep::SweepCell;

/// Note on a file without prices in a folder of records.
pub(super) const NO_PRICES: &str = "it has no spot prices, and was left out";

/// A price record with its oddities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceNotes {
    /// The file of the record.
    pub file: String,
    /// One sentence for each oddity; empty if there is none.
    pub notes: Vec<String>,
}

/// Notes on the records of these cells and other computations, each file once.
pub(super) fn collect(cells: &[SweepCell], own: &[CellComputation]) -> Vec<PriceNotes> {
    let of_cells = cells.iter().flat_map(|cell| &cell.experiment.price_files);
    let of_cells = of_cells.map(|file| (file.file.clone(), file.notes.clone()));
    // All of them use the same folder.
    let of_own = own.iter().take(1).flat_map(CellComputation::price_notes);
    let mut all = BTreeMap::<String, BTreeSet<String>>::new();
    for (file, notes) in of_cells.chain(of_own) {
        all.entry(file).or_default().extend(notes);
    }
    let of =
        |(file, notes): (_, BTreeSet<_>)| PriceNotes { file, notes: notes.into_iter().collect() };
    all.into_iter().map(of).collect()
}
