//! What could explain a difference to a paper: one thing changed, and the best of several.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// The reading of a paper that explains most of what it printed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Best {
    /// Names of the reading's factors; `NAME@SCHEDULER` is one for the cells of that scheduler alone.
    pub factors: Vec<String>,
    /// Command whose search found the reading.
    pub command: String,
}

/// One thing changed, that the text leaves open or that ours can't know.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Factor {
    /// Name of the factor.
    pub name: String,
    /// What it changes, in words.
    pub about: String,
    /// What it sets: of which cells, and the settings.
    #[serde(default)]
    pub set: BTreeMap<String, Vec<String>>,
    /// Words in the names of cells that are not of experiments, and the word in the place of each: of which
    /// cells, and the two words.
    #[serde(default)]
    pub words: BTreeMap<String, [String; 2]>,
    /// Figures that it takes another for, of the same runs.
    #[serde(default)]
    pub metrics: BTreeMap<String, String>,
    /// Cells that it takes others for, which are made as well: a pattern, and one that stands for as many.
    #[serde(default)]
    pub cells: BTreeMap<String, String>,
    /// Not a way to read the paper, but what something costs: it explains nothing.
    #[serde(default)]
    pub counterfactual: bool,
    /// Not tried, but for all cells at once on the command line.
    #[serde(default)]
    pub preset: bool,
    /// What speaks for it; without a ground it is no reading of the paper.
    pub ground: Option<Ground>,
    /// To how many changes of the text it comes.
    #[serde(default = "one")]
    pub changes: usize,
    /// Whether one scheduler may have the factor and another not: a search tries it for each by itself.
    #[serde(default)]
    pub each_scheduler: bool,
    /// The only scheduler whose cells have the factor; `None`: all that its patterns name.
    #[serde(skip)]
    pub only: Option<String>,
}

const fn one() -> usize {
    1
}

/// What speaks for reading a paper otherwise; a later one is weaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// The text allows it, or says it elsewhere: it may become the default.
    Text,
    /// Only the authors' code or data have it: the text says otherwise.
    Code,
    /// The value is chosen so that printed counts come out.
    Fitted,
}

impl Ground {
    /// The ground in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Text => "the text",
            Self::Code => "the code",
            Self::Fitted => "fitted",
        }
    }
}

impl Factor {
    /// Whether both can be made at once: they set nothing in common, or not of the same scheduler.
    pub(super) fn goes_with(&self, other: &Self) -> bool {
        let are_apart = self.only.is_some() && other.only.is_some() && self.only != other.only;
        are_apart || self.keys().is_disjoint(&other.keys())
    }

    /// The factor for the cells of one scheduler alone.
    pub(super) fn only_of(&self, scheduler: &str) -> Self {
        let name = format!("{}@{scheduler}", self.name);
        let about = format!("{} (of {scheduler} alone)", self.about);
        Self { name, about, only: Some(scheduler.to_owned()), ..self.clone() }
    }

    fn keys(&self) -> BTreeSet<&str> {
        self.set.values().flatten().filter_map(|set| set.split('=').next()).collect()
    }
}
