//! `dormouse man`: prints the manual of the command line.

use std::path::Path;

use super::failure::Failure;
use super::grammar::grammar;
use super::print::print;

pub(crate) fn pages(folder: &Path) -> Result<(), Failure> {
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(grammar(), folder));
    let why = |error| {
        format!("{}: the manual can't be written: {error}; give another folder", folder.display())
    };
    written.map_err(|error| Failure::BadInput(why(error)))?;
    print(&format!("the pages are in {}; man -l shows one", folder.display()))
}
