//! Shards as processes on this host, with the same script as on an engine's nodes.

use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};

use super::submission::write_files;
use super::{ArrayJob, EngineError, script};

/// Runs all shards in parallel, then the merge with `options`. `progress` gets the word `shards`, the number of shards that have
/// ended, and the number of all shards.
///
/// # Errors
///
/// A shard or the merge can't be started, or fails.
pub fn run_here(
    job: &ArrayJob,
    options: &[&str],
    progress: &mut (dyn FnMut(&str, usize, usize) + Send),
) -> Result<(), EngineError> {
    write_files(job)?;
    let mut shards = Vec::new();
    for shard in 1..=job.shards {
        shards.push((shard, start_shard(job, shard)?));
    }
    let (of, mut failed) = (shards.len(), Vec::new());
    progress("shards", 0, of);
    for (n, (shard, mut process)) in (1..).zip(shards) {
        let ended = process.wait().map_err(EngineError::io("wait for a shard in", &job.folder))?;
        progress("shards", n, of);
        if !ended.success() {
            failed.push((shard, ended));
        }
    }
    if let Some((shard, ended)) = failed.first() {
        let more = match failed.len() - 1 {
            0 => String::new(),
            n => format!(", as did {n} more"),
        };
        let log = job.file(&format!("{shard}.txt"));
        return Err(EngineError::Unfinished {
            said: format!(
                "shard {shard}/{of} ended with {}{more}; see {log}",
                end_in_words(*ended)
            ),
            is_bad_input: ended.code() == Some(2),
        });
    }
    let mut merge = Command::new("sh");
    merge.arg(job.file(script::FILE)).arg("merge").args(options).current_dir(&job.folder);
    let ended = merge.status().map_err(EngineError::io("run sh in", &job.folder))?;
    if ended.success() {
        return Ok(());
    }
    let said = format!("the merge of the shards ended with {}", end_in_words(ended));
    Err(EngineError::Unfinished { said, is_bad_input: ended.code() == Some(2) })
}

/// Starts a shard, whose output is appended to that of earlier starts.
fn start_shard(job: &ArrayJob, shard: u16) -> Result<Child, EngineError> {
    let path = job.folder.join(job.file(&format!("{shard}.txt")));
    let open = || -> std::io::Result<(File, File)> {
        let log = OpenOptions::new().create(true).append(true).open(&path)?;
        Ok((log.try_clone()?, log))
    };
    let (out, err) = open().map_err(EngineError::io("open", &path))?;
    let mut process = Command::new("sh");
    process.arg(job.file(script::FILE)).arg(shard.to_string()).current_dir(&job.folder);
    let process = process.stdin(std::process::Stdio::null()).stdout(out).stderr(err);
    process.spawn().map_err(EngineError::io("run sh in", &job.folder))
}

fn end_in_words(ended: ExitStatus) -> String {
    match (ended.code(), ended.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}
