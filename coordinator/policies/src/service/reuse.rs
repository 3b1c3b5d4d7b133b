//! The choice between a VM that is there and a new one for a job (bathtub paper, Eq. 8).

use dormouse_cloud::Lifetime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::running_time::lost;

/// Rule by which a job of T hours compares an idle VM of age s with a new VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReusePolicy {
    /// T + ∫ t f(t) dt from s to s + T, as Eq. 8 is printed: a VM's whole age counts as lost, though the
    /// job has not run for so long, and it counts as if nobody knew that it has lived to s.
    ExpectedTime,
    /// T + ∫ (t − s) f(t) dt / (1 − F(s)): what the job loses, on a VM that has lived to s.
    #[default]
    ExpectedTimeCorrected,
    /// F(s + T) − F(s), the chance of a failure as the authors' code takes it: not given that the VM has
    /// lived to s.
    Probability,
    /// (F(s + T) − F(s)) / (1 − F(s)), the chance of a failure given that the VM has lived to s.
    ConditionalProbability,
    /// A job always takes an existing VM, whatever the VM's age: as if lifetimes had no memory.
    Always,
    /// Every job takes a new VM.
    Never,
}

/// Both sides of the comparison of an idle VM and a new one, in hours or as probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReuseComparison {
    /// Value for the existing VM, in hours or as a probability; less is better.
    pub here: f64,
    /// Value for a new VM, in hours or as a probability; less is better.
    pub anew: f64,
}

impl ReuseComparison {
    /// True if the existing VM is at least as good as a new one. Values that differ by less than a
    /// millionth count as equal: under a law without memory all ages should have equal values, but rounding
    /// makes them differ.
    #[must_use]
    pub fn reuse(&self) -> bool {
        self.here <= self.anew * (1.0 + 1e-6)
    }
}

impl ReusePolicy {
    /// Quantity that the two sides compare, in words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::ExpectedTime => "expected time as Eq. 8 is printed, h",
            Self::ExpectedTimeCorrected => "expected time, h",
            Self::Probability => "chance of a failure, unconditional",
            Self::ConditionalProbability => "chance of a failure",
            Self::Always | Self::Never => "whatever the age",
        }
    }

    /// Compares a VM of `age` hours with a new one for a job of `job` hours. A VM that can't live long enough for the job counts as
    /// infinitely bad, except under the policy `Always`.
    #[must_use]
    pub fn compare(self, law: &dyn Lifetime, age: f64, job: f64) -> ReuseComparison {
        match self {
            Self::Always => ReuseComparison { here: 0.0, anew: 0.0 },
            Self::Never => ReuseComparison { here: f64::INFINITY, anew: 0.0 },
            _ => ReuseComparison { here: self.cost(law, age, job), anew: self.cost(law, 0.0, job) },
        }
    }

    fn cost(self, law: &dyn Lifetime, age: f64, job: f64) -> f64 {
        let left = 1.0 - law.cdf(age);
        let ends_on_a_new_one = law.cdf(job) < 1.0;
        if left <= 0.0 || (ends_on_a_new_one && law.cdf(age + job) >= 1.0) {
            return f64::INFINITY;
        }
        match self {
            Self::ExpectedTime => job + law.hours_lived(age + job) - law.hours_lived(age),
            Self::ExpectedTimeCorrected => job + lost(law, age, job) / left,
            Self::Probability => law.cdf(age + job) - law.cdf(age),
            Self::ConditionalProbability => (law.cdf(age + job) - law.cdf(age)) / left,
            Self::Always | Self::Never => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::{Bathtub, Exponential, Uniform};
    use dormouse_units::{Ppm, Span};

    use super::super::{running_time, wasted};
    use super::*;

    fn bathtub() -> Bathtub {
        let s = Span::from_secs;
        Bathtub { a: Ppm::new(413_700), b: s(86_400), tau1: s(3_240), tau2: s(2_736) }
    }

    #[test]
    fn a_job_goes_to_a_vm_in_the_middle_of_its_life() {
        let law = bathtub();
        for policy in [
            ReusePolicy::ExpectedTimeCorrected,
            ReusePolicy::Probability,
            ReusePolicy::ConditionalProbability,
        ] {
            // For a job of six hours, Figure 5 has the change at 18 h.
            for (age, reuse) in
                [(1.0, true), (6.0, true), (16.0, true), (19.0, false), (23.0, false)]
            {
                assert_eq!(policy.compare(&law, age, 6.0).reuse(), reuse, "{policy:?} {age}");
            }
        }
        // As printed, a failure at the age of 18 h costs 18 h, so that old VMs are given up too soon.
        let changes = |policy: ReusePolicy| {
            (0..240)
                .map(|n| f64::from(n) / 10.0)
                .find(|age| *age > 3.0 && !policy.compare(&law, *age, 6.0).reuse())
        };
        let [text, corrected] =
            [ReusePolicy::ExpectedTime, ReusePolicy::ExpectedTimeCorrected].map(changes);
        assert!(text < corrected, "{text:?} {corrected:?}");
        // A VM on which the job can't end is not taken either, though little work would be lost.
        for policy in [
            ReusePolicy::ExpectedTime,
            ReusePolicy::ExpectedTimeCorrected,
            ReusePolicy::Probability,
            ReusePolicy::ConditionalProbability,
        ] {
            assert!(!policy.compare(&law, 24.2, 6.0).reuse(), "{policy:?}");
        }
        // A VM older than any lives is not taken, whatever is compared.
        assert!(!ReusePolicy::ExpectedTime.compare(&law, 25.0, 1.0).reuse());
    }

    /// Under `ConditionalProbability` no job fails more often than without a reuse policy (Figures 5 to 7).
    #[test]
    fn by_the_chance_of_a_failure_no_job_fails_more_often_than_without_a_policy() {
        let law = bathtub();
        let fails = |age: f64, job: f64| (law.cdf(age + job) - law.cdf(age)) / (1.0 - law.cdf(age));
        for (age, job) in (0..96).flat_map(|age| (1..24).map(move |job| (age, job))) {
            let (age, job) = (f64::from(age) / 4.0, f64::from(job));
            let by = ReusePolicy::ConditionalProbability.compare(&law, age, job);
            let failure = if by.reuse() { fails(age, job) } else { fails(0.0, job) };
            assert!(failure <= fails(age, job) * (1.0 + 1e-6), "{age} {job}: {failure}");
        }
    }

    #[test]
    fn memory_decides() {
        let forgetful = Exponential { mean: Span::from_secs(36_000) };
        for age in [0.0, 5.0, 50.0] {
            let ReuseComparison { here, anew } =
                ReusePolicy::default().compare(&forgetful, age, 3.0);
            assert!((here - anew).abs() < 1e-9, "{here} {anew}");
        }
        for n in 0_u32..200 {
            let reuse = ReusePolicy::default().compare(&forgetful, f64::from(n) / 2.0, 3.0);
            assert!(reuse.reuse(), "{reuse:?}");
        }
        // Under a uniform law to 24 h, half of the job is lost in the mean failure.
        let uniform = Uniform { from: Span::ZERO, to: Span::from_secs(86_400) };
        assert!((running_time(&uniform, 10.0) - (10.0 + 100.0 / 48.0)).abs() < 1e-9);
        assert!((wasted(&uniform, 10.0).unwrap_or_default() - 5.0).abs() < 1e-9);
        // The claim of section 4.1: at 10 h the bathtub costs half an hour, the uniform law two.
        let costs = running_time(&bathtub(), 10.0) - 10.0;
        assert!((0.3..0.7).contains(&costs), "{costs}");
    }
}
