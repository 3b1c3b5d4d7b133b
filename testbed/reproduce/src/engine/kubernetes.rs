//! Kubernetes: an Indexed Job of the shards, and a Job that tries to merge them until all runs are
//! there.

use super::{ArrayJob, EngineError};

/// Mount point of the volume in the containers, which is their working directory.
const FOLDER: &str = "/runs";
/// Id of the image's user, who owns the files that the containers write into the volume.
const USER: u16 = 7380;

/// Names of the Jobs of the shards and of the merge. They depend on the folder of results only, so
/// that a new submission replaces the old one.
fn job_names(job: &ArrayJob) -> [String; 2] {
    let folder = format!("{}\0{}", job.claim, job.out.display());
    let hash = blake3::hash(folder.as_bytes()).to_hex();
    let name = format!("{}-{}", job.name(), &hash[..8]);
    let merge = format!("{name}-merge");
    [name, merge]
}

/// Words of the command that deletes Jobs of an earlier submission, and of the one that submits the
/// manifest; both read the manifest. The output of the second one names the Jobs.
pub(super) fn commands(job: &ArrayJob) -> [Vec<String>; 2] {
    let delete = ["delete", "--ignore-not-found", "--filename=-"];
    let create = ["create", "--output=name", "--filename=-"];
    [delete, create].map(|words| {
        let kubectl = std::iter::once("kubectl".to_owned()).chain(job.options.iter().cloned());
        kubectl.chain(words.map(str::to_owned)).collect()
    })
}

/// Refuses a folder of results outside the volume.
pub(super) fn check(job: &ArrayJob) -> Result<(), EngineError> {
    let is_outside =
        job.out.is_absolute() || job.out.components().any(|part| part.as_os_str() == "..");
    if is_outside { Err(EngineError::NotInClaim(job.out.clone())) } else { Ok(()) }
}

/// Content of the manifest. A Job can't depend on another: the merge fails while runs are missing,
/// and is started again.
pub(super) fn manifest(job: &ArrayJob) -> String {
    let ArrayJob { shards, threads, .. } = job;
    let [name, merge] = job_names(job);
    let comment = job.command().replace('\n', " ");
    let shard = format!("exec {} \"$((JOB_COMPLETION_INDEX + 1))/{shards}\"", job.shard_line());
    let pods_of_shards = pod_template(job, "shard", "Never", &shard, &threads.to_string());
    let pods_of_merge =
        pod_template(job, "merge", "OnFailure", &format!("exec {}", job.merge_line()), "100m");
    format!(
        "# The shards of\n\
         #   {comment}\n\
         # each of which begins again, with what it lacks, where its node is gone; status 2 is bad input.\n\
         apiVersion: batch/v1\n\
         kind: Job\n\
         metadata:\n  name: {name}\n\
         spec:\n  \
           completionMode: Indexed\n  completions: {shards}\n  parallelism: {shards}\n  \
           backoffLimitPerIndex: 6\n  \
           podFailurePolicy:\n    rules:\n      \
             - action: Ignore\n        onPodConditions:\n          \
               - type: DisruptionTarget\n            status: \"True\"\n      \
             - action: FailIndex\n        onExitCodes:\n          \
               containerName: shard\n          operator: In\n          values: [2]\n\
         {pods_of_shards}\
         ---\n\
         # Their merge, which ends with status 2 as long as runs are missing, and is tried again.\n\
         apiVersion: batch/v1\n\
         kind: Job\n\
         metadata:\n  name: {merge}\n\
         spec:\n  backoffLimit: 1000\n\
         {pods_of_merge}"
    )
}

/// Template of pods with one container that runs a line of shell.
fn pod_template(job: &ArrayJob, name: &str, restart: &str, line: &str, requested: &str) -> String {
    // Kubernetes expands $(NAME) and takes $$ for a dollar.
    let line = quoted(&line.replace('$', "$$"));
    let (image, claim) = (quoted(&job.image), quoted(&job.claim));
    let limit = job.threads;
    format!(
        "  template:\n    metadata:\n      labels:\n        \
             app.kubernetes.io/name: dormouse\n        app.kubernetes.io/component: {name}\n    \
         spec:\n      restartPolicy: {restart}\n      \
           securityContext:\n        runAsNonRoot: true\n        runAsUser: {USER}\n        \
             runAsGroup: {USER}\n        fsGroup: {USER}\n        seccompProfile:\n          \
               type: RuntimeDefault\n      \
           containers:\n        - name: {name}\n          image: {image}\n          \
             workingDir: {FOLDER}\n          command: [\"/bin/sh\", \"-c\", {line}]\n          \
             securityContext:\n            allowPrivilegeEscalation: false\n            \
               capabilities:\n              drop: [ALL]\n          \
             resources:\n            requests:\n              cpu: \"{requested}\"\n            \
               limits:\n              cpu: \"{limit}\"\n          \
             volumeMounts:\n            - name: runs\n              mountPath: {FOLDER}\n      \
           volumes:\n        - name: runs\n          persistentVolumeClaim:\n            \
             claimName: {claim}\n"
    )
}

/// The text as a YAML string; YAML accepts all of JSON's strings.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
