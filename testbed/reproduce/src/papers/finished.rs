//! A finished reproduction: its figures, claims and readings, before they are written.

use super::cause::FactorTrials;
use super::closer::CloserTrial;
use super::input_files::InputFile;
use super::live::LiveRun;
use super::origin::RunOrigin;
use super::paper::{PaperEvaluation, PaperPart};
use super::price_notes::PriceNotes;
use super::readings::PaperReading;
use super::reference::ClaimList;
use super::results::CellResults;

/// All results of a reproduction.
#[derive(Debug)]
pub struct FinishedReproduction {
    /// The paper that is reproduced.
    pub paper: PaperEvaluation,
    /// Reproduced part, such as `burst-hads/table-4`.
    pub what: String,
    /// Command that repeats the reproduction.
    pub command: String,
    /// First and last seed.
    pub seeds: (u64, u64),
    /// Input files of the reproduction.
    pub inputs: Vec<InputFile>,
    /// Program and host that made the reproduction, with its time and memory.
    pub origin: RunOrigin,
    /// Names of the requested parts.
    pub parts: Vec<String>,
    /// Cells, each with the command that makes its figures alone.
    pub cells: Vec<(String, String)>,
    /// Samples of every cell.
    pub results: CellResults,
    /// Our figures and claims, with the presets that were requested.
    pub ours: PaperReading,
    /// Every factor alone, after the experiments without any; empty if none was tried.
    pub trials: Vec<PaperReading>,
    /// Whether the trial without any factor has the runs of our figures, apart from the number of
    /// seeds.
    pub(super) are_trials_ours: bool,
    /// If the trials do not have the same runs as our figures: for each claim a trial of its nearest factor in such
    /// runs, under enough seeds.
    pub(super) closer: Vec<CloserTrial>,
    /// The paper's presets, the text first; in a search, the readings that explain most, ours
    /// first.
    pub read: Vec<PaperReading>,
    /// The best reading of an earlier search, if it is recorded and nothing else is requested.
    pub best: Option<PaperReading>,
    /// Cells that are left out, with the input that they would need.
    pub without: Vec<(String, String)>,
    /// Price records that were used.
    pub price_records: Vec<PriceNotes>,
    /// Live runs of the reproduction's cells.
    pub live: Vec<LiveRun>,
    /// Charts of single runs: names and files.
    pub charts: Vec<(String, String)>,
}

impl FinishedReproduction {
    /// The claims as a list for programs.
    #[must_use]
    pub fn claim_list(&self) -> ClaimList {
        ClaimList::new(self)
    }

    /// Whether readings were searched, instead of making the presets.
    pub(super) fn is_search(&self) -> bool {
        self.is_combination() || self.parts().any(|part| !part.search.is_empty())
    }

    /// Whether every combination of some factors was made.
    pub(super) fn is_combination(&self) -> bool {
        self.parts().any(|part| !part.combine.is_empty())
    }

    /// The trials, for finding causes.
    pub(super) fn as_trials(&self) -> FactorTrials<'_> {
        FactorTrials {
            readings: &self.trials,
            are_ours: self.are_trials_ours,
            closer: &self.closer,
        }
    }

    /// Price records with an oddity.
    pub(super) fn odd_records(&self) -> impl Iterator<Item = &PriceNotes> {
        self.price_records.iter().filter(|record| !record.notes.is_empty())
    }

    /// The paper's parts that were requested.
    pub(super) fn parts(&self) -> impl Iterator<Item = &PaperPart> {
        self.paper.parts.iter().filter(|part| self.parts.contains(&part.name))
    }
}
