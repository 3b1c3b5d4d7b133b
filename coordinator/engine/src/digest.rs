//! A digest of all decisions: equal for equal runs.

use dormouse_cloud::Market;
use dormouse_model::{Decision, PromotionMethod};
use dormouse_units::{Mode, Tier, Time};
use sha2::{Digest, Sha256};

/// SHA-256 of all decisions of a run with their times, in order, without their reasons.
#[derive(Clone, Debug, Default)]
pub struct DecisionDigest {
    sha: Sha256,
    /// Encoded bytes of one decision, reused.
    bytes: Vec<u8>,
}

impl DecisionDigest {
    /// Adds one decision to the digest.
    pub fn add_decision(&mut self, at: Time, decision: &Decision) {
        self.bytes.clear();
        // The length of what follows, once that is known.
        self.add_long(0);
        self.add_long(at.as_micros());
        match decision {
            Decision::Launch { vm, kind, market, bid } => {
                self.add_tag(if bid.is_some() { 9 } else { 0 });
                self.add_number(vm.get());
                self.add_tag(u8::from(*market == Market::OnDemand));
                if let Some(bid) = bid {
                    self.add_long(bid.as_nanos_per_hour());
                }
                self.bytes.extend_from_slice(kind.as_str().as_bytes());
            }
            Decision::Terminate { vm, .. } => {
                self.add_tag(1);
                self.add_number(vm.get());
            }
            Decision::Start { task, on, mode, .. } => {
                self.add_tag(2);
                self.add_number(task.get());
                self.add_number(on.vm.get());
                self.add_tag(u8::from(on.tier == Tier::Background));
                self.add_tag(u8::from(*mode == Mode::Baseline));
                self.add_numbers(&on.cpus);
            }
            Decision::Stop { task, vm, keep } => {
                self.add_tag(3);
                self.add_number(task.get());
                self.add_number(vm.get());
                self.add_tag(u8::from(*keep));
            }
            Decision::Promote { task, vm, by, .. } => {
                let (how, on) = match by {
                    PromotionMethod::Swap => (4, &[][..]),
                    PromotionMethod::Kill { on } => (5, &on[..]),
                    PromotionMethod::Migrate { on } => (6, &on[..]),
                };
                self.add_tag(how);
                self.add_number(task.get());
                self.add_number(vm.get());
                self.add_numbers(on);
            }
            Decision::SetMode { task, vm, mode } => {
                self.add_tag(7);
                self.add_number(task.get());
                self.add_number(vm.get());
                self.add_tag(u8::from(*mode == Mode::Baseline));
            }
            Decision::Checkpoint { task, vm } => {
                self.add_tag(10);
                self.add_number(task.get());
                self.add_number(vm.get());
            }
            Decision::FallBack { task, done } => {
                self.add_tag(13);
                self.add_number(task.get());
                self.add_number(done.get());
            }
            Decision::SetInterruption { vm, hibernates } => {
                self.add_tag(11);
                self.add_number(vm.get());
                self.add_tag(u8::from(*hibernates));
            }
            Decision::SetVcpuUse { vm, used, surplus } => {
                self.add_tag(14);
                self.add_number(vm.get());
                self.add_number(used.get());
                self.add_tag(u8::from(surplus.is_some()));
                self.add_long(surplus.unwrap_or_default().as_nanos_per_hour());
            }
            Decision::Resume { vm } => {
                self.add_tag(12);
                self.add_number(vm.get());
            }
            Decision::Wake { at, token } => {
                self.add_tag(8);
                self.add_long(at.as_micros());
                self.add_long(*token);
            }
        }
        if let Some((length, rest)) = self.bytes.split_first_chunk_mut() {
            *length = (rest.len() as u64).to_le_bytes();
        }
        self.sha.update(&self.bytes);
    }

    fn add_tag(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    fn add_number(&mut self, number: u32) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn add_long(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn add_numbers(&mut self, all: &[u32]) {
        let from = self.bytes.len();
        self.bytes.resize(from + size_of_val(all), 0);
        let (places, _) = self.bytes[from..].as_chunks_mut();
        for (place, number) in places.iter_mut().zip(all) {
            *place = number.to_le_bytes();
        }
    }

    /// Returns the digest of the decisions so far, in hexadecimal.
    #[must_use]
    pub fn to_hex(&self) -> String {
        use std::fmt::Write as _;
        self.sha.clone().finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
