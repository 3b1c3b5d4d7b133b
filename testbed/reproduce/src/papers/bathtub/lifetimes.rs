//! Figures 1 and 2: the lifetimes that were recorded, and the laws fitted to them.

use dormouse_cloud::Lifetimes;
use dormouse_fit::{Curve, Family, Fit, Life, Record};
use dormouse_units::Stream;

use super::{Figures, number};

/// The hours of the day (Figure 2b).
const DAY: std::ops::Range<u32> = 8..20;
/// The last age of Figure 1, in hours.
const LAST: usize = 25;

/// The VMs of a group: `all`, or words that they have in common between `@`: a type, a zone, a workload,
/// `day` or `night`.
fn lives<'a>(group: &str, record: &'a Record) -> Vec<&'a Life> {
    let is_of = |life: &Life, word: &str| match word {
        "all" => true,
        "day" | "night" => {
            life.hour.parse().is_ok_and(|hour| DAY.contains(&hour) == (word == "day"))
        }
        _ => [&life.kind, &life.zone, &life.workload].into_iter().any(|of| of == word),
    };
    record.lives.iter().filter(|life| group.split('@').all(|word| is_of(life, word))).collect()
}

/// As many VMs of a group, each drawn among all of them.
fn resampled<'a>(group: &str, record: &'a Record, seed: u64) -> Vec<&'a Life> {
    let all = lives(group, record);
    let mut chance = Stream::named(seed, "resample", group);
    all.iter().filter_map(|_| all.get(chance.below(all.len())).copied()).collect()
}

/// The curves that a group has: of those that were preempted, as the paper's, and of all.
fn curves(lives: &[&Life]) -> [(&'static str, Curve); 2] {
    [
        ("preempted", Curve::empirical(lives.iter().copied())),
        ("kaplan-meier", Curve::kaplan_meier(lives.iter().copied())),
    ]
}

/// The bathtub fitted to those of a group that were preempted.
pub(super) fn bathtub_of(group: &str, record: &Record) -> Option<Lifetimes> {
    let curve = Curve::empirical(lives(group, record));
    Fit::of(Family::Bathtub, &curve).map(|fit| fit.lifetimes)
}

/// F of a group by a law or as seen, `GROUP/LAW`, by age.
pub(super) fn taken(of: &str, record: &Record) -> Option<Figures> {
    let (group, law) = of.split_once('/')?;
    let [(_, preempted), (_, all)] = curves(&lives(group, record));
    let by: Box<dyn Fn(f64) -> f64> = match law {
        "preempted" => Box::new(move |age| preempted.cdf(age)),
        "kaplan-meier" => Box::new(move |age| all.cdf(age)),
        _ => {
            let fit = Fit::of(law.parse().ok()?, &preempted)?;
            Box::new(move |age| fit.lifetimes.law().cdf(age))
        }
    };
    Some((0..=LAST).map(|age| (format!("age-{age}/taken"), by(number(age)))).collect())
}

/// What is seen of a group, and every fit to its preempted VMs.
pub(super) fn fits(group: &str, record: &Record) -> Option<Figures> {
    let lives = lives(group, record);
    let mut figures = Figures::new();
    let mut add = |word: &str, name: &str, x: f64| figures.insert(format!("{word}/{name}"), x);
    for (word, curve) in curves(&lives) {
        add(word, "mean_lifetime_h", curve.mean());
        add(word, "taken_3h", curve.cdf(3.0));
        add(word, "taken_12h", curve.cdf(12.0));
    }
    add("preempted", "vms", number(lives.iter().filter(|life| life.was_taken).count()));
    add("kaplan-meier", "vms", number(lives.len()));
    let curve = Curve::empirical(lives);
    for family in Family::ALL {
        let fit = Fit::of(family, &curve)?;
        let word = family.name();
        for (name, figure) in family.numbers().iter().zip(&fit.numbers) {
            add(word, name, figure.value);
        }
        add(word, "mean_lifetime_h", fit.mean.value);
        add(word, "r_squared", fit.r_squared);
    }
    Some(figures)
}

/// By how much the bathtub explains more of a resample than each other law does.
pub(super) fn resampled_fits(group: &str, record: &Record, seed: u64) -> Option<Figures> {
    let curve = Curve::empirical(resampled(group, record, seed));
    let explained = |family| Fit::of(family, &curve).map(|fit| fit.r_squared);
    let bathtub = explained(Family::Bathtub)?;
    let others = Family::ALL.into_iter().filter(|family| *family != Family::Bathtub);
    let lead = |family: Family| {
        Some((format!("{}/bathtub_lead", family.name()), bathtub - explained(family)?))
    };
    others.map(lead).collect()
}

/// By how much longer the VMs of one group live than those of another, `GROUP-over-GROUP`, hours.
pub(super) fn order(of: &str, record: &Record) -> Option<Figures> {
    longer(of, |group| Some(lives(group, record)), "longer_h")
}

/// The same of resamples of both.
pub(super) fn resampled_order(of: &str, record: &Record, seed: u64) -> Option<Figures> {
    longer(of, |group| Some(resampled(group, record, seed)), "longer_resampled_h")
}

fn longer<'a>(
    of: &str,
    lives: impl Fn(&str) -> Option<Vec<&'a Life>>,
    name: &str,
) -> Option<Figures> {
    let (one, other) = of.split_once("-over-")?;
    let (one, other) = (curves(&lives(one)?), curves(&lives(other)?));
    let more = |((word, one), (_, other)): (&(&str, Curve), &(&str, Curve))| {
        (format!("{word}/{name}"), one.mean() - other.mean())
    };
    Some(one.iter().zip(&other).map(more).collect())
}
