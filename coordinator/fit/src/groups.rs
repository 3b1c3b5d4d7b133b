//! Groups of a file's VMs: all VMs, and those with a common property.

use std::collections::BTreeMap;

use dormouse_units::RandomStream;

use crate::{Curve, Family, Fit, FittedNumber, Record, RecordedLife};

/// Property by which VMs are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// VMs are grouped by their instance type.
    Type,
    /// VMs are grouped by the zone in which they ran.
    Zone,
    /// VMs are grouped by the hour of the day in which they were launched.
    Hour,
    /// VMs are grouped by their workload, such as `idle`.
    Workload,
}

/// Choice of a group's VMs that a curve is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The curve is made of the preempted VMs only, as in the bathtub paper (HPDC 2020).
    Preempted,
    /// The curve is made of all VMs (Kaplan and Meier): a VM that its user stopped counts for as long as it ran.
    KaplanMeier,
}

/// Options for groups and their fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOptions {
    /// Property by which VMs are grouped, in addition to the group of all VMs; `None`: there is only the group of all
    /// VMs.
    pub by: Option<By>,
    /// Number of resamples for the intervals; 0: no intervals.
    pub resamples: u32,
    /// The seed of the resamples.
    pub seed: u64,
}

/// One figure of a fit, for tables.
#[derive(Clone, Debug, PartialEq)]
pub struct FitRow {
    /// Group, choice of VMs and law: `n1-highcpu-16/preempted/bathtub`.
    pub case: String,
    /// Name of the figure, with its unit.
    pub metric: &'static str,
    /// The figure and its interval.
    pub figure: FittedNumber,
    /// Number of VMs that the law was fitted to.
    pub vms: usize,
}

/// VMs that have a property in common, or all VMs.
#[derive(Clone, Debug, PartialEq)]
pub struct LifeGroup {
    /// Value of the property, such as `n1-highcpu-16`; `None`: the group has all VMs.
    pub of: Option<String>,
    /// Curve and fits of the group's preempted VMs.
    pub preempted: Estimated,
    /// Curve and fits of all VMs of the group.
    pub all: Estimated,
}

/// A curve with the laws fitted to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimated {
    /// Choice of the group's VMs that the curve is made of.
    pub of: Of,
    /// Number of VMs from whose lifetimes the curve is made.
    pub vms: usize,
    /// The distribution of the group's lifetimes.
    pub curve: Curve,
    /// The fits, in the order of [`Family::ALL`]; families with more numbers than the data supports
    /// are missing.
    pub fits: Vec<Fit>,
}

impl By {
    const ALL: [Self; 4] = [Self::Type, Self::Zone, Self::Hour, Self::Workload];

    /// Name of the property by which VMs are grouped, on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Zone => "zone",
            Self::Hour => "hour",
            Self::Workload => "workload",
        }
    }

    fn group_of(self, life: &RecordedLife) -> &str {
        match self {
            Self::Type => &life.kind,
            Self::Zone => &life.zone,
            Self::Hour => &life.hour,
            Self::Workload => &life.workload,
        }
    }
}

impl std::str::FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|by| by.name() == text);
        found.ok_or_else(|| "write type, zone, hour or workload".to_owned())
    }
}

impl Of {
    /// Both choices of VMs; that of the bathtub paper, only preempted VMs, comes first.
    pub const ALL: [Self; 2] = [Self::Preempted, Self::KaplanMeier];

    /// Description of the choice of VMs, in a sentence.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Preempted => "Preempted VMs alone, as the paper fits them",
            Self::KaplanMeier => {
                "All VMs (Kaplan-Meier): what users stopped counts as long as it was there"
            }
        }
    }

    /// Name of this choice of VMs: `preempted` or `kaplan-meier`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Preempted => "preempted",
            Self::KaplanMeier => "kaplan-meier",
        }
    }
}

impl LifeGroup {
    /// Name of the group, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.of.as_deref() {
            None => "all",
            Some("") => "not said",
            Some(name) => name,
        }
    }

    /// Curve and fits of the group's VMs that `of` chooses.
    #[must_use]
    pub const fn estimated(&self, of: Of) -> &Estimated {
        match of {
            Of::Preempted => &self.preempted,
            Of::KaplanMeier => &self.all,
        }
    }

    /// All figures of all fits of the group.
    #[must_use]
    pub fn rows(&self) -> Vec<FitRow> {
        let of_fit = |estimated: &Estimated, fit: &Fit| {
            let case = [self.name(), estimated.of.name(), fit.family.name()].join("/");
            let named = fit.family.numbers().iter().copied().zip(fit.numbers.iter().copied());
            let others = [
                ("mean_lifetime_h", fit.mean),
                ("eq3_24h_h", FittedNumber::exact(fit.eq3)),
                ("r_squared", FittedNumber::exact(fit.r_squared)),
            ];
            let vms = estimated.vms;
            let row = move |(metric, figure)| FitRow { case: case.clone(), metric, figure, vms };
            named.chain(others).map(row).collect::<Vec<_>>()
        };
        let each = Of::ALL.map(|of| self.estimated(of)).into_iter();
        each.flat_map(|e| e.fits.iter().flat_map(move |fit| of_fit(e, fit))).collect()
    }

    fn new(of: Option<String>, lives: &[&RecordedLife], asked: &GroupOptions) -> Self {
        let name = of.as_deref().unwrap_or_default();
        let taken: Vec<&RecordedLife> =
            lives.iter().copied().filter(|life| life.was_taken).collect();
        Self {
            preempted: Estimated::new(Of::Preempted, &taken, name, asked),
            all: Estimated::new(Of::KaplanMeier, lives, name, asked),
            of,
        }
    }
}

impl Estimated {
    fn new(of: Of, lives: &[&RecordedLife], group: &str, asked: &GroupOptions) -> Self {
        let curve = Curve::kaplan_meier(lives.iter().copied());
        let mut chance = RandomStream::named_stream(asked.seed, of.name(), group);
        let mut resample = |_| {
            let again = lives.iter().filter_map(|_| lives.get(chance.draw_below(lives.len())));
            Curve::kaplan_meier(again.copied())
        };
        let resampled: Vec<Curve> = (0..asked.resamples).map(&mut resample).collect();
        let fits = Family::ALL
            .into_iter()
            .filter_map(|family| Some(Fit::to_curve(family, &curve)?.with_intervals(&resampled)))
            .collect();
        Self { of, vms: lives.len(), curve, fits }
    }

    /// The fit of this family, if there is one.
    #[must_use]
    pub fn fit(&self, family: Family) -> Option<&Fit> {
        self.fits.iter().find(|fit| fit.family == family)
    }
}

/// The group of all VMs, and the groups by property, sorted by name with trailing numbers compared
/// as numbers.
#[must_use]
pub fn groups(record: &Record, asked: &GroupOptions) -> Vec<LifeGroup> {
    let mut named: BTreeMap<(&str, u64, &str), Vec<&RecordedLife>> = BTreeMap::new();
    for (life, by) in record.lives.iter().zip(std::iter::repeat(asked.by)) {
        if let Some(by) = by {
            named.entry(in_order(by.group_of(life))).or_default().push(life);
        }
    }
    let all: Vec<&RecordedLife> = record.lives.iter().collect();
    let named = named.into_iter().map(|((.., name), lives)| (Some(name.to_owned()), lives));
    [(None, all)]
        .into_iter()
        .chain(named)
        .map(|(of, lives)| LifeGroup::new(of, &lives, asked))
        .collect()
}

/// Sort key of a name: `n1-highcpu-2` comes before `n1-highcpu-16`.
fn in_order(name: &str) -> (&str, u64, &str) {
    let words = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (words, name[words.len()..].parse().unwrap_or(0), name)
}

#[cfg(test)]
mod tests {
    use dormouse_units::Span;

    use super::*;

    fn record() -> Record {
        let life = |n: u64| RecordedLife {
            span: Span::from_secs(n * n * 60),
            was_taken: !n.is_multiple_of(3),
            kind: ["n1-16", "n1-2", ""][usize::try_from(n % 3).unwrap_or(0)].to_owned(),
            hour: (n % 24).to_string(),
            ..RecordedLife::default()
        };
        Record { lives: (1..=60).map(life).collect(), ..Record::default() }
    }

    const ASKED: GroupOptions = GroupOptions { by: Some(By::Type), resamples: 0, seed: 1 };

    #[test]
    fn vms_are_put_together_by_what_they_have_in_common() {
        let all = groups(&record(), &ASKED);
        let said: Vec<_> = all.iter().map(|g| (g.name(), g.all.vms, g.preempted.vms)).collect();
        assert_eq!(
            said,
            [("all", 60, 40), ("not said", 20, 20), ("n1-2", 20, 20), ("n1-16", 20, 0)]
        );
        // No VM was taken: there is nothing to fit.
        let [preempted, both] = Of::ALL.map(|of| all[3].estimated(of));
        assert!([preempted, both].iter().all(|e| e.fits.is_empty() && e.curve == Curve::default()));
        // No VM was stopped: both choices are the same.
        let [preempted, both] = Of::ALL.map(|of| all[2].estimated(of));
        assert_eq!((&preempted.curve, &preempted.fits), (&both.curve, &both.fits));
        assert!(all[0].all.curve.cdf(99.0) < all[0].preempted.curve.cdf(99.0));
        let hours = groups(&record(), &GroupOptions { by: Some(By::Hour), ..ASKED });
        let names: Vec<_> = hours.iter().skip(1).map(|g| g.name().to_owned()).collect();
        assert_eq!(names, (0..24).map(|hour| hour.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn the_order_of_rows_changes_nothing_and_intervals_hold_their_number() {
        let asked = GroupOptions { by: None, resamples: 50, seed: 1 };
        let mut turned = record();
        turned.lives.reverse();
        let [first, second] =
            [&record(), &turned].map(|r| groups(r, &GroupOptions { resamples: 0, ..asked }));
        assert_eq!(first, second);
        let with = groups(&record(), &asked);
        assert_eq!(with, groups(&record(), &asked));
        for fit in &with[0].preempted.fits {
            for number in &fit.numbers {
                let (low, high) = number.ci95.expect("an interval");
                assert!(low <= high, "{fit:?}");
            }
            let (low, high) = fit.mean.ci95.expect("an interval");
            assert!((low..=high).contains(&fit.mean.value), "{fit:?}");
        }
    }
}
