//! One divisible job on a spot instance whose price changes: what checkpointing schemes make of a
//! record of prices (ACC paper), and which bid and type to take.

mod advice;
mod job;
mod next;
mod record;
#[cfg(test)]
mod tests;
mod uptimes;

pub use advice::{
    SchemeAdvice, TypeAdvice, best_type, expected_execution, lowest_bid, type_advice,
};
pub use job::{Outcome, SpotJob, SpotScheme};
pub use next::{Unkept, before_hour_ends};
pub use record::{HOUR, SpotRecord};
