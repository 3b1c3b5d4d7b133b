//! A digest of all decisions: equal for equal runs.

use dormouse_cloud::Market;
use dormouse_model::{Decision, Promotion};
use dormouse_units::{Mode, Tier, Time};
use sha2::{Digest, Sha256};

/// SHA-256 over every decision with its time, in order: what is to be done, not why.
#[derive(Clone, Debug, Default)]
pub struct DecisionDigest {
    sha: Sha256,
    /// A decision as bytes.
    bytes: Vec<u8>,
}

impl DecisionDigest {
    /// Takes in one decision.
    pub fn add(&mut self, at: Time, decision: &Decision) {
        self.bytes.clear();
        // The length of what follows, once that is known.
        self.long(0);
        self.long(at.as_micros());
        match decision {
            Decision::Launch { vm, kind, market, bid } => {
                self.tag(if bid.is_some() { 9 } else { 0 });
                self.number(vm.get());
                self.tag(u8::from(*market == Market::OnDemand));
                if let Some(bid) = bid {
                    self.long(bid.as_nanos_per_hour());
                }
                self.bytes.extend_from_slice(kind.as_str().as_bytes());
            }
            Decision::Terminate { vm, .. } => {
                self.tag(1);
                self.number(vm.get());
            }
            Decision::Start { task, on, mode, .. } => {
                self.tag(2);
                self.number(task.get());
                self.number(on.vm.get());
                self.tag(u8::from(on.tier == Tier::Background));
                self.tag(u8::from(*mode == Mode::Baseline));
                self.numbers(&on.cpus);
            }
            Decision::Stop { task, vm, keep } => {
                self.tag(3);
                self.number(task.get());
                self.number(vm.get());
                self.tag(u8::from(*keep));
            }
            Decision::Promote { task, vm, by, .. } => {
                let (how, on) = match by {
                    Promotion::Swap => (4, &[][..]),
                    Promotion::Kill { on } => (5, &on[..]),
                    Promotion::Migrate { on } => (6, &on[..]),
                };
                self.tag(how);
                self.number(task.get());
                self.number(vm.get());
                self.numbers(on);
            }
            Decision::SetMode { task, vm, mode } => {
                self.tag(7);
                self.number(task.get());
                self.number(vm.get());
                self.tag(u8::from(*mode == Mode::Baseline));
            }
            Decision::Checkpoint { task, vm } => {
                self.tag(10);
                self.number(task.get());
                self.number(vm.get());
            }
            Decision::SetInterruption { vm, hibernates } => {
                self.tag(11);
                self.number(vm.get());
                self.tag(u8::from(*hibernates));
            }
            Decision::Resume { vm } => {
                self.tag(12);
                self.number(vm.get());
            }
            Decision::Wake { at, token } => {
                self.tag(8);
                self.long(at.as_micros());
                self.long(*token);
            }
        }
        if let Some((length, rest)) = self.bytes.split_first_chunk_mut() {
            *length = (rest.len() as u64).to_le_bytes();
        }
        self.sha.update(&self.bytes);
    }

    fn tag(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    fn number(&mut self, number: u32) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn long(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn numbers(&mut self, all: &[u32]) {
        let from = self.bytes.len();
        self.bytes.resize(from + size_of_val(all), 0);
        let (places, _) = self.bytes[from..].as_chunks_mut();
        for (place, number) in places.iter_mut().zip(all) {
            *place = number.to_le_bytes();
        }
    }

    /// The digest so far, in hexadecimal.
    #[must_use]
    pub fn hex(&self) -> String {
        use std::fmt::Write as _;
        self.sha.clone().finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
