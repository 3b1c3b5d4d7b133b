//! Keys of `[[workload.task]]` for users' own programs.

use schemars::JsonSchema;
use serde::Deserialize;

use dormouse_tasks::own::Saves;

/// What saves the work of a program: a word, or how it hears of a notice.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SavesSection {
    /// A scheme by its name.
    Named(SavesName),
    /// At the notice that its VM will be taken away.
    Notice(NoticeSection),
}

/// What saves the work of a program, by its name.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SavesName {
    /// Checkpoints of its memory and its directory, by CRIU: it need not know of them.
    Criu,
    /// The program itself, into its directory, at the notice that its VM will be taken away, which it reads at
    /// the metadata endpoint; it begins again with that directory.
    Notice,
    /// The program itself, into its directory, whenever it sees fit; the directory is kept at the times of
    /// `[checkpoint]`, and it begins again with it.
    Own,
    /// Nothing is saved: the task starts from the beginning.
    None,
}

/// How a program that saves its work at a notice gets the notice, in addition to the metadata endpoint.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct NoticeSection {
    /// What saves the program's work: the notice.
    #[expect(dead_code, reason = "it has one value, which the schema demands")]
    pub(crate) by: NoticeName,
    /// Signal that is sent to the program's processes.
    #[schemars(example = &"SIGUSR1")]
    pub(crate) signal: Option<String>,
    /// The file that is made in its directory, with the notice in it.
    #[schemars(example = "notice.json")]
    pub(crate) file: Option<String>,
}

/// The one word that a table of `saves` has.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NoticeName {
    /// At a notice.
    Notice,
}

impl SavesSection {
    /// The program's way to save its work, from this key's value.
    pub(crate) fn saves(&self) -> Saves {
        match self {
            Self::Named(SavesName::Criu) => Saves::Criu,
            Self::Named(SavesName::Notice) => Saves::Notice { signal: None, file: None },
            Self::Named(SavesName::Own) => Saves::Own,
            Self::Named(SavesName::None) => Saves::None,
            Self::Notice(NoticeSection { signal, file, .. }) => {
                Saves::Notice { signal: signal.clone(), file: file.clone() }
            }
        }
    }
}

/// By what the answer of a program is checked: a command, or the outputs of a reference run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum VerifySection {
    /// A command that runs once the task has ended, in a clean copy of its directory: the inputs as they were given,
    /// and the files that `outputs` or a word of the command names. It ends with status 0 if the answer is right.
    Command(#[schemars(example = ["./check", "{output}"])] Vec<String>),
    /// Outputs of a reference run, with which the task's are compared byte for byte.
    Outputs(ReferenceSection),
}

/// Where the outputs of a reference run are.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ReferenceSection {
    /// Folder of the reference run's outputs: those that `outputs` names are compared.
    #[schemars(example = "reference/{name}")]
    pub(crate) outputs_of: String,
}
