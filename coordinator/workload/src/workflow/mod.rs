//! Workflows, in which some tasks follow others, from files of HTCondor's DAGMan, WfCommons, Pegasus, Snakemake and
//! Nextflow.
//!
//! [`Workflow::read`] detects the format from the content. No file is opened here: the caller gives the text of the
//! workflow's file, and of the submit files that a DAGMan file names.

mod dagman;
mod dagman_rules;
mod jobs;
mod nextflow;
mod pegasus;
mod read;
mod shape;
mod snakemake;
mod submit;
mod wfcommons;
mod yaml;

pub use read::{NodeRules, Workflow, WorkflowCommand, WorkflowFormat, WorkflowTask};
pub use shape::WorkflowShape;
