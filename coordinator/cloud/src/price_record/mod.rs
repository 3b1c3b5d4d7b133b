//! Readers of spot price records in many formats.

mod columns;
mod dates;
mod json;
mod oddities;
mod printed;
mod read;
mod record;
mod spot_trace;
mod statistics;
#[cfg(test)]
mod tests;

pub use dates::RecordDates;
pub use read::{
    PriceHistories, PriceQuery, SeriesName, list_names, looks_like_prices, read_prices,
};
pub use record::PriceRecord;
pub use spot_trace::count_trace_prices;
pub use statistics::PriceStatistics;
