//! `dormouse twin`.

use std::fs;
use std::path::Path;

use dormouse_tell::twin::Twin;
use serde_json::json;

use super::args::TwinArgs;
use super::failure::Failure;
use super::print::print;
use super::terminal;
use crate::output::OutputError;
use crate::twin::{TwinError, csv, table, twin_of};

/// Status 0 once the two were compared, whatever came out.
pub(crate) fn run(args: &TwinArgs) -> Result<(), Failure> {
    let twin = twin_of(&args.dir)?;
    if let Some(out) = &args.out {
        write(&twin, out)?;
    }
    if args.json {
        print(&format!("{:#}", json!(twin)))
    } else {
        print(&table(&twin, terminal::stdout(), args.all))
    }
}

fn write(twin: &Twin, out: &Path) -> Result<(), OutputError> {
    if out.is_file() {
        return Err(OutputError::IsAFile(out.to_owned()));
    }
    fs::create_dir_all(out).map_err(|error| OutputError::io("make", out, error))?;
    let path = out.join("twin.csv");
    fs::write(&path, csv(twin)).map_err(|error| OutputError::io("write", &path, error))
}

impl From<TwinError> for Failure {
    fn from(error: TwinError) -> Self {
        if error.is_bad_input() {
            Self::BadInput(error.to_string())
        } else {
            Self::Broken(error.to_string())
        }
    }
}
