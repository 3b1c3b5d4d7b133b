//! The real programs that tasks run: NAS kernels, GridNPB ED, vector.
//!
//! The binary `dormouse-task` is one single-threaded process (`parallel`: a parent and its
//! ranks) without pipes, sockets or growing files, so that CRIU can dump and restore it at any
//! moment. Every program checks its own answer. The agent that starts it needs two things from this library:
//!
//! * [`progress`]: the page through which a running task says how far it is;
//! * [`result`](mod@result): the file a finished task leaves behind.
//!
//! An experiment chooses with a [`BagProgram`] which of these programs the tasks of its bag run. A task may also run a
//! user's own program: an [`OwnProgram`](own::OwnProgram).
//!
//! [`limits`] says how much data a task may bring along and leave behind.
//!
//! The rest is the program itself: [`cli`] is its command line, `meter` counts work and CPU time, `nas`, `ed`, `vector`
//! and `parallel` compute. The programs of `probe` test a host.

pub mod answer;
pub mod cell_init;
pub mod cli;
pub mod left;
pub mod limits;
pub mod own;
pub mod progress;
pub mod result;
pub mod spot_check;
pub mod supervisor;
pub mod trail;

mod class;
mod clock;
mod digest;
mod ed;
mod meter;
mod nas;
mod parallel;
mod probe;
mod program;
mod quantity;
mod run;
mod signals;
mod vector;

pub use class::ProblemClass;
pub use program::BagProgram;
pub use run::NasKernel;
pub use trail::{TrailSegment, WorkTrail};
