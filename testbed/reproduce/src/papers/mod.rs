//! Papers' evaluations made again, ours beside theirs: one framework, and a folder for each paper.
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
mod combined;
mod explained;
mod factor;
mod figures;
mod finished;
mod host_load;
mod input_files;
mod live;
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
pub use cause::{Cause, LEAST_PAIRS};
pub use claim::{Claim, ClaimReading, Measure, Over};
pub use claims::{Judged, JudgedReading};
pub use explained::Explained;
pub use factor::{Best, Factor, Ground};
pub use figures::{Row, Tally, beyond};
pub use finished::Finished;
pub use input_files::InputFile;
pub use live::{Against, LiveRun, MakeLive};
pub use origin::{HostFacts, RunOrigin};
pub use own::Own;
pub use own_paper::read_paper;
pub use paper::{Compared, Paper, Part, Plot, Printed, Refit, Tolerance};
pub use progress::Progress;
pub use readings::Reading;
pub use reference::{CLAIMS, ClaimList, ListedClaim, ListedFigure};
pub use report::table;
pub use reproduction::Request;
pub use results::Results;
pub use tolerance::{QuantityKind, TOLERANCE_RULE};

use crate::sweep::{Reproduction, SweepError};

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
pub fn live_part_needs_criu(spec: &Reproduction) -> Result<Option<bool>, SweepError> {
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

/// The paper and the part of a reproduction: from the user's data file, or built in.
fn asked(spec: &Reproduction) -> Result<(Paper, Option<String>), SweepError> {
    match &spec.paper {
        Some(file) => part_of(read_paper(file)?, &spec.what),
        None => named(&spec.what),
    }
}

/// A paper and its part by name, such as `burst-hads/table-4`.
///
/// # Errors
///
/// There is no such paper or part.
pub fn named(what: &str) -> Result<(Paper, Option<String>), SweepError> {
    let name = what.split('/').next().unwrap_or(what);
    let unknown = |known: Vec<String>| {
        let known = known.join(", ");
        SweepError::BadInput(format!("{what}: there is no such paper or part; give one of {known}"))
    };
    let Some((_, data)) = PAPERS.iter().find(|(known, _)| *known == name) else {
        return Err(unknown(PAPERS.iter().map(|(name, _)| (*name).to_owned()).collect()));
    };
    let paper: Paper = toml::from_str(data)
        .map_err(|error| SweepError::BadInput(format!("the data file of {name}: {error}")))?;
    part_of(paper, what)
}

/// The paper, and the part of it that `what` names after a slash.
fn part_of(paper: Paper, what: &str) -> Result<(Paper, Option<String>), SweepError> {
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
