//! Names on the command line that shells complete.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};

/// Parser that accepts any name and offers the known ones to shells. A wrong name is reported later, when the name is
/// looked up.
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
