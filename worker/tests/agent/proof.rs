//! The proof that this host can run live.

use std::{fs, path::Path};

use dormouse_worker::{
    agent::AgentConfig,
    proof::{ProofStep, ProofStepKind, WorkerProof, prove_worker},
};

use crate::{agent::task_program, harness::criu_program};

/// The proof of a worker whose tasks run this program.
fn proof(program: &Path, criu: Option<&Path>) -> WorkerProof {
    let root = tempfile::tempdir().unwrap();
    let mut config = AgentConfig::of_nobody("doctor", root.path(), program);
    config.criu = criu.map(Path::to_owned);
    prove_worker(&config)
}

fn failed(proof: &WorkerProof) -> Vec<&ProofStep> {
    proof.steps.iter().filter(|step| step.came.is_err()).collect()
}

fn nothing_is_left() {
    let part = format!("-{}-", std::process::id());
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mounts = mounts.lines().filter(|line| line.starts_with("cgroup"));
    for mount in mounts.filter_map(|line| line.split(' ').nth(1)) {
        for entry in fs::read_dir(mount).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            assert!(!(name.starts_with("dormouse-") && name.contains(&part)), "{mount}/{name}");
        }
    }
}

pub(crate) fn a_host_is_proved() {
    let proof = proof(&task_program(), Some(&criu_program()));
    for step in failed(&proof) {
        // An older CRIU can't, on a newer kernel.
        assert_eq!(step.what, ProofStepKind::Tcp, "{step:?}");
    }
    let gone: Vec<_> = proof.steps.iter().map(|step| step.what).collect();
    use ProofStepKind::{Answer, CleanUp, Clock, Dump, Files, Freeze, Groups, Jail, Launch};
    use ProofStepKind::{Restore, Tcp, Thaw, Threads};
    let all = [
        Groups, Launch, Jail, Freeze, Thaw, Dump, Restore, Answer, Threads, Tcp, Clock, Files,
        CleanUp,
    ];
    assert_eq!(gone, all);
    nothing_is_left();
}

pub(crate) fn a_host_without_criu_is_proved_without_checkpoints() {
    let proof = proof(&task_program(), None);
    assert!(failed(&proof).is_empty(), "{proof:?}");
    assert!(proof.steps.iter().all(|step| !step.what.is_of_checkpoints()), "{proof:?}");
    nothing_is_left();
}

pub(crate) fn a_program_that_does_nothing_is_no_proof() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("nothing");
    fs::write(&program, "#!/bin/sh\necho not today >&2\n").unwrap();
    let proof = proof(&program, None);
    let failed = failed(&proof);
    assert!(matches!(&failed[..], [step] if step.what == ProofStepKind::Launch), "{proof:?}");
    let why = failed[0].came.as_ref().unwrap_err();
    assert!(why.contains("not today"), "{why}");
    nothing_is_left();
}
