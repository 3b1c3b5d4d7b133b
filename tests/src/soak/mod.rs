//! A soak: rounds of every kind, one after the other until the time is over, and after each a check of what was left
//! behind.
//!
//! ```text
//! series      whose turn it is, until the time is over or its user ends it
//!   kind      the programs of a round, and how many cases it had by what they print
//!     drawn   an experiment with faults, drawn from a seed
//!   round     runs them, in a folder of its own, within a limit
//!   remains   what is on the host that nobody looks after
//! standing    a run that is open all the while, and what its processes hold
//!   last_words how a process ended that was not asked to
//! table       the end: a line for each kind, and what was found
//! ```

mod drawn;
mod kind;
mod last_words;
mod programs;
mod remains;
mod round;
mod series;
mod standing;
mod table;
mod vitals;

pub use programs::Programs;
pub use series::{Series, Soaked};
