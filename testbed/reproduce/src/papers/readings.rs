//! A paper read otherwise: what becomes of its figures and claims where some of its factors are changed.
//! Each factor alone, which could explain a difference; its presets; and the readings that explain most
//! of what it printed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use dormouse_estimate::Verdict;

use super::claims::{Judged, judge_all};
use super::figures::{Row, beyond, rows};
use super::paper::{Factor, Ground, Paper, Part};
use super::pattern::unique;
use super::results::Results;
use super::search::{score, search};
use crate::sweep::{Cell, Samples, SweepError};
use dormouse_experiment::InputError;

/// So many of the best readings of a search are looked at closely, and as many whose changes the text
/// allows.
const BEST: usize = 5;

/// A reading, and what came of it.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What it changes; nothing: as ours are.
    pub factors: Vec<Factor>,
    /// The figures under this reading.
    pub rows: Vec<Row>,
    /// The claims, judged under this reading.
    pub claims: Vec<Judged>,
    /// How many of the figures that count, those that the paper searches by, are within their tolerance,
    /// of how many. (How many VMs hibernate, say, goes into a run and does not come out of it.)
    pub within: (usize, usize),
    /// Whether every cell could be planned.
    pub(super) is_whole: bool,
}

impl Reading {
    pub(super) fn of(
        paper: &Paper,
        parts: &[&Part],
        factors: Vec<Factor>,
        results: &Results,
    ) -> Self {
        let (rows, claims) = (rows(paper, parts, results), judge_all(paper, results));
        let search = paper.parts.iter().flat_map(|part| &part.search);
        let counts = search.map(|metric| beyond(&rows, Some(metric)));
        let (off, printed) = counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        Self { factors, rows, claims, within: (printed - off, printed), is_whole: true }
    }

    /// Name of the reading: those of its factors, or `none`.
    pub fn name(&self) -> String {
        self.said(|factor| &factor.name, " + ", "none")
    }

    /// What it changes, in words.
    pub fn about(&self) -> String {
        self.said(|factor| &factor.about, "; ", "as ours are")
    }

    fn said(&self, of: impl Fn(&Factor) -> &str, between: &str, nothing: &str) -> String {
        let all: Vec<&str> = self.factors.iter().map(of).collect();
        if all.is_empty() { nothing.to_owned() } else { all.join(between) }
    }

    /// What speaks for it: the weakest ground of its factors.
    pub fn ground(&self) -> Option<Ground> {
        self.factors.iter().filter_map(|factor| factor.ground).max()
    }

    /// How many claims came out so.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.claims.iter().filter(|claim| claim.verdict == verdict).count()
    }

    /// How many claims have a verdict.
    pub fn judged(&self) -> usize {
        self.claims.len() - self.count(Verdict::Silent) - self.count(Verdict::Undecidable)
    }

    /// What it explains, less what its changes cost.
    pub fn score(&self) -> i64 {
        score(self.explained(), self.factors.iter().map(|factor| factor.changes).sum())
    }

    fn explained(&self) -> usize {
        self.within.0 + self.count(Verdict::Holds)
    }

    /// The claims, by what they say, that fail without it and hold with it.
    pub fn mends(&self, without: &Self) -> Vec<&str> {
        self.turned(without, Verdict::Fails, Verdict::Holds)
    }

    /// Those that hold without it and fail with it.
    pub fn breaks(&self, without: &Self) -> Vec<&str> {
        self.turned(without, Verdict::Holds, Verdict::Fails)
    }

    fn turned(&self, without: &Self, from: Verdict, to: Verdict) -> Vec<&str> {
        let was =
            |says: &str| without.claims.iter().any(|c| c.claim.says == says && c.verdict == from);
        let now = self.claims.iter().filter(|claim| claim.verdict == to);
        now.map(|claim| &*claim.claim.says).filter(|says| was(says)).collect()
    }

    /// What may be said of its factor. It is no more than a lead unless it mends all claims that fail,
    /// breaks none, and takes no figure away from the paper's; what something costs, and not how it is
    /// to be read, is not even that.
    pub fn word(&self, without: &Self) -> &'static str {
        let (mends, breaks) = (self.mends(without).len(), self.breaks(without).len());
        let further = beyond(&self.rows, None).0 > beyond(&without.rows, None).0;
        match &self.factors[..] {
            [] => "",
            [factor, ..] if factor.counterfactual => "counterfactual",
            _ if mends == 0 && breaks == 0 => "changes no verdict",
            _ if mends == 0 => "mends nothing",
            _ if mends == without.count(Verdict::Fails) && breaks == 0 && !further => {
                "mends all that fails"
            }
            _ => "lead",
        }
    }
}

/// What readings are made of, whichever they are.
pub(super) struct Maker<'a, S, R> {
    pub(super) paper: &'a Paper,
    /// The parts whose figures are looked at.
    pub(super) parts: &'a [&'a Part],
    /// The cells that are run.
    pub(super) cases: Vec<String>,
    /// All settings of a cell with these factors.
    pub(super) settings: S,
    /// Makes the runs of cells: so many seeds of each.
    pub(super) run: R,
}

impl<S, R> Maker<'_, S, R>
where
    S: Fn(&str, &[Factor]) -> Vec<String>,
    R: FnMut(Vec<Cell>, u64) -> Result<Samples, SweepError>,
{
    /// Each of these readings, all runs at once. What can't be planned with a factor is left out of its
    /// reading, and what needs it is not judged there.
    pub(super) fn make(
        &mut self,
        all: Vec<Vec<Factor>>,
        seeds: u64,
    ) -> Result<Vec<Reading>, SweepError> {
        let (mut cells, mut known) = (Vec::new(), BTreeMap::new());
        let mut planned = |case: &String, factors: &[Factor]| -> Result<_, InputError> {
            let set = (self.settings)(case, factors);
            let at = match known.entry((case.clone(), set)) {
                Entry::Occupied(at) => *at.get(),
                Entry::Vacant(free) => {
                    cells.push(self.paper.cell(case, &free.key().1)?);
                    *free.insert(cells.len() - 1)
                }
            };
            Ok((case.clone(), at))
        };
        let mut wanted = Vec::new();
        for factors in &all {
            let mut of = Vec::new();
            for case in &self.cases {
                match planned(case, factors) {
                    Err(error) if factors.is_empty() => return Err(error.into()),
                    cell => of.extend(cell),
                }
            }
            wanted.push(of);
        }
        let samples = (self.run)(cells, seeds)?;
        let read = all.into_iter().zip(wanted).map(|(factors, wanted)| {
            let is_whole = wanted.len() == self.cases.len();
            let samples = wanted.into_iter().map(|(case, at)| (case, samples[at].clone()));
            let instead = factors.iter().flat_map(|factor| factor.metrics.clone()).collect();
            let results = Results::new(samples).with(instead);
            Reading { is_whole, ..Reading::of(self.paper, self.parts, factors, &results) }
        });
        Ok(read.collect())
    }

    /// Every factor that changes any of the cells, alone; the reading without one first.
    pub(super) fn each_alone(&mut self, seeds: u64) -> Result<Vec<Reading>, SweepError> {
        let changes = |factor: &&Factor| {
            let sets = |case: &String| !self.paper.settings(factor, case).is_empty();
            !factor.preset && (!factor.metrics.is_empty() || self.cases.iter().any(sets))
        };
        let tried = self.paper.factors.iter().filter(changes).map(|factor| vec![factor.clone()]);
        let all = std::iter::once(Vec::new()).chain(tried).collect();
        self.make(all, seeds)
    }

    /// Searches the readings by a few runs of each, then makes more of those that explain most: ours
    /// first, then the best, those that the text allows among them, then the presets of the paper.
    pub(super) fn search(&mut self, few: u64, many: u64) -> Result<Vec<Reading>, SweepError> {
        let factors = &self.paper.factors;
        let all: Vec<&Factor> =
            factors.iter().filter(|f| f.ground.is_some() && !f.preset).collect();
        let of = |changes: &[usize]| changes.iter().map(|&c| all[c].clone()).collect::<Vec<_>>();
        let together = |a: usize, b: usize| all[a].goes_with(all[b]);
        let tried = search(all.len(), together, |changes| {
            let made = self.make(vec![of(changes)], few)?;
            // What can't be planned in every cell explains nothing.
            let made = made.iter().find(|reading| reading.is_whole);
            Ok::<_, SweepError>(made.map(Reading::explained))
        })?;
        let is_of_text = |c: &usize| all[*c].ground == Some(Ground::Text);
        let of_text = tried.iter().filter(|tried| tried.changes.iter().all(is_of_text)).take(BEST);
        let best = tried.iter().take(BEST).chain(of_text).map(|tried| &tried.changes[..]);
        let chosen = unique(std::iter::once(&[][..]).chain(best)).into_iter().map(of);
        let presets = factors.iter().filter(|factor| factor.preset).map(|f| vec![f.clone()]);
        let mut found = self.make(chosen.chain(presets).collect(), many)?;
        let is_preset = |reading: &Reading| reading.factors.iter().any(|factor| factor.preset);
        // Ours have no changes, and no other reading is without.
        found.sort_by_key(|r| (!r.factors.is_empty(), is_preset(r), -r.score()));
        found.retain(|reading| reading.is_whole);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::*;

    #[test]
    fn factors_of_the_same_key_exclude_each_other() {
        let (paper, _) = named("burst-hads/readings").expect("it is there");
        let goes = |one: &str, other: &str| {
            let factor = |name| paper.factor(name).expect(name);
            factor(one).goes_with(factor(other))
        };
        assert!(!goes("burst-on-idle", "burst-on-idle-vcpus"));
        assert!(!goes("events-of-the-market", "events-as-emulated"));
        assert!(!goes("table-ii-three", "artifact-t3") && !goes("table-ii-three", "five-of-each"));
        assert!(goes("relax-always", "frozen-charged"));
    }

    #[test]
    fn every_factor_with_a_ground_can_be_planned_in_every_cell() {
        let (paper, part) = named("burst-hads/readings").expect("it is there");
        let cases = paper.cells_of(paper.parts(part.as_deref())[0]);
        let grounded: Vec<&Factor> = paper.factors.iter().filter(|f| f.ground.is_some()).collect();
        assert_eq!((cases.len(), grounded.len()), (52, 31));
        for (factor, case) in grounded.iter().flat_map(|f| cases.iter().map(move |c| (f, c))) {
            let cell = paper.cell(case, &paper.settings(factor, case));
            assert!(cell.is_ok(), "{} {case}: {cell:?}", factor.name);
        }
    }

    /// Nothing runs, so that nothing is explained and every change only costs.
    #[test]
    fn ours_comes_first_and_the_presets_last() {
        let (mut paper, part) = named("burst-hads/readings").expect("it is there");
        let kept = ["frozen-charged", "boot-180", "artifact"];
        paper.factors.retain(|factor| kept.contains(&&*factor.name));
        let parts = paper.parts(part.as_deref());
        let (mut few, mut many) = (0, 0);
        let mut maker = Maker {
            paper: &paper,
            parts: &parts,
            cases: paper.cells_of(parts[0]),
            settings: |case: &str, factors: &[Factor]| {
                factors.iter().flat_map(|factor| paper.settings(factor, case)).collect()
            },
            run: |cells: Vec<Cell>, seeds| {
                *(if seeds == 1 { &mut few } else { &mut many }) += 1;
                Ok(vec![Vec::new(); cells.len()])
            },
        };
        let found = maker.search(1, 2).expect("nothing fails");
        let grounds: Vec<_> = found.iter().map(|r| (r.score(), r.ground())).collect();
        let (text, code) = (Some(Ground::Text), Some(Ground::Code));
        assert_eq!(grounds, [(0, None), (-3, code), (-3, text), (-6, code), (-30, code)]);
        assert_eq!((found[0].name(), found[4].name()), ("none".into(), "artifact".into()));
        assert_eq!((few, many), (4, 1));
    }
}
