//! Workflows: tasks of which some follow others, from files of HTCondor's DAGMan and of WfCommons.
//!
//! [`Workflow::read`] tells the format by the content. Nothing is opened here: the caller gives the text,
//! and that of the submit files that a DAGMan file names.

mod dagman;
mod read;
mod shape;
mod submit;
mod wfcommons;

pub use read::{Workflow, WorkflowCommand, WorkflowFormat, WorkflowTask};
pub use shape::WorkflowShape;
