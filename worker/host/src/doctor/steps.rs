//! Findings from the steps of doctor's live test of this host.

use dormouse_worker::agent::AgentConfig;
use dormouse_worker::proof::{ProofStep, WorkerProof, prove_worker};

use super::cause::{FailureCircumstances, brief_failure};
use super::{Finding, FindingState, criu_program, find_task_program};
use crate::workers;

/// Runs doctor's live test of this host in this process, which becomes a worker; `None` without a task program.
pub(super) fn prove_steps(circumstances: &FailureCircumstances) -> Option<Vec<Finding>> {
    let program = find_task_program()?;
    let folder = match workers::make_folder() {
        Ok(folder) => folder,
        Err(error) => {
            let found = format!("no folder for its tasks can be made: {error}");
            return Some(vec![Finding::missing_finding("proof", found, "free some disk")]);
        }
    };
    let mut config = AgentConfig::of_nobody("doctor", folder.path().join("doctor"), program);
    config.criu = Some(criu_program());
    Some(step_findings(prove_worker(&config), circumstances))
}

fn step_findings(proof: WorkerProof, circumstances: &FailureCircumstances) -> Vec<Finding> {
    proof.steps.into_iter().map(|step| step_finding(step, circumstances)).collect()
}

fn step_finding(step: ProofStep, circumstances: &FailureCircumstances) -> Finding {
    let ProofStep { what, took, came } = step;
    let name = what.step_words();
    let finding = match came {
        Ok(words) => Finding::found_finding(name, words),
        Err(why) => {
            let cause = circumstances.find_cause(&why);
            let found = match cause.what.as_str() {
                "" => brief_failure(&why),
                what => format!("{what}: {}", brief_failure(&why)),
            };
            let state = if what.is_of_own_programs() {
                FindingState::Doubtful
            } else {
                FindingState::Missing
            };
            Finding::new(name, state, found, Some(cause.fix))
        }
    };
    let finding = finding.that_took(took);
    if what.is_of_checkpoints() { finding.of_checkpoints() } else { finding }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dormouse_worker::place::ProcessPlace;
    use dormouse_worker::proof::ProofStepKind;

    use super::super::rights::ProcessRights;
    use super::*;

    #[test]
    fn what_built_in_tasks_do_not_need_is_a_doubt() {
        let rights = ProcessRights { is_root: true, effective: u64::MAX, is_filtered: false };
        let circumstances = FailureCircumstances { place: ProcessPlace::Host, rights };
        let of = |what, came: Result<&str, &str>| {
            let came = came.map(str::to_owned).map_err(str::to_owned);
            step_finding(
                ProofStep { what, took: Duration::from_micros(12_345), came },
                &circumstances,
            )
        };
        let freeze = of(ProofStepKind::Freeze, Ok("stood still"));
        assert_eq!((freeze.state, freeze.took_us), (FindingState::Found, Some(12_345)));
        let (dump, tcp) =
            (of(ProofStepKind::Dump, Err("no")), of(ProofStepKind::Tcp, Err("sk-inet: no")));
        assert!(dump.state == FindingState::Missing && dump.for_checkpoints);
        assert!(tcp.state == FindingState::Doubtful && tcp.fix.is_some());
    }
}
