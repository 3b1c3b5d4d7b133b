//! The names of experiments on the command line.

use std::ffi::OsStr;
use std::sync::LazyLock;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use dormouse_experiment::Builtin;

/// The built-in ones, each with a line about it.
static ALL: LazyLock<Vec<(String, String)>> =
    LazyLock::new(|| Builtin::all().map(|one| (one.name(), one.description())).collect());

/// Takes any name, and lets shells complete the built-in ones: another is that of a file.
#[derive(Clone, Debug)]
pub(crate) struct ExperimentName;

impl TypedValueParser for ExperimentName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        Some(Box::new(ALL.iter().map(|(name, about)| PossibleValue::new(&**name).help(&**about))))
    }
}
