//! Records of spot prices, as providers and those who watch them write them down.

mod instant;
mod oddities;
mod record;
mod statistics;

pub use record::{BadPrice, PriceRecord};
pub use statistics::PriceStatistics;
