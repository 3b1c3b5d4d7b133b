//! Users' own programs that tasks run: from the experiment file to the run.

mod commands;
mod form;
mod handed;
mod inputs;
mod measured;
mod node;
mod programs;
mod said;
mod saved;
mod table;
mod written;

pub use inputs::{Sources, allow_inputs};
pub use measured::{CarriedProgram, MeasureFile, MeasuredProgram, ProgramMeasure, identity};
pub use programs::{OwnTask, OwnTasks, RuntimeSaid};
pub use said::OwnSaid;

pub(crate) use commands::{UnusableCommand, commands};
pub(crate) use form::RuntimeGiven;
pub(crate) use handed::hand_on;
pub(crate) use inputs::{InputFiles, within};
pub(crate) use measured::read_measures;
pub(crate) use programs::CollectedPrograms;
pub(crate) use said::forget_measured;
pub(crate) use written::{OwnWritten, written};
