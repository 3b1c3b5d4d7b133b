//! Evidence for the paper's figures: the record of lifetimes, if given, and the laws fitted to it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use dormouse_cloud::Lifetimes;
use dormouse_fit::{Curve, Family, Fit, Record, RecordedLife};

use super::draw::RecordDraw;
use super::laws;

/// Hours that count as day and not as night (Figure 2b): from 8 AM to 8 PM by the clock of the VM's zone.
const DAY: std::ops::Range<u32> = 8..20;

/// The record of lifetimes, with the laws fitted to it and to its resamples, each computed once.
#[derive(Debug, Default)]
pub(in crate::papers) struct LifetimeEvidence {
    record: Option<Record>,
    fits: Mutex<BTreeMap<(String, Family, RecordDraw), Option<Fit>>>,
    laws: Mutex<BTreeMap<(String, RecordDraw), Option<Lifetimes>>>,
}

impl LifetimeEvidence {
    /// Evidence from a record; without one there are only the published laws.
    pub(in crate::papers) fn new(record: Option<Record>) -> Self {
        Self { record, ..Self::default() }
    }

    /// VMs of a group: `all`, or common properties separated by `@`: a type, a zone, a workload,
    /// `day` or `night` of their launch. Empty without a record.
    fn vms_of_group(&self, group: &str) -> Vec<&RecordedLife> {
        let is_of = |life: &RecordedLife, word: &str| match word {
            "all" => true,
            "day" | "night" => {
                life.hour.parse().is_ok_and(|hour| DAY.contains(&hour) == (word == "day"))
            }
            _ => [&life.kind, &life.zone, &life.workload].into_iter().any(|of| of == word),
        };
        let lives = self.record.iter().flat_map(|record| &record.lives);
        lives.filter(|life| group.split('@').all(|word| is_of(life, word))).collect()
    }

    /// VMs of a group or of its resample; `None` without a record.
    pub(super) fn lives(&self, group: &str, draw: RecordDraw) -> Option<Vec<&RecordedLife>> {
        self.record.as_ref().map(|_| draw.pick(group, self.vms_of_group(group)))
    }

    /// A law fitted to the preempted VMs of a group or of its resample; the fit to a resample starts from the fit to the group.
    /// `None` without a record, or if the law can't be fitted.
    pub(super) fn fit(&self, group: &str, family: Family, draw: RecordDraw) -> Option<Fit> {
        let key = (group.to_owned(), family, draw);
        let known = self.fits.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(fit) = known {
            return fit;
        }
        let curve = Curve::empirical(self.lives(group, draw)?);
        let fit = match draw {
            RecordDraw::Whole => Fit::to_curve(family, &curve),
            RecordDraw::Resample(_) => {
                self.fit(group, family, RecordDraw::Whole).and_then(|whole| whole.again(&curve))
            }
        };
        self.fits.lock().unwrap_or_else(PoisonError::into_inner).insert(key, fit.clone());
        fit
    }

    /// The bathtub fitted to the preempted VMs of a group, even if there is a published law with
    /// that name.
    pub(super) fn fit_of(&self, group: &str, draw: RecordDraw) -> Option<Lifetimes> {
        self.fit(group, Family::Bathtub, draw).map(|fit| fit.lifetimes)
    }

    /// The law with this name: a published one, or the bathtub fitted to the group with this name. `None` if there is neither.
    pub(super) fn law(&self, name: &str, draw: RecordDraw) -> Option<Lifetimes> {
        let key = (name.to_owned(), draw);
        let known = self.laws.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(law) = known {
            return law;
        }
        let law = match laws::published(name) {
            Some(published) => published.drawn(name, draw),
            None => self.fit_of(name, draw),
        };
        self.laws.lock().unwrap_or_else(PoisonError::into_inner).insert(key, law.clone());
        law
    }
}
