//! What a run leaves: tables, plots, a report, the event log.

mod background;
mod directory;
mod end;
mod error;
mod fidelity;
mod inputs;
mod log;
mod task_times;

pub(crate) use background::Background;
pub use directory::{FILES, Replaces, Staging};
pub(crate) use directory::{is_unfinished, write_in};
pub(crate) use end::end_word;
pub use error::OutputError;
pub use fidelity::Fidelity;
pub use inputs::Input;
pub(crate) use log::has_steps;
pub use log::{Header, MOST_LOGGED, Mode, RunLog, RunLogWriter, open_log, read_header};
pub(crate) use task_times::vm_slices_us;
pub use task_times::{TaskTime, TaskTimes, span_of, task_times};
