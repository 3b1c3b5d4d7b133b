//! Player for pages of the book: types the commands that a page tells a reader to type, and compares their output with
//! that on the page.

mod block;
mod error;
mod hosts;
mod play;
mod printed;
mod script;

pub use block::{Block, Kind, Need, Page};
pub use error::Error;
pub use play::{PageOutcome, Player};
