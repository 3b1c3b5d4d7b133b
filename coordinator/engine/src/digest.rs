//! A digest of all decisions: equal for equal runs.

use dormouse_policies::Decision;
use dormouse_units::Time;
use sha2::{Digest, Sha256};

/// SHA-256 over every decision with its time, in order.
#[derive(Clone, Debug, Default)]
pub struct DecisionDigest(Sha256);

impl DecisionDigest {
    /// Takes in one decision.
    pub fn add(&mut self, at: Time, decision: &Decision) {
        // A decision holds only integers and names, so this can't fail.
        let json = serde_json::to_vec(decision).unwrap_or_default();
        self.0.update(at.as_micros().to_le_bytes());
        self.0.update((json.len() as u64).to_le_bytes());
        self.0.update(json);
    }

    /// The digest so far, in hexadecimal.
    #[must_use]
    pub fn hex(&self) -> String {
        use std::fmt::Write as _;
        self.0.clone().finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
