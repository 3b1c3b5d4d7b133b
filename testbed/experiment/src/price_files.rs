//! Files of spot prices that a run uses.

use dormouse_units::{Span, Time, TypeName};
use serde::{Deserialize, Serialize};

use super::Experiment;

/// A file with spot prices of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PriceFile {
    /// Instance type of the prices.
    #[serde(rename = "type")]
    pub kind: TypeName,
    /// The file as the experiment names it.
    pub file: String,
    /// Time from the beginning of the run to the last recorded price; if the beginning is drawn,
    /// from the earliest one.
    pub lasts: Span,
    /// Date of the beginning of the run in seconds since 1970; if it is drawn, the earliest. `None`
    /// if the file has no dates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<i64>,
    /// One sentence for each oddity that was corrected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Experiment {
    /// Time of the last recorded price of a file, by the run's clock: that price holds for ever.
    #[must_use]
    pub fn prices_end(&self, file: &PriceFile) -> Time {
        let drawn = self.drawn_prices.recorded.get(&file.kind);
        let start = drawn.map(|drawn| drawn.draw_start(self.setup.seed)).unwrap_or_default();
        Time::ZERO + file.lasts.saturating_sub(start)
    }
}
