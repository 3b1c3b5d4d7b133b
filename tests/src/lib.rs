//! Support for whole-system tests: real processes, real kernel, real network. It knows only the programs and their
//! files. (Tests of whole runs within one process are in `tests/library`.)

mod binary;
mod browser;
mod experiments;
mod jobs;
mod line_schema;
mod live;
mod outcome;
pub mod page;
mod refused;
mod run;
pub mod soak;
mod traces;
mod tree;
mod wait;
mod watch;
mod wire;

pub use binary::{cargo_command, dormouse, is_on_path};
pub use browser::Browser;
pub use experiments::BAG;
pub use jobs::{JOBS, Job, jobs_experiment};
pub use line_schema::LineSchema;
pub use live::{live_turn, shared_live_turn, timed_live_turn};
pub use outcome::{
    checks_and_replays, dormouse_says, events, is_faithful, summary, text, wait_for_event,
    wait_for_report,
};
pub use refused::{refused, run_in};
pub use run::UnderWay;
pub use traces::{MARK, nothing_is_left_but, orphans, traces, workers_of};
pub use tree::tree;
pub use wait::wait_for;
pub use watch::Watch;
pub use wire::Wire;
