//! Reproductions of papers' evaluations, with our figures beside the printed ones: one framework, and a folder for each
//! paper.
//!
//! A paper is a data file: its cells, each an experiment with settings that a command can run
//! alone; the printed values with their tolerances; the claims of its text; and the factors that
//! could explain a difference. Samples, intervals, verdicts, factors, live comparison and files are
//! made here, for bags of tasks and for parallel jobs alike. A new paper is a folder with such a
//! file, a line in [`PAPERS`], and the options of its command.

mod acc;
mod as_printed;
mod bathtub;
mod break_even;
pub mod burst_hads;
mod cause;
mod claim;
mod claims;
mod closer;
mod combined;
mod cost;
mod explained;
mod factor;
mod figures;
mod finished;
mod former;
mod host_load;
mod input_files;
mod live;
mod markdown;
pub mod measy;
pub mod opie;
mod origin;
mod own;
mod own_paper;
mod own_readings;
mod paper;
mod pattern;
mod price_notes;
mod progress;
mod readings;
mod reference;
mod report;
mod reproduction;
mod results;
mod search;
mod tolerance;

pub use dormouse_estimate::Verdict;

pub use as_printed::AsPrinted;
pub use cause::{ClaimCause, LEAST_PAIRS};
pub use claim::{CellCombination, ClaimMeasure, ClaimReading, PaperClaim};
pub use claims::{JudgedClaim, JudgedReading};
pub use cost::{PaperCost, ReproducedPapers};
pub use explained::ExplainedStatements;
pub use factor::{BestReading, FactorGround, ReadingFactor};
pub use figures::{FigureRow, FigureTally, beyond};
pub use finished::FinishedReproduction;
pub use former::FormerJudging;
pub use input_files::InputFile;
pub use live::{LiveRun, MakeLive, VirtualFigure};
pub use markdown::MarkdownTable;
pub use origin::{HostFacts, RunOrigin};
pub use own::FigureSource;
pub use own_paper::read_paper;
pub use paper::{
    FigureTolerance, PaperEvaluation, PaperPart, PaperPlot, PrintedComparison, PrintedTable,
    RefitTable,
};
pub use progress::Progress;
pub use readings::PaperReading;
pub use reference::{CLAIMS, ClaimList, ListedClaim, ListedFigure, ListedFormer, ListedReading};
pub use report::table;
pub use reproduction::ReproductionRequest;
pub use results::CellResults;
pub use tolerance::{QuantityKind, TOLERANCE_RULE};

use crate::sweep::{ReproductionSpec, SweepError};

/// Names of the papers, with their data files.
pub const PAPERS: [(&str, &str); 6] = [
    ("burst-hads", burst_hads::DATA),
    ("measy", measy::DATA),
    ("opie", opie::DATA),
    ("bathtub", bathtub::DATA),
    ("acc", acc::DATA),
    ("combined", combined::DATA),
];

/// Whether the live cells of a part need CRIU; `None` for a whole paper, or a part that is not
/// live.
///
/// # Errors
///
/// There is no such paper or part, or a cell of it can't be loaded.
pub fn live_part_needs_criu(spec: &ReproductionSpec) -> Result<Option<bool>, SweepError> {
    let (paper, Some(part)) = asked(spec)? else { return Ok(None) };
    let mut needs_criu = None;
    for part in paper.parts(Some(&part)).into_iter().filter(|part| part.live) {
        for case in paper.cells_of(part) {
            let needs = paper.cell(&case, &[])?.experiment.needs_criu();
            needs_criu = Some(needs || needs_criu == Some(true));
        }
    }
    Ok(needs_criu)
}

/// The paper of a reproduction, from the user's data file or built in, and the name of the requested part (`None`: the whole
/// paper).
fn asked(spec: &ReproductionSpec) -> Result<(PaperEvaluation, Option<String>), SweepError> {
    match &spec.paper {
        Some(file) => part_of(read_paper(file)?, &spec.what),
        None => named(&spec.what),
    }
}

/// A built-in paper and the name of its part (`None`: the whole paper), from a text such as `burst-hads/table-4`.
///
/// # Errors
///
/// There is no such paper or part.
pub fn named(what: &str) -> Result<(PaperEvaluation, Option<String>), SweepError> {
    let name = what.split('/').next().unwrap_or(what);
    let unknown = |known: Vec<String>| {
        let known = known.join(", ");
        SweepError::BadInput(format!("{what}: there is no such paper or part; give one of {known}"))
    };
    let Some((_, data)) = PAPERS.iter().find(|(known, _)| *known == name) else {
        return Err(unknown(PAPERS.iter().map(|(name, _)| (*name).to_owned()).collect()));
    };
    let paper: PaperEvaluation = toml::from_str(data)
        .map_err(|error| SweepError::BadInput(format!("the data file of {name}: {error}")))?;
    part_of(paper, what)
}

/// The paper, and the name of the part that `what` names after a slash; `None` if `what` names the whole paper.
fn part_of(
    paper: PaperEvaluation,
    what: &str,
) -> Result<(PaperEvaluation, Option<String>), SweepError> {
    let part = what.split_once('/').map(|(_, part)| part.to_owned());
    if part.is_some() && paper.parts(part.as_deref()).is_empty() {
        let known: Vec<String> =
            paper.parts.iter().map(|part| format!("{}/{}", paper.name, part.name)).collect();
        let known = known.join(", ");
        return Err(SweepError::BadInput(format!(
            "{what}: there is no such part; give one of {known}"
        )));
    }
    Ok((paper, part))
}
