//! A user's own program in place of the tasks of compared experiments.

use dormouse_experiment::{Override, OwnSaid};
use serde::{Deserialize, Serialize};

/// Name of the program's source in error messages.
const OPTION: &str = "COMMAND";

/// A user's own program as given on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnProgram {
    /// Keys of the program's tasks, with their values in TOML.
    keys: Vec<(String, String)>,
    /// Keys of the experiment, with their values in TOML.
    settings: Vec<(String, String)>,
    /// Options that gave the program, with the command last, after `--`.
    words: Vec<String>,
}

impl OwnProgram {
    /// Makes an own program from the keys that replace those of the tasks, the settings of the experiment, and the
    /// words of the command line that gave them.
    #[must_use]
    pub fn new(
        said: &OwnSaid,
        settings: impl IntoIterator<Item = Override>,
        words: Vec<String>,
    ) -> Self {
        let pair = |it: Override| (it.path, it.value);
        Self {
            keys: said.keys.iter().cloned().map(pair).collect(),
            settings: settings.into_iter().map(pair).collect(),
            words,
        }
    }

    /// Whether no program is given, so that tasks are the experiment's.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.keys.is_empty()
    }

    /// Words that give the program on the command line.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Words that name an experiment: with `--on` if the program takes the place of its tasks.
    pub(super) fn on<'a>(&self, experiment: &'a str) -> impl Iterator<Item = &'a str> {
        let on = (!self.is_none()).then_some("--on");
        on.into_iter().chain([experiment])
    }

    pub(super) fn said(&self) -> OwnSaid {
        let keys = self.keys.iter().map(over).collect();
        OwnSaid { keys, replaces_tasks: !self.is_none() }
    }

    pub(super) fn settings(&self) -> impl Iterator<Item = Override> {
        self.settings.iter().map(over)
    }
}

fn over((path, value): &(String, String)) -> Override {
    Override { option: OPTION, path: path.clone(), value: value.clone() }
}
