//! The files of spot prices that a run is made of.

use dormouse_units::{Span, Time, TypeName};
use serde::{Deserialize, Serialize};

use super::Experiment;

/// A file with the spot prices of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PriceFile {
    /// The instance type whose prices these are.
    #[serde(rename = "type")]
    pub kind: TypeName,
    /// The file, as the experiment names it.
    pub file: String,
    /// How long after the beginning of the run its last price was written down; where the beginning is drawn, after
    /// the earliest.
    pub lasts: Span,
    /// The date at which the run begins, in seconds since 1970; where the beginning is drawn, the earliest. `None`: it
    /// has no dates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<i64>,
    /// What is odd about it and was set right, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Experiment {
    /// The time at which the last price of a file was written down, in the time of the run: that one holds for ever.
    #[must_use]
    pub fn prices_end(&self, file: &PriceFile) -> Time {
        let drawn = self.drawn_prices.recorded.get(&file.kind);
        let start = drawn.map(|drawn| drawn.start(self.setup.seed)).unwrap_or_default();
        Time::ZERO + file.lasts.saturating_sub(start)
    }
}
