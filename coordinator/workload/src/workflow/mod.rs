//! Workflows: tasks of which some follow others, from files of HTCondor's DAGMan and of WfCommons.
//!
//! [`Workflow::read`] tells the format by the content. Nothing is opened here: the caller gives the text,
//! and that of the submit files that a DAGMan file names.

mod command;
mod dagman;
mod read;
mod shape;
mod submit;
mod wfcommons;

pub use command::WorkflowCommand;
pub use read::{Workflow, WorkflowFormat, WorkflowTask};
pub use shape::WorkflowShape;
