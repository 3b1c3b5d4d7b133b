//! A program of the user's own that takes the place of the tasks of experiments that are compared.

use dormouse_experiment::{Override, OwnSaid};
use serde::{Deserialize, Serialize};

/// Where what is said of the program comes from, for messages about it.
const OPTION: &str = "COMMAND";

/// A program of the user's own, as it was said on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnProgram {
    /// Keys of its tasks, and their values as TOML has them.
    keys: Vec<(String, String)>,
    /// Keys of the experiment, and their values as TOML has them.
    settings: Vec<(String, String)>,
    /// The options that said so, the command last, behind `--`.
    words: Vec<String>,
}

impl OwnProgram {
    /// The program of these keys of tasks and settings of the experiment, said by these words.
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

    /// Whether there is none: tasks are the experiment's.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.keys.is_empty()
    }

    /// The words that say it.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The words that name an experiment: `--on` it where the program takes the place of its tasks.
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
