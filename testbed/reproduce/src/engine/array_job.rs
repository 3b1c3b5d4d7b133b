//! A command as an array of shards and the step that joins them, whatever the engine.

use std::path::PathBuf;

use dormouse_experiment::command_line;

use super::Engine;

/// The folder, in that of the results, with an engine's files and what its jobs print.
const JOB: &str = "job";

/// An array of shards, all of which keep their samples in the folder of the results, and the merge after it.
#[derive(Clone, Debug)]
pub struct ArrayJob {
    /// What runs it.
    pub engine: Engine,
    /// The words of the command without where its results go, `dormouse` first.
    pub words: Vec<String>,
    /// The program on the nodes in the place of `dormouse`.
    pub program: PathBuf,
    /// The folder in which the command was typed.
    pub folder: PathBuf,
    /// The folder of the results, seen from there.
    pub out: PathBuf,
    /// Number of shards.
    pub shards: u16,
    /// Processors of each, and threads.
    pub threads: u16,
    /// Whether results of another command may be replaced in a folder that can't be looked into from here.
    pub force: bool,
    /// Options for the engine's own command.
    pub options: Vec<String>,
    /// Image of the containers of Kubernetes.
    pub image: String,
    /// Claim of the volume that the containers of Kubernetes share.
    pub claim: String,
}

impl ArrayJob {
    /// A name that every engine takes, such as `dormouse-sweep-j60`.
    pub(super) fn name(&self) -> String {
        let out = self.out.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String =
            format!("dormouse-{}", out.unwrap_or_default()).chars().map(plain).collect();
        // Kubernetes adds to it, and takes 63 characters in all.
        name.chars().take(48).collect::<String>().trim_end_matches('-').to_owned()
    }

    /// The path of a file of the job, seen from the folder in which the command was typed.
    pub(super) fn file(&self, name: &str) -> String {
        self.out.join(JOB).join(name).display().to_string()
    }

    /// The command of the job, as a shell reads it.
    pub(super) fn command(&self) -> String {
        command_line(&self.words)
    }

    /// The command of a shard but for the value of `--shard`, which comes last.
    pub(super) fn shard_line(&self) -> String {
        let mut words = vec![self.program.display().to_string()];
        words.extend(self.words.iter().skip(1).cloned());
        words.extend(self.force.then(|| "--force".to_owned()));
        words.extend(["--out".to_owned(), self.out.display().to_string()]);
        words.extend(["--threads".to_owned(), self.threads.to_string(), "--shard".to_owned()]);
        command_line(words)
    }

    /// The command that joins the shards where their samples are.
    pub(super) fn merge_line(&self) -> String {
        let [program, out] = [&self.program, &self.out].map(|path| path.display().to_string());
        let threads = self.threads.to_string();
        command_line([&program, "merge", &out, "--out", &out, "--threads", &threads])
    }
}
