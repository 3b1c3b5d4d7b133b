//! Live runs, with workers that only say what they are told to say.

mod contents;
mod jobs;
mod joining;
mod observing;
mod order;
mod restores;
mod thinking;
mod versions;
