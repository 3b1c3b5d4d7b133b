//! The proof that live runs work here: real tasks that are launched, frozen, dumped and restored in
//! real groups, by the code that does it in runs.
//!
//! The proof needs a process of its own, which becomes a worker ([`prove_worker`]).

mod habits;
mod prove;
mod step;
mod subject;

pub use prove::prove_worker;
pub use step::{ProofStep, ProofStepKind, WorkerProof};
