//! Live runs: the coordinator in this process, workers as processes of their own,
//! here or on other hosts.

mod called;
mod checkpoint_store;
mod conduct;
mod invitation;
mod page;
mod rehearsal;
mod stopped;
mod supervise;

pub use called::{claim_addresses, conduct_calls, rehearse_calls};
pub use conduct::{Conduct, LiveError, conduct};
pub use page::{Page, open_in_browser, page_tokens};
pub use rehearsal::{Rehearsal, rehearse};
pub use stopped::StoppedTasks;
