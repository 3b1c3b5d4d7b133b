//! What is odd about the records of prices that a reproduction is made of, and was set right.

use std::collections::{BTreeMap, BTreeSet};

use super::own::Made;
use crate::sweep::Cell;

/// The note of a file in a folder of records that is none.
pub(super) const NO_PRICES: &str = "it has no spot prices, and was left out";

/// A record of prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceNotes {
    /// The file of the record.
    pub file: String,
    /// What is odd about it, a sentence each; none: nothing.
    pub notes: Vec<String>,
}

/// Those of these cells and of what else is made, each file once.
pub(super) fn collect(cells: &[Cell], own: &[Made]) -> Vec<PriceNotes> {
    let of_cells = cells.iter().flat_map(|cell| &cell.experiment.price_files);
    let of_cells = of_cells.map(|file| (file.file.clone(), file.notes.clone()));
    // All of them are made of the same folder.
    let of_own = own.iter().take(1).flat_map(Made::price_notes);
    let mut all = BTreeMap::<String, BTreeSet<String>>::new();
    for (file, notes) in of_cells.chain(of_own) {
        all.entry(file).or_default().extend(notes);
    }
    let of =
        |(file, notes): (_, BTreeSet<_>)| PriceNotes { file, notes: notes.into_iter().collect() };
    all.into_iter().map(of).collect()
}
