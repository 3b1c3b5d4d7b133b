//! Logs of parallel jobs: the Standard Workload Format, version 2.2 (Chapin et al. 1999; Parallel Workloads Archive),
//! in which `;` begins comments with `; Name: value` directives and a job is eighteen numbers a line; workloads of
//! Batsim; output of Slurm's `sacct`; accounting files of PBS, LSF and Grid Engine; histories of HTCondor; traces of
//! Philly, Helios and Alibaba.

mod accounting;
mod accounting_record;
mod batsim;
mod clusters;
mod condor;
mod convert;
mod detect;
mod error;
mod format;
mod header;
mod job;
mod listing;
mod lsf;
mod pbs;
mod philly;
mod problem;
mod reader;
mod rules;
mod sacct;
mod sge;
mod skipped;
mod trace;
mod writer;

pub use convert::{BatsimWriter, CsvWriter};
pub use error::SwfError;
pub use format::JobsFormat;
pub use header::Header;
pub use job::{Separator, SwfJob};
pub use problem::LineProblem;
pub use reader::SwfReader;
pub use rules::{
    ExtraFields, FollowUps, Fractions, JobSize, LogPriority, LogRules, NoEstimate, OddJobs,
    OnMalformed, PartialExecutions, RanOver, Repeated,
};
pub use skipped::{FirstMalformed, LogForm, Skipped};
pub use trace::Trace;
pub use writer::SwfWriter;
