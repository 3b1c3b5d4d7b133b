//! Files that people write: TOML and JSON as trees of values with their places, the schemas of valid contents, and the
//! mistakes in a file, each with its place and remedy.
//!
//! A type with `serde::Deserialize` and `schemars::JsonSchema` describes what a file may contain. [`from_toml`] or
//! [`from_json`] makes a [`Node`] of a text, and [`read_whole`] makes a value of the type from a node: [`conform`]
//! reports everything that differs from the type's schema ([`schema_of`]). Nothing here opens a file.

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
