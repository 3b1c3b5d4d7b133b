//! The outcomes of work: how a task or job ended, how many ended in which way, and the words for
//! outcomes. Every text for people about an outcome takes its words from here;
//! `tests/tests/command/outcome_words.rs` refuses them elsewhere.

mod outcome_tally;
pub mod wording;
mod work_outcome;

pub use outcome_tally::OutcomeTally;
pub use work_outcome::ProgramFailure;
pub use work_outcome::WorkOutcome;
