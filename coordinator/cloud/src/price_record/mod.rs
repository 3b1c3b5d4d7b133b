//! Records of spot prices, as providers and those who watch them write them down.

mod dates;
mod oddities;
mod record;
mod statistics;

pub use dates::Dates;
pub use record::{BadPrice, PriceRecord};
pub use statistics::PriceStatistics;
