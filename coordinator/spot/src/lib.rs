//! Simulation of one divisible job on a spot instance with a changing price, under several
//! checkpointing schemes (ACC paper), and advice on the bid and the type.

mod advice;
mod job;
mod record;
#[cfg(test)]
mod tests;

pub use advice::{
    SchemeAdvice, TypeAdvice, best_type, expected_execution, lowest_bid, type_advice,
};
pub use job::{Outcome, SpotJob, SpotScheme};
pub use job::{UnkeptWork, before_hour_ends};
pub use record::{HOUR, SpotRecord};
