//! Findings from the steps of the proof.

use dormouse_worker::agent::Config;
use dormouse_worker::proof::{Proof, Step, prove};

use super::cause::{FailureCircumstances, brief_failure};
use super::{Finding, State, criu_program, find_task_program};
use crate::workers;

/// Runs the proof in this process, which becomes a worker; `None` without a task program.
pub(super) fn prove_steps(circumstances: &FailureCircumstances) -> Option<Vec<Finding>> {
    let program = find_task_program()?;
    let folder = match workers::make_folder() {
        Ok(folder) => folder,
        Err(error) => {
            let found = format!("no folder for its tasks can be made: {error}");
            return Some(vec![Finding::missing_finding("proof", found, "free some disk")]);
        }
    };
    let mut config = Config::of_nobody("doctor", folder.path().join("doctor"), program);
    config.criu = Some(criu_program());
    Some(step_findings(prove(&config), circumstances))
}

fn step_findings(proof: Proof, circumstances: &FailureCircumstances) -> Vec<Finding> {
    proof.steps.into_iter().map(|step| step_finding(step, circumstances)).collect()
}

fn step_finding(step: Step, circumstances: &FailureCircumstances) -> Finding {
    let Step { what, took, came } = step;
    let name = what.words();
    let finding = match came {
        Ok(words) => Finding::found_finding(name, words),
        Err(why) => {
            let cause = circumstances.find_cause(&why);
            let found = match cause.what.as_str() {
                "" => brief_failure(&why),
                what => format!("{what}: {}", brief_failure(&why)),
            };
            let state = if what.is_of_own_programs() { State::Doubtful } else { State::Missing };
            Finding::new(name, state, found, Some(cause.fix))
        }
    };
    let finding = finding.that_took(took);
    if what.is_of_checkpoints() { finding.of_checkpoints() } else { finding }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dormouse_worker::place::Place;
    use dormouse_worker::proof::What;

    use super::super::rights::ProcessRights;
    use super::*;

    #[test]
    fn what_built_in_tasks_do_not_need_is_a_doubt() {
        let rights = ProcessRights { is_root: true, effective: u64::MAX, is_filtered: false };
        let circumstances = FailureCircumstances { place: Place::Host, rights };
        let of = |what, came: Result<&str, &str>| {
            let came = came.map(str::to_owned).map_err(str::to_owned);
            step_finding(Step { what, took: Duration::from_micros(12_345), came }, &circumstances)
        };
        let freeze = of(What::Freeze, Ok("stood still"));
        assert_eq!((freeze.state, freeze.took_us), (State::Found, Some(12_345)));
        let (dump, tcp) = (of(What::Dump, Err("no")), of(What::Tcp, Err("sk-inet: no")));
        assert!(dump.state == State::Missing && dump.for_checkpoints);
        assert!(tcp.state == State::Doubtful && tcp.fix.is_some());
    }
}
