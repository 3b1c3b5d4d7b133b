//! `dormouse reproduce measy`: the evaluation of the paper, Figures 6 to 14.
//!
//! # Where ours differs from the text, and the experiment that says why
//!
//! - *REASY beats KEASY at the highest loads; the paper has it last.* With Tsafrir's
//!   estimates, of which the longest allowed is the most popular, EASY can't carry loads
//!   above .8 of the generated workloads: its queue grows to the end of the trace, and so
//!   does what KEASY's kills throw away. The figures `fw-sensitivity`, `jw-sensitivity` and
//!   `kth-sensitivity` repeat the runs with exact estimates: the paper's order comes back.
//! - *Slowdown improves less on FW-like and JW-like, and as in the paper on KTH-SP2.* The
//!   generated run times have fewer very short jobs than real logs, so EASY has less
//!   slowdown to lose at low loads. Their shapes are ours; only their means are the paper's.
//! - *Whether background processes draw their utilisation one by one or a job at once*, which
//!   the text leaves open, changes responses by some percent and no order but REASY's on
//!   FW-like; the sensitivity figures have both.

mod cell;
mod claims;
mod figures;
mod grid;
mod parallel;
mod table;
mod workloads;

pub use cell::{Cell, Outcome, Variant};
pub use figures::Figure;
pub use grid::{Options, ReproduceError, Results, reproduce};
pub use workloads::{Source, Workload};
