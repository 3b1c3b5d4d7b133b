//! The order of a worker to the first process of a cell.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::CellError;
use crate::left;

/// Greatest size of an order that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Order to the first process of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellOrder {
    /// Path of the user data, a program; `None`: there is nothing to run.
    pub user_data: Option<PathBuf>,
    /// Path of the program that starts the cell's ssh server; `None`: the cell has none.
    pub ssh: Option<PathBuf>,
    /// Names of the cell's user, each of which has a home directory: they are one.
    pub names: Vec<String>,
    /// Public keys that may log in.
    pub keys: Vec<String>,
    /// Files that are written before anything runs.
    pub files: Vec<CellFile>,
    /// Lines for the console.
    pub notes: Vec<String>,
    /// The whole environment of the user data.
    pub env: BTreeMap<String, String>,
    /// Time that processes have to end in a shutdown before they are killed, in milliseconds.
    pub shutdown_ms: u64,
}

/// A file that the first process of a cell writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellFile {
    /// Its path, as programs in the cell see it.
    pub path: PathBuf,
    /// Its content, or what is added to it.
    pub content: Vec<u8>,
    /// Permission bits of the file, such as `0o644`.
    pub mode: u32,
    /// True if the content is added to the end of a file that may be there.
    pub appends: bool,
}

pub(super) fn read_order(
    mut arguments: impl Iterator<Item = OsString>,
) -> Result<CellOrder, CellError> {
    let (name, path) = (arguments.next(), arguments.next().map(PathBuf::from));
    let path = path.filter(|_| name.as_deref() == Some(OsStr::new("--order")));
    let path = path.filter(|_| arguments.next().is_none()).ok_or(CellError::Usage)?;
    let order = left::read(&path, LONGEST).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
    order.map_err(|source| CellError::Order { path, source })
}
