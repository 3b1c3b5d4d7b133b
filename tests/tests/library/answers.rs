//! Schedulers that can't be asked again: a run is repeated from the answers in its log, whichever of its tenants have
//! such schedulers.

use dormouse_engine::Run;
use dormouse_experiment::{Experiment, Policies};
use dormouse_model::{Decision, Notice, Step, TenantWork};
use dormouse_policies::program::UnstartedProgram;
use dormouse_policies::{Delivery, Policy};
use dormouse_report::virtual_run::{model, play_out};
use dormouse_units::Time;

use super::runs::with;

/// A policy that a run treats like a program.
#[derive(Debug)]
struct Outside(Box<dyn Policy>);

impl Policy for Outside {
    fn hearing(&self) -> Delivery {
        self.0.hearing()
    }

    fn waits_for_price(&self) -> bool {
        true
    }

    fn is_outside(&self) -> bool {
        true
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        self.0.handle(now, heard, out);
    }
}

/// The experiment's policies; those for the work in `outside` are wrapped by `into`.
fn policies(
    experiment: &Experiment,
    outside: &[TenantWork],
    into: impl Fn(Box<dyn Policy>) -> Box<dyn Policy>,
) -> Policies {
    let all = experiment.policies(experiment.scheduler().unwrap());
    let all = all.into_iter().map(|(work, policy)| match outside.contains(&work) {
        true => (work, into(policy)),
        false => (work, policy),
    });
    all.collect()
}

fn run_of(experiment: &Experiment, policies: Policies) -> Run {
    Run::of_tenants(experiment.whole_setup(), policies)
}

#[test]
fn a_run_is_made_again_from_its_answers_whoever_is_outside() {
    let fw = ["workload.jobs=300", "workload.load=0.9"];
    let cases: [(&str, &[&str], &[TenantWork]); 8] = [
        ("j60-sc4", &[], &[TenantWork::All]),
        ("acc-live", &[], &[TenantWork::All]),
        ("bathtub-bags", &[], &[TenantWork::All]),
        ("fw-like", &fw, &[TenantWork::All]),
        ("shared-small", &[], &[TenantWork::Bag]),
        ("shared-small", &[], &[TenantWork::Jobs]),
        ("shared-background", &[], &[TenantWork::Bag, TenantWork::Jobs]),
        ("provider-j60", &[], &[TenantWork::Bag, TenantWork::Jobs]),
    ];
    for (name, set, outside) in cases {
        let experiment = with(name, set).unwrap();
        let wrapped = policies(&experiment, outside, |policy| Box::new(Outside(policy)));
        let (mut run, mut steps) = (run_of(&experiment, wrapped), Vec::<Step>::new());
        let jobs = experiment.submissions().unwrap();
        play_out(&experiment, &mut run, &mut model(&experiment), jobs, |step| {
            steps.push(step.clone());
            Ok(())
        })
        .unwrap();
        let answers = steps.iter().filter(|step| !step.answers.is_empty()).count();
        assert!(answers > 0, "{name}: nothing was decided");

        // Nobody is there to be asked: what was decided is in the steps.
        let answered = |policy: Box<dyn Policy>| -> Box<dyn Policy> {
            Box::new(UnstartedProgram::new(policy.hearing()))
        };
        let mut again = run_of(&experiment, policies(&experiment, outside, answered));
        for step in &steps {
            assert_eq!(again.handle_again(step).0, *step, "{name} {outside:?}");
        }
        assert_eq!(
            (again.digest(), again.failure_reason()),
            (run.digest(), None),
            "{name} {outside:?}"
        );

        // Who follows the log is asked what it does not have, and only that.
        let half = steps.len() / 2;
        let wrapped = policies(&experiment, outside, |policy| Box::new(Remembers::new(policy)));
        let (mut resumed, mut seen) = (run_of(&experiment, wrapped), Vec::<Step>::new());
        resumed.follow_steps(steps[..half].to_vec());
        let jobs = experiment.submissions().unwrap();
        play_out(&experiment, &mut resumed, &mut model(&experiment), jobs, |step| {
            seen.push(step.clone());
            Ok(())
        })
        .unwrap();
        assert!(seen == steps, "{name} {outside:?}: it went another way");

        // Another log is no log of this run.
        let mut other = steps[..half].to_vec();
        let changed = other.iter_mut().rev().find(|step| !step.answers.is_empty()).unwrap();
        changed.decisions.pop();
        let mut refused = run_of(&experiment, policies(&experiment, outside, answered));
        refused.follow_steps(other);
        let jobs = experiment.submissions().unwrap();
        let end = play_out(&experiment, &mut refused, &mut model(&experiment), jobs, |_| Ok(()));
        assert!(end.unwrap_err().to_string().contains("comes out otherwise now"), "{name}");
    }
}

/// A policy that is told its former decisions again, and must not be asked for them.
#[derive(Debug)]
struct Remembers {
    own: Box<dyn Policy>,
    failure: Option<String>,
}

impl Remembers {
    fn new(own: Box<dyn Policy>) -> Self {
        Self { own, failure: None }
    }
}

impl Policy for Remembers {
    fn hearing(&self) -> Delivery {
        self.own.hearing()
    }

    fn waits_for_price(&self) -> bool {
        true
    }

    fn is_outside(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn hear_again(&mut self, now: Time, heard: &[Notice], decided: &[Decision]) {
        let mut again = Vec::new();
        self.own.handle(now, heard, &mut again);
        if again != decided {
            self.failure = Some(format!("at {now} {heard:?}: {decided:?} then, {again:?} now"));
        }
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        self.own.handle(now, heard, out);
    }
}
