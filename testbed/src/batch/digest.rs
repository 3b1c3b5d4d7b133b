//! One number for all decisions of a run: equal for equal runs.

use dormouse_batch::{Decision, Move, Tier};
use dormouse_units::Time;
use sha2::{Digest as _, Sha256};

/// A digest of decisions in their order.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    sha: Sha256,
    /// A decision as bytes.
    bytes: Vec<u8>,
}

impl Digest {
    /// Adds a decision.
    pub fn add(&mut self, now: Time, decision: &Decision) {
        let (what, attempt, on) = match decision {
            Decision::Start { attempt, tier, on, .. } => {
                (if *tier == Tier::Foreground { 0 } else { 1 }, attempt, &on[..])
            }
            Decision::Promote { attempt, by, .. } => match by {
                Move::Swap => (2, attempt, &[][..]),
                Move::Kill { on } => (3, attempt, &on[..]),
                Move::Migrate { on } => (4, attempt, &on[..]),
            },
        };
        let bytes = &mut self.bytes;
        bytes.clear();
        bytes.extend_from_slice(&now.as_micros().to_le_bytes());
        bytes.extend_from_slice(&decision.job().get().to_le_bytes());
        bytes.push(what);
        bytes.extend_from_slice(&attempt.get().to_le_bytes());
        for p in on {
            bytes.extend_from_slice(&p.to_le_bytes());
        }
        self.sha.update(bytes);
    }

    /// As `summary.json` has it.
    #[must_use]
    pub fn hex(self) -> String {
        self.sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
