//! A claim of a paper, as its data file says it.

use serde::Deserialize;

use super::paper::Tolerance;
use super::tolerance::QuantityKind;

/// What the text says. With `$` in its texts it is one claim for each of the words in `each`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Claim {
    /// The claim in words.
    pub says: String,
    /// The paper's own words; empty where it is silent.
    #[serde(default)]
    pub quote: String,
    /// The section, figure or table where they stand.
    #[serde(default)]
    pub place: String,
    /// Words for `#` in the cells: the claim is made of the cells of each word, and holds where it holds for all.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Other readings of the same words, which are shown beside.
    #[serde(default)]
    pub readings: Vec<ClaimReading>,
    /// The claim's case in `table.csv`.
    pub case: String,
    /// The claim's metric in `table.csv`.
    pub name: String,
    /// What is measured of the cells.
    pub measure: Measure,
    /// The figure that is looked at.
    pub metric: String,
    /// For a slope: the figure that it grows with.
    pub per: Option<String>,
    /// The cells: a pattern.
    pub of: String,
    /// Those that they are compared with: where they are fewer, each stands for as many of the others.
    pub than: Option<String>,
    /// What is made of the measures of several cells.
    pub over: Over,
    /// The words for `$`.
    #[serde(default)]
    pub each: Vec<String>,
    /// A claim of a figure: the paper's, one for each word.
    #[serde(default)]
    pub figure: Vec<f64>,
    /// Kind of that figure, which its tolerance follows from.
    pub kind: Option<QuantityKind>,
    /// Value of its last printed digit.
    #[serde(default)]
    pub digit: f64,
    /// A tolerance relative to the figure in place of that of its kind; no paper of ours has one.
    pub relative: Option<f64>,
    /// Reason of a bound that the text does not have, or of a kind.
    #[serde(default)]
    pub because: String,
    /// Number of runs whose mean the figure is, if other than the paper's.
    pub runs: Option<usize>,
    /// Reason why nobody can judge it with what is to be had.
    pub undecidable: Option<String>,
    /// Causes that were looked into beside the factors, and what came of it.
    #[serde(default)]
    pub tried: String,
    /// A claim of order: ours is above this.
    pub above: Option<f64>,
    /// A claim of order: ours is below this.
    pub below: Option<f64>,
    /// The paper does not say it: ours is for comparison, and there is no verdict.
    #[serde(default)]
    pub silent: bool,
    /// A word of the cells' names and the word that names, in its place, resamples of the record that they
    /// are of: the interval covers how far these lie apart, beside how far the samples do.
    #[serde(default)]
    pub resamples: Option<[String; 2]>,
    /// Whether no factor is tried on it: its cells differ in the very word that factors change, so that what they compare
    /// would no longer be alike.
    #[serde(default)]
    pub no_factors: bool,
    /// For a break-even: the costs of the cells in seconds, in their order.
    #[serde(default)]
    pub costs: Vec<f64>,
}

/// Another reading of a claim's words: what it takes in place of the claim's.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClaimReading {
    /// The reading in words.
    pub name: String,
    /// The cells that it is made of.
    pub of: Option<String>,
    /// The cells that these are compared with.
    pub than: Option<String>,
    /// The figure that it compares.
    pub metric: Option<String>,
    /// What is made of the measures of several cells.
    pub over: Option<Over>,
}

impl Claim {
    /// The tolerance of the claim's figure; `None` where it has none.
    pub(super) fn tolerance(&self) -> Option<Tolerance> {
        let figure = *self.figure.first()?;
        let of_kind = |kind: QuantityKind| kind.tolerance(self.measure, figure, self.digit);
        self.relative.map(Tolerance::Relative).or_else(|| self.kind.map(of_kind))
    }

    /// Whether it is about each of several cells or groups: what is counted is how many are as it says.
    pub(super) fn is_about_each(&self) -> bool {
        self.over == Over::Each || !self.groups.is_empty()
    }

    /// The claim of one of its groups.
    pub(super) fn of_group(&self, word: &str) -> Self {
        let with = |text: &String| text.replace('#', word);
        let (of, than) = (with(&self.of), self.than.as_ref().map(with));
        Self { of, than, groups: Vec::new(), readings: Vec::new(), ..self.clone() }
    }

    /// The claim under another reading.
    pub(super) fn under(&self, reading: &ClaimReading) -> Self {
        Self {
            of: reading.of.clone().unwrap_or_else(|| self.of.clone()),
            than: reading.than.clone().or_else(|| self.than.clone()),
            metric: reading.metric.clone().unwrap_or_else(|| self.metric.clone()),
            over: reading.over.unwrap_or(self.over),
            readings: Vec::new(),
            ..self.clone()
        }
    }

    /// The patterns of all its cells.
    pub(super) fn patterns(&self) -> Vec<String> {
        let plain = std::iter::once(&self.of).chain(&self.than);
        if self.groups.is_empty() {
            return plain.cloned().collect();
        }
        plain.flat_map(|text| self.groups.iter().map(|word| text.replace('#', word))).collect()
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The figure itself.
    Value,
    /// The smallest of the samples: what is said of every run.
    Worst,
    /// By how many per cent `of` is lower than `than`.
    PercentBelow,
    /// By how many per cent it is higher.
    PercentAbove,
    /// `than` minus `of`.
    Less,
    /// `of` over `than`.
    Ratio,
    /// By how many per cent of the mean of `than` the figure of `of` grows with each one more of `per`: the
    /// line of least squares through the runs.
    Slope,
    /// The cost from which `of` is no longer lower than `than`.
    BreakEven,
}

impl Measure {
    /// Whether it divides one figure by another: of runs, the mean by the mean.
    pub(super) const fn is_ratio(self) -> bool {
        matches!(self, Self::PercentBelow | Self::PercentAbove | Self::Ratio)
    }

    /// The measure, of a value of `of` and one of `than`.
    pub(super) fn value(self, [of, than]: [f64; 2]) -> f64 {
        match self {
            Self::Value | Self::Worst | Self::Slope => of,
            Self::Less => than - of,
            Self::Ratio => of / than,
            Self::PercentAbove => 100.0 * (of / than - 1.0),
            Self::PercentBelow | Self::BreakEven => 100.0 * (1.0 - of / than),
        }
    }
}

/// What is made of several measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The mean of the cells' measures.
    Mean,
    /// The mean of all samples of all.
    Pooled,
    /// The largest of the measures.
    Most,
    /// The smallest of the measures.
    Least,
    /// How many are as the claim says; it takes all.
    Each,
}

impl Over {
    /// The measures of several cells as one; not for [`Self::Each`], whose cells stay apart.
    #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
    pub(super) fn combine(self, each: &[f64]) -> f64 {
        match self {
            Self::Mean | Self::Pooled | Self::Each => each.iter().sum::<f64>() / each.len() as f64,
            Self::Most => each.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Least => each.iter().copied().fold(f64::INFINITY, f64::min),
        }
    }
}
