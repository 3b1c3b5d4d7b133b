//! `dormouse twin`.

use super::args::TwinArgs;
use super::failure::Failure;
use super::print::print;
use super::terminal;
use crate::output::{OutputError, write_in};
use crate::twin::twin_of;

/// Status 0 once the two were compared, whatever came out.
pub(crate) fn run(args: &TwinArgs) -> Result<(), Failure> {
    let twin = twin_of(&args.dir)?;
    if let Some(out) = &args.out {
        if out.is_file() {
            return Err(OutputError::IsAFile(out.clone()).into());
        }
        write_in(out, "twin.csv", twin.csv())?;
    }
    if args.json {
        print(&format!("{:#}", twin.json()))
    } else {
        print(&twin.table(terminal::stdout(), args.all))
    }
}
