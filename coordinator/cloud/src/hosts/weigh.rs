//! Weighers: scores by which hosts are compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A criterion by which one host is better than another.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Weigher {
    /// A host is better the more free vCPUs it has.
    FreeVcpus,
    /// A host is better the more free memory it has.
    FreeMemory,
    /// A host is better if no spot VM has to be ended on it (OPIE, Algorithm 3).
    Overcommit,
    /// A host is better the fewer spot VMs can be ended on it, as the code of OPIE's authors implements `overcommit`.
    PreemptibleCount,
    /// A host is better the less it would cost to end all of its spot VMs (OPIE, Algorithm 4 as it is written).
    TotalCost,
    /// A host is better the less it costs to end the spot VMs that must leave it to make room: nothing if none must.
    VictimCost,
}

/// A weigher, and how much its score counts beside those of other weighers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Weighed")]
pub struct ScaledWeigher {
    /// The criterion by which hosts are weighed.
    pub name: Weigher,
    /// Factor of the weigher's score: the best of the filtered hosts gets this weight, and the worst gets 0. If the factor is
    /// negative, the worst host is preferred.
    #[serde(default = "one_time")]
    #[schemars(range(min = -1000, max = 1000))]
    pub multiplier: i32,
}

const fn one_time() -> i32 {
    1
}

impl Weigher {
    /// The weigher with multiplier 1.
    #[must_use]
    pub const fn weighed_once(self) -> ScaledWeigher {
        ScaledWeigher { name: self, multiplier: 1 }
    }

    /// True if the score of a host by this weigher depends on the cost of ending VMs.
    pub(super) const fn is_of_costs(self) -> bool {
        matches!(self, Self::TotalCost | Self::VictimCost)
    }
}

/// Number of weighers; a rule names each weigher at most once.
pub(super) const WEIGHERS: usize = 6;

/// Scores of a host in the order of the rule's weighers; higher is better.
pub(super) type Scores = [i64; WEIGHERS];

/// Lowest and highest value of each score over all weighed hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoreRanges {
    least: Scores,
    most: Scores,
}

impl ScoreRanges {
    /// Empty ranges; the first included host sets both ends.
    pub(super) const NONE: Self = Self { least: [i64::MAX; WEIGHERS], most: [i64::MIN; WEIGHERS] };

    /// Includes the scores of a new or changed host.
    pub(super) fn include_scores(&mut self, scores: &Scores) {
        for (n, score) in scores.iter().enumerate() {
            self.least[n] = self.least[n].min(*score);
            self.most[n] = self.most[n].max(*score);
        }
    }

    /// Weight of a host: the sum of its scores, each scaled to 0 for the lowest and 1 for the
    /// highest and multiplied by its multiplier, in steps fine enough to tell all scores apart.
    pub(super) fn weigh_host(&self, weighers: &[ScaledWeigher], scores: &Scores) -> i128 {
        let parts = weighers.iter().enumerate().map(|(n, weighed)| {
            let range = i128::from(self.most[n]) - i128::from(self.least[n]);
            let above = i128::from(scores[n]) - i128::from(self.least[n]);
            let part = if range == 0 { 0 } else { (above << 63) / range };
            part * i128::from(weighed.multiplier)
        });
        parts.sum()
    }
}
