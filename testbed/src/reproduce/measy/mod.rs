//! MEASY: "Parallel job scheduling by migration and consolidation", Figures 6 to 14 and what its text
//! says of them.
//!
//! What the paper says in words is a [`Statement`] each, with our figure and whether ours bears
//! it out. Where it does not, every [`Factor`] is changed alone and the statement judged again:
//! the causes that the report gives are what came out of that, and stand nowhere else.

mod batch_means;
mod causes;
mod cell;
mod command;
mod evaluate;
mod factors;
mod figures;
mod page;
mod setting;
mod simulated;
mod statements;
mod table;
mod workloads;

pub use batch_means::{BATCHES, BatchMeans, mean_by_batch};
pub use causes::{Cause, Move};
pub use cell::{Cell, Outcome};
pub use evaluate::{Claim, Evaluation, Options, ReproduceError, Results, evaluate};
pub use factors::{FACTORS, Factor};
pub use figures::Figure;
pub use page::page;
pub use setting::{BackgroundFill, Cost, Draws, Estimates, Room, Setting, Shape, Usage};
pub use statements::{LOADS, Metric, Statement, Under, View, Workloads};
pub use table::short;
pub use workloads::{Source, Workload};
