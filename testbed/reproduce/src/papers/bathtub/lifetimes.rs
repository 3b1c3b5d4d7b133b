//! Figures 1 and 2: recorded lifetimes, and the laws fitted to them.

use dormouse_fit::{Curve, Family, Fit};

use super::draw::RecordDraw;
use super::evidence::LifetimeEvidence;
use super::order::counts;
use super::{Figures, number};

/// Last age of Figure 1, in hours.
const LAST: usize = 25;

/// Distribution function F of a group's lifetimes at each hour of age, by a fitted law or as recorded (`GROUP/LAW`); `None` if
/// there is no such case.
pub(super) fn taken(of: &str, evidence: &LifetimeEvidence, draw: RecordDraw) -> Option<Figures> {
    let (group, law) = of.split_once('/')?;
    let lives = evidence.lives(group, draw)?;
    let by: Box<dyn Fn(f64) -> f64> = match law {
        "preempted" => {
            let seen = Curve::empirical(lives);
            Box::new(move |age| seen.cdf(age))
        }
        "kaplan-meier" => {
            let seen = Curve::kaplan_meier(lives);
            Box::new(move |age| seen.cdf(age))
        }
        _ => {
            let fit = evidence.fit(group, law.parse().ok()?, draw)?;
            Box::new(move |age| fit.lifetimes.law().cdf(age))
        }
    };
    Some((0..=LAST).map(|age| (format!("age-{age}/taken"), by(number(age)))).collect())
}

/// End of the first phase of a VM's life in hours, by section 3.1.
const EARLY: f64 = 3.0;
/// Beginning of the last phase in hours. The text does not give it; we let the last phase before 24 h be as long as the first.
const LATE: f64 = 21.0;
/// Longest lifetime of a VM, in hours.
const DAY: f64 = 24.0;

/// Shares of the VMs (0 to 1) that are preempted by the end of each of the three phases of a VM's life.
struct FailurePhases {
    early: f64,
    middle: f64,
}

impl FailurePhases {
    /// Returns the phases of a lifetime distribution `cdf`, a function of the age in hours.
    fn of(cdf: &dyn Fn(f64) -> f64) -> Self {
        Self { early: cdf(EARLY), middle: cdf(LATE) }
    }

    /// Preemptions in per cent of all VMs per hour: the rate in the first or the last phase, whichever is lower, minus the rate in
    /// the middle phase. It is positive only if there are three phases.
    fn contrast(&self) -> f64 {
        let Self { early, middle } = *self;
        let middle_rate = (middle - early) / (LATE - EARLY);
        let [first, last] = [early / EARLY, (1.0 - middle) / (DAY - LATE)];
        100.0 * (first.min(last) - middle_rate)
    }

    /// Excess of the preemption rate per hour of surviving VMs in the first phase over the middle; 0 if the preemption
    /// rate does not depend on age. The part of VMs that survive a phase counts as at least one in a thousand.
    fn early_hazard_more(&self) -> f64 {
        let left = |taken: f64| (1.0 - taken).max(1e-3);
        let early = -left(self.early).ln() / EARLY;
        let middle = (left(self.early) / left(self.middle)).ln() / (LATE - EARLY);
        early - middle
    }
}

/// Figures of a group's recorded lifetimes, and of all laws fitted to its preempted VMs; `None` without a record.
pub(super) fn fits(group: &str, evidence: &LifetimeEvidence, draw: RecordDraw) -> Option<Figures> {
    let lives = evidence.lives(group, draw)?;
    let mut figures = Figures::new();
    let mut add = |word: &str, name: &str, x: f64| figures.insert(format!("{word}/{name}"), x);
    let preempted = Curve::empirical(lives.iter().copied());
    let all = Curve::kaplan_meier(lives.iter().copied());
    for (word, curve) in [("preempted", &preempted), ("kaplan-meier", &all)] {
        add(word, "mean_lifetime_h", curve.mean());
        add(word, "taken_3h", curve.cdf(3.0));
        add(word, "taken_12h", curve.cdf(12.0));
        let phases = FailurePhases::of(&|age| curve.cdf(age));
        add(word, "phases_pct_an_hour", phases.contrast());
        add(word, "early_hazard_more_an_hour", phases.early_hazard_more());
    }
    if draw == RecordDraw::Whole {
        let (vms, taken) = counts(&lives);
        add("preempted", "vms", taken);
        add("kaplan-meier", "vms", vms);
    }
    let ranked = preempted.by_rank();
    let fit = |family| {
        let fit = evidence.fit(group, family, draw)?;
        // By the other convention the lowest point is next to this one.
        let by_rank = fit.again(&ranked)?;
        Some((fit, by_rank))
    };
    let bathtub = fit(Family::Bathtub);
    for family in Family::ALL {
        let Some((here, there)) = fit(family) else { continue };
        let word = family.name();
        let mut of_fit = |fit: &Fit, ending: &str| {
            for (name, figure) in family.numbers().iter().zip(&fit.numbers) {
                add(word, &format!("{name}{ending}"), figure.value);
            }
            add(word, &format!("mean_lifetime_h{ending}"), fit.mean.value);
            add(word, &format!("r_squared{ending}"), fit.r_squared);
        };
        of_fit(&here, "");
        of_fit(&there, "_by_rank");
        if let Some((of, by_rank)) = &bathtub
            && family != Family::Bathtub
        {
            add(word, "bathtub_lead", of.r_squared - here.r_squared);
            add(word, "bathtub_lead_by_rank", by_rank.r_squared - there.r_squared);
        }
    }
    Some(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_phases_are_told_from_two_and_from_none() {
        let of = |cdf: &dyn Fn(f64) -> f64| {
            let phases = FailurePhases::of(cdf);
            (phases.contrast(), phases.early_hazard_more())
        };
        let (uniform, exponential) = (|age: f64| age / DAY, |age: f64| 1.0 - (-age / 9.0).exp());
        assert!(of(&uniform).0.abs() < 1e-9);
        // Many early and fewer and fewer later: no third phase; and no memory.
        assert!(of(&exponential).0 < -0.1 && of(&exponential).1.abs() < 1e-9);
        // .3 in the first 3 h, .2 in the next 18, .5 in the last 3.
        let bathtub = |age: f64| if age < 3.0 { age / 10.0 } else { 0.3 + (age - 3.0) / 90.0 };
        let (contrast, hazard) = of(&bathtub);
        assert!((contrast - 100.0 * (0.1 - 0.2 / 18.0)).abs() < 1e-9, "{contrast}");
        let wanted = -(0.7_f64.ln()) / 3.0 - (0.7_f64 / 0.5).ln() / 18.0;
        assert!((hazard - wanted).abs() < 1e-9, "{hazard}");
    }
}
