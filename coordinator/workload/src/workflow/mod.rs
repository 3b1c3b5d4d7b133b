//! Workflows: tasks of which some follow others, from files of HTCondor's DAGMan, WfCommons, Pegasus,
//! Snakemake and Nextflow.
//!
//! [`Workflow::read`] tells the format by the content. Nothing is opened here: the caller gives the text,
//! and that of the submit files that a DAGMan file names.

mod dagman;
mod nextflow;
mod pegasus;
mod read;
mod shape;
mod snakemake;
mod submit;
mod wfcommons;
mod yaml;

pub use read::{Workflow, WorkflowCommand, WorkflowFormat, WorkflowTask};
pub use shape::WorkflowShape;
