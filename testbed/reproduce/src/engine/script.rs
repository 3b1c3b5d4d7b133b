//! The script for nodes that share a file system: it runs a shard, or merges all.

use dormouse_experiment::command_line;

use super::{ArrayJob, JobEngine};

/// Name of the script in the folder of the job.
pub(super) const FILE: &str = "job.sh";

/// Content of the script for `sh`. Its first argument is a shard's number, or `merge`, followed by
/// options of `dormouse merge`.
pub(super) fn script(job: &ArrayJob) -> String {
    let ArrayJob { engine, shards, .. } = job;
    let folder = command_line([job.folder.to_string_lossy()]);
    let spec = job.out.join("sweep.json");
    let [spec, program] = [&spec, &job.program].map(|path| command_line([path.to_string_lossy()]));
    // Slurm gives all tasks of an array the same arguments.
    let index = if *engine == JobEngine::Slurm { "${1:-$SLURM_ARRAY_TASK_ID}" } else { "$1" };
    format!(
        "#!/bin/sh\n\
         # A shard, by its number, of\n\
         #   {command}\n\
         # or the merge of all {shards} (`merge`). Written for --engine {engine}.\n\
         cd {folder} 2>/dev/null && [ -f {spec} ] && [ -x {program} ] || {{\n    \
             printf 'dormouse: %s: %s\\n' \"$(uname -n)\" \\\n        \
                 'this node lacks the folder, the --out or the program that the job was submitted from: \
                  have them on a file system that all nodes share' >&2\n    \
             exit 2\n\
         }}\n\
         if [ \"${{1-}}\" = merge ]; then\n    \
             shift\n    \
             exec {merge} \"$@\"\n\
         fi\n\
         exec {shard} \"{index}/{shards}\"\n",
        command = job.command().replace('\n', " "),
        merge = job.merge_line(),
        shard = job.shard_line(),
    )
}
