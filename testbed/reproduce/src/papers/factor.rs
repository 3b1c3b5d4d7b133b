//! Factors that could explain a difference from a paper, and the best combination of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// The reading of a paper that explains most of its printed statements.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BestReading {
    /// Names of the reading's factors; `NAME@SCHEDULER` is a factor that applies to the cells of that scheduler alone.
    pub factors: Vec<String>,
    /// Command whose search found the reading.
    pub command: String,
}

/// One change to an evaluation that the text leaves open, or that we can't know.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReadingFactor {
    /// Name of the factor.
    pub name: String,
    /// The change that the factor makes, in words.
    pub about: String,
    /// Settings that the factor changes, by pattern of cells.
    #[serde(default)]
    pub set: BTreeMap<String, Vec<String>>,
    /// For cells that are not experiments, by pattern: a word in their names, and its replacement.
    #[serde(default)]
    pub words: BTreeMap<String, [String; 2]>,
    /// For the name of each figure that the factor replaces, the name of the figure of the same runs that is read in its place.
    #[serde(default)]
    pub metrics: BTreeMap<String, String>,
    /// For each pattern of cells that the factor replaces, a pattern of as many cells, which are run and read in their place.
    #[serde(default)]
    pub cells: BTreeMap<String, String>,
    /// True if the factor is not a reading of the paper but shows what something costs: it can't explain a difference.
    #[serde(default)]
    pub counterfactual: bool,
    /// True if the factor is only applied to all cells at once, from the command line; a search never tries it.
    #[serde(default)]
    pub preset: bool,
    /// Evidence for the factor; a factor without evidence (`None`) is not a reading of the paper.
    pub ground: Option<FactorGround>,
    /// Number of changes to the text that the factor counts as.
    #[serde(default = "one")]
    pub changes: usize,
    /// Whether the factor may apply to one scheduler and not to another: a search then tries it for each scheduler
    /// separately.
    #[serde(default)]
    pub each_scheduler: bool,
    /// The only scheduler whose cells have the factor; `None` for all cells of its patterns.
    #[serde(skip)]
    pub only: Option<String>,
}

const fn one() -> usize {
    1
}

/// Evidence for another reading of a paper; later variants are weaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactorGround {
    /// The paper's text allows the factor, or states it elsewhere: it may become the default.
    Text,
    /// Only the authors' code or data support the factor; the paper's text contradicts it.
    Code,
    /// The factor's value is chosen so that printed counts are reproduced.
    Fitted,
}

impl FactorGround {
    /// The kind of evidence in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Text => "the text",
            Self::Code => "the code",
            Self::Fitted => "fitted",
        }
    }
}

impl ReadingFactor {
    /// Whether this factor and `other` can be applied together: they change no common setting of any scheduler's cells.
    pub(super) fn goes_with(&self, other: &Self) -> bool {
        let are_apart = self.only.is_some() && other.only.is_some() && self.only != other.only;
        are_apart || self.keys().is_disjoint(&other.keys())
    }

    /// This factor, limited to the cells of one scheduler.
    pub(super) fn only_of(&self, scheduler: &str) -> Self {
        let name = format!("{}@{scheduler}", self.name);
        let about = format!("{} (of {scheduler} alone)", self.about);
        Self { name, about, only: Some(scheduler.to_owned()), ..self.clone() }
    }

    fn keys(&self) -> BTreeSet<&str> {
        self.set.values().flatten().filter_map(|set| set.split('=').next()).collect()
    }
}
