//! Live runs, with workers that a test controls.

mod contents;
mod jobs;
mod joining;
mod observing;
mod order;
mod restores;
mod thinking;
mod versions;
