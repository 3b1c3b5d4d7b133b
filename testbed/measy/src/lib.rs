//! The evaluation of the MEASY paper, and what batch runs leave for other programs.

mod batch_means;
mod jobs_csv;
pub mod reproduce;
mod sharing;

pub use batch_means::{BATCHES, BatchMeans, mean_by_batch};
pub use jobs_csv::JobsCsv;
pub use sharing::{SharingError, SharingFile, read_sharing};
