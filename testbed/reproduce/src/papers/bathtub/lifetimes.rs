//! Figures 1 and 2: the lifetimes that were recorded, and the laws fitted to them.

use dormouse_fit::{Curve, Family, Fit};

use super::draw::Draw;
use super::evidence::Evidence;
use super::order::counts;
use super::{Figures, number};

/// The last age of Figure 1, in hours.
const LAST: usize = 25;

/// F of a group by a law or as seen, `GROUP/LAW`, by age.
pub(super) fn taken(of: &str, evidence: &Evidence, draw: Draw) -> Option<Figures> {
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

/// What is seen of a group, and every fit to its preempted VMs.
pub(super) fn fits(group: &str, evidence: &Evidence, draw: Draw) -> Option<Figures> {
    let lives = evidence.lives(group, draw)?;
    let mut figures = Figures::new();
    let mut add = |word: &str, name: &str, x: f64| figures.insert(format!("{word}/{name}"), x);
    let preempted = Curve::empirical(lives.iter().copied());
    let all = Curve::kaplan_meier(lives.iter().copied());
    for (word, curve) in [("preempted", &preempted), ("kaplan-meier", &all)] {
        add(word, "mean_lifetime_h", curve.mean());
        add(word, "taken_3h", curve.cdf(3.0));
        add(word, "taken_12h", curve.cdf(12.0));
    }
    if draw == Draw::Whole {
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
