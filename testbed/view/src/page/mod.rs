//! The one page layout: a title, cards, and sections of text, tables, figures and commands.
//!
//! Pages are whole files without outside addresses: light or dark as the reader prefers, readable
//! at 400 px, printable. Everything but [`Block::Figure`]'s markup is escaped.

mod block;
mod layout;

pub use block::{Block, Card, Page};
