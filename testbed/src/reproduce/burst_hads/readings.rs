//! What the tables and claims become if the text is read otherwise, everywhere at once.

use dormouse_units::Money;

use super::claims::{Claim, claims};
use super::compare::{COST, MAKESPAN, rows};
use super::factors::{
    BOOT_BILLED, BURST_ON_FREE_VCPUS, BURSTABLES_UNPAID, EVENTS_AS_EMULATED, EVENTS_OF_THE_MARKET,
    Factor, HADS_AT_ONCE, NO_BURSTABLES,
};
use super::run::Base;
use super::{Results, Target};
use crate::experiment::InputError;
use crate::sweep::{Cell, Samples};

/// A reading, and what came of it.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The factors that it changes; none: ours.
    pub factors: Vec<&'static str>,
    /// What they change, in words.
    pub about: String,
    /// How many costs and makespans are more than 15 % off, of how many.
    pub off: (usize, usize),
    /// Hibernations, resumes, and later on-demand VMs of Burst-HADS and of HADS, a run of
    /// Table VI: the paper's and ours.
    pub counts: [(f64, f64); 4],
    /// The claims.
    pub claims: Vec<Claim>,
}

impl Reading {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        if self.factors.is_empty() { "ours".to_owned() } else { self.factors.join(" + ") }
    }
}

const READINGS: [&[Factor]; 10] = [
    &[],
    &[EVENTS_AS_EMULATED],
    &[EVENTS_OF_THE_MARKET],
    &[HADS_AT_ONCE],
    &[BOOT_BILLED],
    &[BURST_ON_FREE_VCPUS],
    &[NO_BURSTABLES],
    &[BURSTABLES_UNPAID],
    &[EVENTS_AS_EMULATED, BOOT_BILLED],
    &[EVENTS_AS_EMULATED, HADS_AT_ONCE, BOOT_BILLED],
];

/// The cells of all readings.
#[derive(Debug)]
pub(crate) struct Readings {
    targets: Vec<Target>,
    pub(crate) cells: Vec<Cell>,
}

impl Readings {
    /// None if there is nothing in these targets that is read differently.
    pub(crate) fn of(targets: &[Target], base: &Base) -> Result<Option<Self>, InputError> {
        if targets.iter().all(|target| target.scenario.is_none()) {
            return Ok(None);
        }
        let mut cells = Vec::new();
        for factors in READINGS {
            for target in targets {
                let applying = factors.iter().filter(|f| f.applies_to(target));
                let set: Vec<_> = applying.flat_map(|f| f.settings(target)).collect();
                cells.push(base.cell(target, "", &set)?);
            }
        }
        Ok(Some(Self { targets: targets.to_vec(), cells }))
    }

    pub(crate) fn made(&self, samples: &Samples) -> Vec<Reading> {
        let each = samples.chunks(self.targets.len().max(1)).zip(READINGS);
        each.map(|(samples, factors)| {
            let mut all: Vec<_> =
                self.targets.iter().cloned().zip(samples.iter().cloned()).collect();
            if factors.iter().any(|f| f.name == BOOT_BILLED.name) {
                for sample in all.iter_mut().flat_map(|(_, samples)| samples) {
                    sample.cost += sample.boot_cost;
                }
            }
            if factors.iter().any(|f| f.name == BURSTABLES_UNPAID.name) {
                let of = all.iter_mut().filter(|(target, _)| BURSTABLES_UNPAID.applies_to(target));
                for sample in of.flat_map(|(_, samples)| samples) {
                    let rest = sample.cost.as_nanos() - sample.burstable_cost.as_nanos();
                    sample.cost = Money::from_nanos(rest);
                }
            }
            reading(&Results { all }, factors)
        })
        .collect()
    }
}

fn reading(results: &Results, factors: &[Factor]) -> Reading {
    let rows = rows(results);
    let figures = || rows.iter().filter(|row| matches!(row.metric, COST | MAKESPAN));
    let mean = |metric: &str, who: &str| {
        let of: Vec<_> =
            rows.iter().filter(|r| r.metric == metric && r.case.ends_with(who)).collect();
        #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
        let n = of.len().max(1) as f64;
        let sum = |f: fn(&super::Row) -> f64| of.iter().map(|r| f(r)).sum::<f64>() / n;
        (sum(|r| r.paper), sum(|r| r.ours.mean))
    };
    let about: Vec<_> = factors.iter().map(|f| f.about).collect();
    Reading {
        factors: factors.iter().map(|f| f.name).collect(),
        about: about.join("; "),
        off: (figures().filter(|r| r.deviates()).count(), figures().count()),
        counts: [
            mean("hibernations", ""),
            mean("resumes", ""),
            mean("on_demand_vms", "/burst-hads"),
            mean("on_demand_vms", "/hads"),
        ],
        claims: claims(results),
    }
}
