//! Experiment files: TOML in, a resolved [`Experiment`] or one clear error out.

mod batch;
mod builtin;
mod chain;
mod checkpoint;
mod cloud;
mod command_line;
mod drawn_prices;
mod files;
mod interruption;
mod jobs;
mod lifetimes;
mod live;
mod load;
mod placed_by;
mod plan;
mod price_files;
mod price_history;
mod recorded_prices;
mod requests;
mod resolved;
mod scheduler;
mod schema;
mod sections;
mod sharing;
mod shown;
mod tenants;
mod workload;

pub use dormouse_documents::{InputError, Mistake, Override, Place};

pub use batch::Batch;
pub use builtin::Builtin;
pub use chain::chain;
pub use cloud::spot_types;
pub use command_line::{command_line, option};
pub use drawn_prices::DrawnPrices;
pub use files::{read_rows, read_text};
pub use interruption::law;
pub use live::{Hibernate, Live};
pub use load::{Loaded, Source, load, of_text, open};
pub use price_files::PriceFile;
pub use price_history::{Pick, PriceSeries, price_series, read_record};
pub use resolved::{Experiment, Planned};
pub use schema::{reference, schema};
pub use sharing::read_sharing;
