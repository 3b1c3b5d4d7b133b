//! Slurm: an array job, and a job that depends on it.

use super::{ArrayJob, script};

/// Words of the command that submits the array of shards, and of the one that submits the merge
/// after the array with this job number.
///
/// The merge starts however the shards end: it reports missing runs. Slurm requeues a shard whose
/// node fails, and the merge waits for it.
pub(super) fn commands(job: &ArrayJob, array: &str) -> [Vec<String>; 2] {
    let ArrayJob { shards, threads, .. } = job;
    let common = |name: String, own: String, log: &str| {
        let mut words = vec![
            "sbatch".to_owned(),
            "--parsable".to_owned(),
            format!("--job-name={name}"),
            own,
            format!("--cpus-per-task={threads}"),
            format!("--output={}", job.file(log)),
            "--open-mode=append".to_owned(),
            "--requeue".to_owned(),
        ];
        words.extend(job.options.iter().cloned());
        words.push(job.file(script::FILE));
        words
    };
    let name = job.name();
    let shards = common(name.clone(), format!("--array=1-{shards}"), "%a.txt");
    let after = format!("--dependency=afterany:{array}");
    let mut merge = common(format!("{name}-merge"), after, "merge.txt");
    merge.push("merge".to_owned());
    [shards, merge]
}
