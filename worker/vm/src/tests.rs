//! The crate as whoever uses it has it: long sequences of whatever may be done to a VM.

mod lives;
mod sequences;
