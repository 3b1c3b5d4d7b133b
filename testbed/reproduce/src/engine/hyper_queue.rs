//! HyperQueue: a job file with a task for each shard, and one that depends on all of them.

use std::fmt::Write as _;

use super::{ArrayJob, script};

/// Name of the job file in the folder of the job.
pub(super) const FILE: &str = "job.toml";

/// The words that submit the job file.
pub(super) fn command(job: &ArrayJob) -> Vec<String> {
    // Quiet, it prints the number of the job and nothing else.
    let words = ["hq", "--output-mode=quiet"].map(str::to_owned).into_iter();
    let words = words.chain(job.options.iter().cloned());
    let submit = ["job", "submit-file"].map(str::to_owned);
    words.chain(submit).chain([job.file(FILE)]).collect()
}

/// The job file. A task whose worker is lost begins again on another; where one fails, HyperQueue gives up the merge.
pub(super) fn file(job: &ArrayJob) -> String {
    let task = |id: u16, word: &str| {
        let command = ["sh", &job.file(script::FILE), word].map(quoted).join(", ");
        let [out, err] = ["txt", "err"].map(|kind| quoted(&job.file(&format!("{word}.{kind}"))));
        let folder = quoted(&job.folder.to_string_lossy());
        format!(
            "\n[[task]]\nid = {id}\ncommand = [{command}]\ncwd = {folder}\nstdout = {out}\nstderr = {err}\n\
             request = [{{ resources = {{ cpus = {} }} }}]\n",
            job.threads
        )
    };
    let mut text = format!("name = {}\n", quoted(&job.name()));
    for shard in 1..=job.shards {
        text += &task(shard, &shard.to_string());
    }
    text += &task(job.shards + 1, "merge");
    let all: Vec<String> = (1..=job.shards).map(|shard| shard.to_string()).collect();
    // Writing into a text can't fail.
    let _ = writeln!(text, "deps = [{}]", all.join(", "));
    text
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
