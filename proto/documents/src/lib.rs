//! Files that people write: TOML and JSON as trees of values that know where they stand, the schemas of
//! what they may hold, and what is wrong with them, each mistake with its place and what would be right.
//!
//! A type with `serde::Deserialize` and `schemars::JsonSchema` says what a file holds. [`from_toml`] or
//! [`from_json`] makes a [`Node`] of a text, and [`read_whole`] a value of that: [`conform`] tells all that is not as
//! [`schema_of`] the type says. Nothing here opens a file.

mod conform;
mod error;
mod json;
mod node;
mod overrides;
mod reference;
mod schema;
mod suggest;
mod toml;

pub use self::toml::from_toml;
pub use conform::{conform, missing, read, read_whole};
pub use error::{InputError, Mistake, Mistakes, Place};
pub use json::{from_json, not_json, place_of};
pub use node::{Node, Value};
pub use overrides::Override;
pub use reference::reference;
pub use schema::schema_of;
pub use suggest::instead;
