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

/// A finished reproduction: all results of a paper or of some of its parts.
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
    /// Names of the factors of the paper's default reading that the cells have, whatever else is requested.
    pub default: Vec<String>,
    /// Cells, each with the command that makes its figures alone.
    pub cells: Vec<(String, String)>,
    /// Samples of every cell.
    pub results: CellResults,
    /// Our figures and claims, with the presets that were requested.
    pub ours: PaperReading,
    /// Readings with one factor each, after the reading without any factor; empty if no factor was tried.
    pub trials: Vec<PaperReading>,
    /// Settings in which the runs of the trials and of the best reading differ from those of our figures, such as
    /// `workload.jobs=3000`; empty if only the number of seeds may differ.
    pub(super) trial_set: String,
    /// If the trials do not have the same runs as our figures: for each claim a trial of its nearest factor in the same runs as our
    /// figures, under enough seeds.
    pub(super) closer: Vec<CloserTrial>,
    /// Readings by the paper's presets, the one that follows the text first; in a search, the readings that explain most, our
    /// default one first.
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

    /// The trials of single factors, from which the causes of claims that do not hold are found.
    pub(super) fn as_trials(&self) -> FactorTrials<'_> {
        FactorTrials {
            readings: &self.trials,
            are_ours: self.trial_set.is_empty(),
            closer: &self.closer,
        }
    }

    /// Price records with an oddity.
    pub(super) fn odd_records(&self) -> impl Iterator<Item = &PriceNotes> {
        self.price_records.iter().filter(|record| !record.notes.is_empty())
    }

    /// Names of the requested parts that were made under fewer seeds than the others, each with its number of seeds.
    pub(super) fn under_fewer_seeds(&self) -> Vec<(&str, u64)> {
        let (first, last) = self.seeds;
        let seeds = last.saturating_sub(first).saturating_add(1);
        let part = self.what.split_once('/').map(|(_, part)| part);
        self.paper.parts_under_fewer_seeds(part, seeds)
    }

    /// The paper's parts that were requested.
    pub(super) fn parts(&self) -> impl Iterator<Item = &PaperPart> {
        self.paper.parts.iter().filter(|part| self.parts.contains(&part.name))
    }
}
