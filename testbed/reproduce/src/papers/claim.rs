//! A claim of a paper, as its data file has it.

use serde::Deserialize;

use super::paper::FigureTolerance;
use super::tolerance::QuantityKind;

/// A statement of a paper's text, which our figures are compared with. If its texts contain `$`, the statement stands for several
/// claims: one for each word of `each`, which replaces `$`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PaperClaim {
    /// The claim in words.
    pub says: String,
    /// The paper's own words; empty if the paper does not state the claim.
    #[serde(default)]
    pub quote: String,
    /// Section, figure or table of the paper that has the quoted words.
    #[serde(default)]
    pub place: String,
    /// Words that replace `#` in the names of cells: the claim is judged for the cells of each word, and holds if it
    /// holds for all.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Other readings of the claim's words, whose results are shown beside that of the claim.
    #[serde(default)]
    pub readings: Vec<ClaimReading>,
    /// The claim's case in `table.csv`.
    pub case: String,
    /// The claim's metric in `table.csv`.
    pub name: String,
    /// Quantity computed from the cells' figures.
    pub measure: ClaimMeasure,
    /// Name of the figure that the claim is about.
    pub metric: String,
    /// For a slope: name of the figure on the horizontal axis; `None` for other claims.
    pub per: Option<String>,
    /// Pattern of the cells that the claim is about.
    pub of: String,
    /// Pattern of the cells with which the cells of the claim are compared; if there are fewer, each is used several times. `None`
    /// if nothing is compared.
    pub than: Option<String>,
    /// How the measures of several cells are combined.
    pub over: CellCombination,
    /// Words that replace `$`, one for each claim.
    #[serde(default)]
    pub each: Vec<String>,
    /// For a claim of a figure: the paper's value, one for each word of `each`.
    #[serde(default)]
    pub figure: Vec<f64>,
    /// Kind of the printed figure, which determines its tolerance; `None` if no figure is printed.
    pub kind: Option<QuantityKind>,
    /// Worth of the last digit of the figure as the paper prints it.
    #[serde(default)]
    pub digit: f64,
    /// Tolerance as a fraction of the printed figure, in place of the tolerance of its kind (`None`); no claim of our papers has
    /// one.
    pub relative: Option<f64>,
    /// Reason for a bound that the paper does not state, or for the choice of the kind.
    #[serde(default)]
    pub because: String,
    /// Number of runs that the figure averages, if it differs from the paper's.
    pub runs: Option<usize>,
    /// Reason why nobody can judge the claim with available data; `None` if it can be judged.
    pub undecidable: Option<String>,
    /// Words on examined causes that are not factors, and on what the examination showed.
    #[serde(default)]
    pub tried: String,
    /// Value above which our figure has to be for the claim to hold; `None` if the claim has no such bound.
    pub above: Option<f64>,
    /// Value below which our figure has to be for the claim to hold; `None` if the claim has no such bound.
    pub below: Option<f64>,
    /// True if the paper does not make the claim: our value is for comparison, and there is no verdict.
    #[serde(default)]
    pub silent: bool,
    /// For a claim whose record is resampled: a word in the cells' names, and the word that replaces it in the names of the cells
    /// with resamples. The interval then covers the spread of the resamples as well as that of the samples.
    #[serde(default)]
    pub resamples: Option<[String; 2]>,
    /// Whether no factor is tried on the claim, because factors change the very word in which its cells differ, so that
    /// the cells would no longer be comparable.
    #[serde(default)]
    pub no_factors: bool,
    /// Whether a ratio is the mean of the ratios of all seeds, as in earlier versions, and not the ratio of the means.
    #[serde(skip)]
    pub ratios_by_seed: bool,
    /// For a break-even: the costs in seconds of the cells, in the order of the cells.
    #[serde(default)]
    pub costs: Vec<f64>,
}

/// Another reading of a claim's words: each field that is given replaces that of the claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClaimReading {
    /// The reading in words.
    pub name: String,
    /// Pattern of the claim's cells; `None` keeps that of the claim.
    pub of: Option<String>,
    /// Pattern of the cells that the claim's cells are compared with; `None` keeps that of the claim.
    pub than: Option<String>,
    /// Name of the claim's figure; `None` keeps that of the claim.
    pub metric: Option<String>,
    /// How the measures of several cells are combined; `None` keeps the way of the claim.
    pub over: Option<CellCombination>,
}

impl PaperClaim {
    /// Tolerance of the claim's figure; `None` if the claim has no figure with a tolerance.
    pub(super) fn tolerance(&self) -> Option<FigureTolerance> {
        let figure = *self.figure.first()?;
        let of_kind = |kind: QuantityKind| kind.tolerance(self.measure, figure, self.digit);
        self.relative.map(FigureTolerance::Relative).or_else(|| self.kind.map(of_kind))
    }

    /// Whether the claim is judged for each of several cells, or for the cells of each word in `groups`: then those that agree are
    /// counted.
    pub(super) fn is_about_each(&self) -> bool {
        self.over == CellCombination::Each || !self.groups.is_empty()
    }

    /// The claim limited to the cells of one word of `groups`: `word` replaces `#` in the names of the claim's cells.
    pub(super) fn of_group(&self, word: &str) -> Self {
        let with = |text: &String| text.replace('#', word);
        let (of, than) = (with(&self.of), self.than.as_ref().map(with));
        Self { of, than, groups: Vec::new(), readings: Vec::new(), ..self.clone() }
    }

    /// Returns the claim with the fields that a reading gives in place of its own.
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

    /// Patterns of all the claim's cells.
    pub(super) fn patterns(&self) -> Vec<String> {
        let plain = std::iter::once(&self.of).chain(&self.than);
        if self.groups.is_empty() {
            return plain.cloned().collect();
        }
        plain.flat_map(|text| self.groups.iter().map(|word| text.replace('#', word))).collect()
    }
}

/// A quantity computed from the figures of the cells `of` and `than` of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimMeasure {
    /// The measure is the figure of the claim's cells `of` itself.
    Value,
    /// The measure is the smallest sample of the claim's cells `of`, for statements about every run.
    Worst,
    /// The measure is the per cent by which the figure of the claim's cells `of` is lower than that of `than`.
    PercentBelow,
    /// The measure is the per cent by which the figure of the claim's cells `of` is higher than that of `than`.
    PercentAbove,
    /// The measure is the figure of the claim's cells `than` minus that of `of`.
    Less,
    /// The measure is the figure of the claim's cells `of` divided by that of `than`.
    Ratio,
    /// Growth of the figure of `of` with each unit of `per`, in per cent of the mean of `than`: the
    /// slope of the least-squares line through the runs.
    Slope,
    /// The measure is the cost from which the figure of the claim's cells `of` is no longer lower than that of `than`.
    BreakEven,
}

impl ClaimMeasure {
    /// Whether the measure divides one figure by another; over several runs, the mean by the mean.
    pub(super) const fn is_ratio(self) -> bool {
        matches!(self, Self::PercentBelow | Self::PercentAbove | Self::Ratio)
    }

    /// Whether the measure is in per cent.
    pub(super) const fn is_percent(self) -> bool {
        matches!(self, Self::PercentBelow | Self::PercentAbove | Self::Slope)
    }

    /// The measure for one value of `of` and one of `than`.
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

/// How the measures of several cells are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellCombination {
    /// A claim about several cells is judged by the mean of the cells' measures.
    Mean,
    /// A claim about several cells is judged by the mean over all samples of all cells.
    Pooled,
    /// A claim about several cells is judged by the largest of the cells' measures.
    Most,
    /// A claim about several cells is judged by the smallest of the cells' measures.
    Least,
    /// A claim about several cells is judged in each cell: it holds only if it holds in all of them.
    Each,
}

impl CellCombination {
    /// Combines the measures of several cells; not for [`Self::Each`], whose cells stay apart.
    #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
    pub(super) fn combine(self, each: &[f64]) -> f64 {
        match self {
            Self::Mean | Self::Pooled | Self::Each => each.iter().sum::<f64>() / each.len() as f64,
            Self::Most => each.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Least => each.iter().copied().fold(f64::INFINITY, f64::min),
        }
    }
}
