//! HyperQueue: a job file with one task for each shard, and a task that depends on all of them.

use std::fmt::Write as _;

use super::{ArrayJob, script};

/// Name of the job file in the folder of the job.
pub(super) const FILE: &str = "job.toml";

/// Words of the command that submits the job file.
pub(super) fn command(job: &ArrayJob) -> Vec<String> {
    // In quiet mode it prints only the job's number.
    let words = ["hq", "--output-mode=quiet"].map(str::to_owned).into_iter();
    let words = words.chain(job.options.iter().cloned());
    let submit = ["job", "submit-file"].map(str::to_owned);
    words.chain(submit).chain([job.file(FILE)]).collect()
}

/// Content of the job file. A task whose worker is lost starts again on another one; if a shard
/// fails, HyperQueue gives up the merge.
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
    // Writing to a String can't fail.
    let _ = writeln!(text, "deps = [{}]", all.join(", "));
    text
}

/// The text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
