//! Weighers: scores by which hosts are compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// By what a host is better than others.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Weigher {
    /// Free vCPUs.
    FreeVcpus,
    /// Free memory.
    FreeMemory,
    /// Whether no spot VM has to end (OPIE, Algorithm 3).
    Overcommit,
    /// How few spot VMs there are that can be ended: what the authors' code makes of `overcommit`.
    PreemptibleCount,
    /// How little it would cost to end all of its spot VMs (OPIE, Algorithm 4 as it is written).
    TotalCost,
    /// How little it costs to end the spot VMs that have to: nothing where none has to.
    VictimCost,
}

/// A weigher, and how much it counts beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Weighed")]
pub struct ScaledWeigher {
    /// By what hosts are weighed.
    pub name: Weigher,
    /// How much it counts: of the hosts that are left the best has so much and the worst 0; below 0 it is
    /// the other way round.
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
