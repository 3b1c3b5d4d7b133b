//! `dormouse completions` and `dormouse man`: the command line told to a shell and to a reader.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use super::args::Cli;
use super::failure::Failure;
use super::print::print;

pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    generate(shell, &mut Cli::command(), "dormouse", &mut text);
    print(String::from_utf8_lossy(&text).trim_end())
}

pub(crate) fn pages(folder: &Path) -> Result<(), Failure> {
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    let why = |error| {
        format!("{}: the manual can't be written: {error}; give another folder", folder.display())
    };
    written.map_err(|error| Failure::BadInput(why(error)))?;
    print(&format!("the pages are in {}; man -l shows one", folder.display()))
}
