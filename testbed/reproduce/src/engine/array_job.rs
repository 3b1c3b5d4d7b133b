//! A command as an array of shards and a step that merges them, independent of the engine.

use std::path::PathBuf;

use dormouse_experiment::command_line;

use super::JobEngine;

/// Subfolder of the results for an engine's files and the output of its jobs.
const JOB: &str = "job";

/// A job for an engine: an array of shards of one command, whose samples all go into one folder of results, followed by the merge.
#[derive(Clone, Debug)]
pub struct ArrayJob {
    /// Engine that runs the job.
    pub engine: JobEngine,
    /// Words of the command line that is split into shards, `dormouse` first, without the option for the folder of results.
    pub words: Vec<String>,
    /// Path of the program `dormouse` on the engine's nodes, which replaces the first of `words`.
    pub program: PathBuf,
    /// Folder in which the command was typed.
    pub folder: PathBuf,
    /// Folder of the results, relative to `folder`.
    pub out: PathBuf,
    /// Number of shards into which the command is split.
    pub shards: u16,
    /// Number of processors, and of threads, of each shard.
    pub threads: u16,
    /// Whether results of another command may be replaced in a folder that this host can't read.
    pub force: bool,
    /// Options for the engine's own command.
    pub options: Vec<String>,
    /// Container image for Kubernetes.
    pub image: String,
    /// Volume claim that the containers of Kubernetes share.
    pub claim: String,
}

impl ArrayJob {
    /// Name of the job in a form that every engine accepts, such as `dormouse-sweep-j60`.
    pub(super) fn name(&self) -> String {
        let out = self.out.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String =
            format!("dormouse-{}", out.unwrap_or_default()).chars().map(plain).collect();
        // Kubernetes appends to it, and allows 63 characters in all.
        name.chars().take(48).collect::<String>().trim_end_matches('-').to_owned()
    }

    /// Path of a file of the job, relative to the folder in which the command was typed.
    pub(super) fn file(&self, name: &str) -> String {
        self.out.join(JOB).join(name).display().to_string()
    }

    /// The command of the job, quoted for a shell.
    pub(super) fn command(&self) -> String {
        command_line(&self.words)
    }

    /// The command of a shard without the value of `--shard`, which comes last.
    pub(super) fn shard_line(&self) -> String {
        let mut words = vec![self.program.display().to_string()];
        words.extend(self.words.iter().skip(1).cloned());
        words.extend(self.force.then(|| "--force".to_owned()));
        words.extend(["--out".to_owned(), self.out.display().to_string()]);
        words.extend(["--threads".to_owned(), self.threads.to_string(), "--shard".to_owned()]);
        command_line(words)
    }

    /// The command that merges the shards in the folder of their samples.
    pub(super) fn merge_line(&self) -> String {
        let [program, out] = [&self.program, &self.out].map(|path| path.display().to_string());
        let threads = self.threads.to_string();
        command_line([&program, "merge", &out, "--out", &out, "--threads", &threads])
    }
}
