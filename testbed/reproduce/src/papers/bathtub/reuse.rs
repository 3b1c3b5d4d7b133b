//! Figures 5 to 7: probability that a job fails if a policy chooses between the present VM and a
//! new one.

use dormouse_cloud::Lifetime;
use dormouse_policies::service::{ReusePolicy, lost};

use super::draw::RecordDraw;
use super::evidence::LifetimeEvidence;
use super::{Figures, laws, number};

/// Length of the job of Figure 5, in hours.
const JOB: f64 = 6.0;
/// Number of start ages per hour over which Figure 6 takes the mean.
const AN_HOUR: usize = 4;
/// Number of start ages per hour in Figure 5.
const OF_START: usize = 2;
const LAST_START: f64 = 24.5;

/// Default law of Figures 5 and 6.
const TYPE: &str = "n1-highcpu-16";

/// The policy with this name; `Some(None)` always stays on the present VM. `None` if the name is unknown.
fn policy_named(name: &str) -> Option<Option<ReusePolicy>> {
    match name {
        "memoryless" => Some(None),
        "corrected" => Some(Some(ReusePolicy::ExpectedTimeCorrected)),
        "printed" => Some(Some(ReusePolicy::ExpectedTime)),
        "probability" => Some(Some(ReusePolicy::Probability)),
        "conditional" => Some(Some(ReusePolicy::ConditionalProbability)),
        _ => None,
    }
}

/// Probability that a job fails on the VM that it gets, given that the present VM has reached its
/// age. VMs live by `law`; the policy assumes `model`. A new VM has the age 0, which under a fitted
/// law not all VMs reach.
fn failure_probability(
    law: &dyn Lifetime,
    (policy, model): (Option<ReusePolicy>, &dyn Lifetime),
    (age, job): (f64, f64),
) -> f64 {
    let is_new = policy.is_some_and(|policy| !policy.compare(model, age, job).reuse());
    let from = if is_new { 0.0 } else { age };
    let left = 1.0 - law.cdf(from);
    if left <= 0.0 { 1.0 } else { (law.cdf(from + job) - law.cdf(from)) / left }
}

/// Names of the policy and the law in a word, `POLICY` or `POLICY@LAW`; the policy knows the law.
fn policy_and_law(name: &str) -> (&str, &str) {
    name.split_once('@').unwrap_or((name, TYPE))
}

/// Figures of a job of six hours, by the age of the present VM.
pub(super) fn by_start(
    name: &str,
    evidence: &LifetimeEvidence,
    draw: RecordDraw,
) -> Option<Figures> {
    let (name, law) = policy_and_law(name);
    let (policy, law) = (policy_named(name)?, evidence.law(law, draw)?);
    let of = |age: f64| {
        let x = failure_probability(law.law(), (policy, law.law()), (age, JOB));
        (format!("age-{age}/failure"), x)
    };
    let ages = (0..).map(|n| number(n) / number(OF_START));
    Some(ages.take_while(|age| *age <= LAST_START).map(of).collect())
}

/// Expected time of a job in hours on the VM that it gets, with at most one failure (Eq. 7 and 8,
/// given the age that the VM has reached); `None` if no VM reaches that age.
fn expected_time(
    law: &dyn Lifetime,
    (policy, model): (Option<ReusePolicy>, &dyn Lifetime),
    (age, job): (f64, f64),
) -> Option<f64> {
    let is_new = policy.is_some_and(|policy| !policy.compare(model, age, job).reuse());
    let from = if is_new { 0.0 } else { age };
    let left = 1.0 - law.cdf(from);
    (left > 0.0).then(|| job + lost(law, from, job) / left)
}

/// Factor by which a policy shortens the expected time of a job, by its length: the largest over
/// ages from 0 to 24 h.
pub(super) fn sooner_by_length(
    name: &str,
    evidence: &LifetimeEvidence,
    draw: RecordDraw,
) -> Option<Figures> {
    let (name, law) = policy_and_law(name);
    let (policy, law) = (policy_named(name)?, evidence.law(law, draw)?);
    let law = law.law();
    let of = |hours: usize| {
        let at = |n: usize| {
            let case = (number(n) / number(AN_HOUR), number(hours));
            Some(expected_time(law, (None, law), case)? / expected_time(law, (policy, law), case)?)
        };
        let most = (0..laws::LONGEST * AN_HOUR).filter_map(at).fold(1.0, f64::max);
        (format!("job-{hours}/times_sooner"), most)
    };
    Some((1..laws::LONGEST).map(of).collect())
}

/// Failure probability by length of the job: the mean over ages from 0 to 24 h.
pub(super) fn by_length(
    name: &str,
    evidence: &LifetimeEvidence,
    draw: RecordDraw,
) -> Option<Figures> {
    let (name, law) = policy_and_law(name);
    let (policy, law) = (policy_named(name)?, evidence.law(law, draw)?);
    Some(over_ages(law.law(), (policy, law.law())))
}

fn over_ages(law: &dyn Lifetime, decides: (Option<ReusePolicy>, &dyn Lifetime)) -> Figures {
    let ages = laws::LONGEST * AN_HOUR;
    let of = |hours: usize| {
        let at =
            |n| failure_probability(law, decides, (number(n) / number(AN_HOUR), number(hours)));
        (format!("job-{hours}/failure"), (0..ages).map(at).sum::<f64>() / number(ages))
    };
    (1..laws::LONGEST).map(of).collect()
}

/// Failure probability on VMs with the law of n1-highcpu-32. The policy assumes that law (`own-model`) or the law of n1-highcpu-16
/// (`other-model`); `memoryless` has no policy. The policy is the corrected Eq. 8, or the one that a suffix `-POLICY` names. With
/// `@swapped` the two types change places.
pub(super) fn by_a_wrong_model(
    name: &str,
    evidence: &LifetimeEvidence,
    draw: RecordDraw,
) -> Option<Figures> {
    let (name, types) = match name.strip_suffix("@swapped") {
        None => (name, ["n1-highcpu-32", "n1-highcpu-16"]),
        Some(name) => (name, ["n1-highcpu-16", "n1-highcpu-32"]),
    };
    let law = evidence.fit_of(types[0], draw)?;
    if name == "memoryless" {
        return Some(over_ages(law.law(), (None, law.law())));
    }
    let (is_own, by) = match (name.strip_prefix("own-model"), name.strip_prefix("other-model")) {
        (Some(by), _) => (true, by),
        (None, by) => (false, by?),
    };
    let policy = match by.strip_prefix('-') {
        None if by.is_empty() => "corrected",
        by => by?,
    };
    let other = evidence.fit_of(types[1], draw)?;
    let model = if is_own { &law } else { &other };
    Some(over_ages(law.law(), (policy_named(policy)?, model.law())))
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::Bathtub;
    use dormouse_cloud::lifetimes::span_of_hours;
    use dormouse_units::Ppm;

    use super::*;

    /// The law fitted to n1-highcpu-32 has 6 % of the VMs preempted at age 0, before any job could begin. A new VM is
    /// one that survived this.
    #[test]
    fn a_new_vm_is_one_that_is_there() {
        let h = |hours| span_of_hours(hours).expect("a span");
        let law = Bathtub { a: Ppm::new(584_600), b: h(32.85), tau1: h(0.74), tau2: h(14.79) };
        assert!((law.cdf(0.0) - 0.0634).abs() < 1e-3, "{}", law.cdf(0.0));
        for (age, job) in (0..96).flat_map(|age| (1..24).map(move |job| (age, job))) {
            let at = (number(age) / 4.0, number(job));
            let by =
                failure_probability(&law, (Some(ReusePolicy::ConditionalProbability), &law), at);
            let stays = failure_probability(&law, (None, &law), at);
            assert!(by <= stays * (1.0 + 1e-6), "{at:?}: {by} {stays}");
        }
        let anew = |age| failure_probability(&law, (Some(ReusePolicy::Never), &law), (age, 6.0));
        assert!((anew(20.0) - failure_probability(&law, (None, &law), (0.0, 6.0))).abs() < 1e-12);
    }
}
