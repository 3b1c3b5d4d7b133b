//! A reproduction that is made: its figures, claims and readings, before they are written anywhere.

use super::cause::Trials;
use super::input_files::InputFile;
use super::live::LiveRun;
use super::origin::RunOrigin;
use super::paper::{Paper, Part};
use super::price_notes::PriceNotes;
use super::readings::Reading;
use super::reference::ClaimList;
use super::results::Results;

/// Everything that came out.
#[derive(Debug)]
pub struct Finished {
    /// The paper that is reproduced.
    pub paper: Paper,
    /// What of it, such as `burst-hads/table-4`.
    pub what: String,
    /// The command that makes the same again.
    pub command: String,
    /// The first and the last seed.
    pub seeds: (u64, u64),
    /// The files that it was made of.
    pub inputs: Vec<InputFile>,
    /// The program and the host that made it, and what that took.
    pub origin: RunOrigin,
    /// The parts that were asked for, by name.
    pub parts: Vec<String>,
    /// The cells, and the command that makes the figures of each by itself.
    pub cells: Vec<(String, String)>,
    /// The samples of every cell.
    pub results: Results,
    /// Every figure and claim, with the presets that were asked for.
    pub ours: Reading,
    /// Every factor alone, the experiments without any first; none, if none was tried.
    pub trials: Vec<Reading>,
    /// Whether the trial without any factor is of the runs that our figures are of, but for the number of seeds.
    pub(super) are_trials_ours: bool,
    /// The paper's presets, the text first; of a search the readings that explain most, ours first.
    pub read: Vec<Reading>,
    /// The best reading that a search found before, where it is recorded and nothing else is asked for.
    pub best: Option<Reading>,
    /// What is left out, and what it needs.
    pub without: Vec<(String, String)>,
    /// The records of prices that it is made of.
    pub price_records: Vec<PriceNotes>,
    /// The live runs.
    pub live: Vec<LiveRun>,
    /// Charts of single runs: their names and files.
    pub charts: Vec<(String, String)>,
}

impl Finished {
    /// The claims as a list for programs.
    #[must_use]
    pub fn claim_list(&self) -> ClaimList {
        ClaimList::new(self)
    }

    /// Whether readings were searched, and not the presets made beside ours.
    pub(super) fn is_search(&self) -> bool {
        self.parts().any(|part| !part.search.is_empty())
    }

    /// The trials, for who looks for a cause.
    pub(super) fn as_trials(&self) -> Trials<'_> {
        Trials { readings: &self.trials, are_ours: self.are_trials_ours }
    }

    /// The records of prices that something is odd about.
    pub(super) fn odd_records(&self) -> impl Iterator<Item = &PriceNotes> {
        self.price_records.iter().filter(|record| !record.notes.is_empty())
    }

    /// The paper's parts that were asked for.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.paper.parts.iter().filter(|part| self.parts.contains(&part.name))
    }
}
