//! Tests of the crate's public interface: long sequences of all kinds of changes to a VM.

mod lives;
mod sequences;
