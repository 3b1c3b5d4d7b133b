//! The files of the Burst-HADS artifact, and plans.

use dormouse_documents::from_json;
use dormouse_experiment::{ExperimentSource, open};
use dormouse_workload::artifact as files;

use super::scratch::Scratch;

/// Reads the bytes as the files `job.json`, `env.json` and `map.json`.
pub(crate) fn artifact(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(root) = from_json("fuzz", text) else { return };
    let _ = (files::tasks(&root), files::types(&root), files::planned_vms(&root));
}

/// Reads the bytes as a plan for three tasks; a plan that is accepted can be run.
pub(crate) fn plan(bytes: &[u8]) {
    Scratch::with(|scratch| {
        let experiment = include_bytes!("../experiments/planned.toml");
        let experiment = scratch.write("planned.toml", experiment).display().to_string();
        let plan = scratch.write("plan.json", bytes);
        let source = ExperimentSource {
            experiment: Some(&experiment),
            plan: Some(&plan),
            ..ExperimentSource::default()
        };
        let Ok(loaded) = open(&source) else { return };
        loaded.planned().expect("a plan that was taken can be run");
    });
}
