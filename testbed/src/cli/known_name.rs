//! Names on the command line that shells complete.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};

/// Parser of a name that accepts any name, and lets shells complete the known ones. Unknown names are reported where
/// they are looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownName(pub(super) fn() -> Vec<PossibleValue>);

impl TypedValueParser for KnownName {
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
        Some(Box::new((self.0)().into_iter()))
    }
}
