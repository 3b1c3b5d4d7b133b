//! Keys of `[[workload.task]]` for users' own programs.

use schemars::JsonSchema;
use serde::Deserialize;

use dormouse_tasks::own::Saves;

/// How a user's own program saves its work: by a named scheme, or at a notice with further settings.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SavesSection {
    /// A scheme of saving the work, by its name.
    Named(SavesName),
    /// The program saves its work when it gets the notice that its VM will be interrupted.
    Notice(NoticeSection),
}

/// Scheme by which a user's own program saves its work.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SavesName {
    /// CRIU takes checkpoints of the program's memory and directory; the program need not know of them.
    Criu,
    /// The program reads at the metadata endpoint the notice that its VM will be interrupted, and saves its work in
    /// its directory. It begins again with the saved directory.
    Notice,
    /// The program saves its work in its directory at times of its own choice. The directory is stored at the times
    /// of `[checkpoint]`, and the program begins again with the stored directory.
    Own,
    /// The work is not saved: after an interruption, the task starts from the beginning.
    None,
}

/// How a program that saves its work at a notice gets the notice, in addition to the metadata endpoint.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct NoticeSection {
    /// The word that selects saving at a notice: always `notice`.
    #[expect(dead_code, reason = "it has one value, which the schema demands")]
    pub(crate) by: NoticeName,
    /// Signal that is sent to the program's processes at the notice; no signal if not given.
    #[schemars(example = &"SIGUSR1")]
    pub(crate) signal: Option<String>,
    /// Path, in the program's directory, of the file that the notice is written to; no file if not given.
    #[schemars(example = "notice.json")]
    pub(crate) file: Option<String>,
}

/// The only word for the key `by` in a table of `saves`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NoticeName {
    /// The program saves its work at a notice.
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

/// How a program's answer is verified: by a command, or against the outputs of a reference run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum VerifySection {
    /// A command that runs in a clean copy of the task's directory after the task has ended. The copy has the inputs
    /// as they were given, and the files named by `outputs` or by a word of the command. Exit status 0 means that the
    /// answer is right.
    Command(#[schemars(example = ["./check", "{output}"])] Vec<String>),
    /// Outputs of a reference run, with which the task's are compared byte for byte.
    Outputs(ReferenceSection),
}

/// The outputs of a reference run, for comparison with those of the task.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ReferenceSection {
    /// Folder with the outputs of the reference run; the files that `outputs` names are compared.
    #[schemars(example = "reference/{name}")]
    pub(crate) outputs_of: String,
}
