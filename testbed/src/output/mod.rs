//! What a run leaves: tables, plots, a report, the event log.

mod background;
mod csv;
mod directory;
mod error;
mod fidelity;
mod gantt;
mod inputs;
mod jobs;
mod log;
mod numbers;
mod report;
mod summary;
mod table;
mod task_times;

pub use csv::{TASK_COLUMNS, VM_COLUMNS, tasks as tasks_csv, vms as vms_csv};
pub(crate) use csv::{finished_on, quoted};
pub(crate) use directory::is_unfinished;
pub use directory::{FILES, Replaces, Staging};
pub use error::OutputError;
pub use fidelity::Fidelity;
pub use inputs::Input;
pub use jobs::JobsPart;
pub(crate) use log::has_steps;
pub use log::{Header, MOST_LOGGED, Mode, RunLog, RunLogWriter, open_log, read_header};
pub(crate) use numbers::secs_or_blank;
pub use summary::Outcome;
pub(crate) use table::Rows;
pub use table::Style;
pub(crate) use task_times::vm_slices_us;
pub use task_times::{TaskTime, TaskTimes, span_of, task_times};

pub(crate) use gantt::{COLOURS, HEAD, Rect, Svg, TimeAxis, escaped};
pub(crate) use report::html;
