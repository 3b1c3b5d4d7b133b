//! Reads experiment files (TOML) and returns a resolved [`Experiment`], or one clear error.

mod availability;
mod batch;
mod builtin;
mod calendar;
mod catalogue;
mod certificate_time;
mod chain;
mod checkpoint;
mod cloud;
mod command_line;
mod counts;
mod extent;
mod fault;
mod files;
mod interruption;
mod jobs;
mod lifetimes;
mod live;
mod load;
mod named_program;
mod no_experiment;
mod own;
mod plan;
mod price_history;
mod programs;
mod recorded_prices;
mod requests;
mod resolved;
mod scenario;
mod schedule;
mod scheduler;
mod schema;
mod sections;
mod sharing;
mod shown;
mod tenants;
mod unknown;
mod weekly;
mod workflow;
mod workload;
mod wrong_kind;
mod zones;

pub use dormouse_documents::{InputError, Mistake, Override, Place};

pub use batch::BatchSetup;
pub use builtin::BuiltinExperiment;
pub use chain::chain;
pub use cloud::spot_types;
pub use command_line::{command_line, option};
pub use extent::RunExtent;
pub use files::{read_file, read_text};
pub use interruption::law;
pub use live::{Hibernate, Live};
pub use load::{ExperimentSource, LoadedExperiment, load, of_text, open, open_cloud};
pub use named_program::{label_of, names_a_program};
pub use own::{
    CarriedProgram, MeasureFile, MeasuredProgram, OwnSaid, OwnTask, OwnTasks, ProgramMeasure,
    RuntimeSaid, Sources, allow_inputs, identity as identity_of_program,
};
pub use plan::PlannedFigures;
pub use price_history::{Pick, PriceSeries, all_series, price_series, read_record, without_ending};
pub use programs::ProgramStart;
pub use recorded_prices::DrawnPrices;
pub use recorded_prices::PriceFile;
pub use resolved::{Experiment, Planned, Policies};
pub use scenario::{SpotScenario, read_scenario};
pub use schema::{reference, schema};
pub use sharing::read_sharing;
pub use workflow::read_workflow;
