//! The life of the attempts on one VM: `(now, event) → effects`.
//!
//! [`Lives`] hears what the coordinator commands, what has become of what it wanted done, and that
//! time has passed; it says what is to be done next, and what is to be reported. Who carries that
//! out, with processes and CRIU or in a test's memory, decides nothing.

mod attempt;
mod checkpoints;
mod ends;
mod event;
mod launches;
mod lives;
mod moves;
mod slots;
mod stops;
mod vm;

pub use attempt::{Key, Kind, Phase};
pub use event::{Came, Dumped, Effect, End, Event, Kept, LaunchError, Left, Start};
pub use lives::{Limits, Lives};
pub use slots::{Seat, Slot, Slots};
