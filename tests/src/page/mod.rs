//! Pages of the book, played: what they tell a reader to type is typed, and what they say that it prints is
//! compared with what it prints.

mod block;
mod error;
mod hosts;
mod play;
mod printed;
mod script;

pub use block::{Block, Kind, Need, Page};
pub use error::Error;
pub use play::{PageOutcome, Player};
