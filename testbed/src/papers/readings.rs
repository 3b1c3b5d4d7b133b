//! Which reading of a paper explains most of what it printed: its factors that have a ground, alone and
//! together, and those of its authors' code.
//!
//! A reading explains a printed figure that ours comes near to, and a claim that holds. Only the figures
//! count that the part names: how many VMs hibernate, say, goes into a run and does not come out of it.

use super::claims::{Judged, Verdict, judge_all};
use super::figures::{Row, beyond, rows};
use super::paper::{Factor, Ground, Paper, Part};
use super::results::Results;
use super::search::{score, search};
use crate::sweep::{Cell, Samples, SweepError};

/// So many of the best readings of a search are looked at closely, and as many whose changes the text
/// allows.
const BEST: usize = 5;

/// How many runs of each cell are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    /// To search.
    Few,
    /// Of those that were found.
    Many,
}

/// A reading, and what came of it.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What it changes; nothing: as ours are.
    pub factors: Vec<Factor>,
    /// The figures.
    pub rows: Vec<Row>,
    /// The claims.
    pub claims: Vec<Judged>,
    /// How many of the figures that count are within their tolerance, of how many.
    pub within: (usize, usize),
}

impl Reading {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        let names: Vec<&str> = self.factors.iter().map(|f| f.name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(" + ") }
    }

    /// What it changes, in words.
    #[must_use]
    pub fn about(&self) -> String {
        let about: Vec<&str> = self.factors.iter().map(|f| f.about.as_str()).collect();
        if about.is_empty() { "as ours are".to_owned() } else { about.join("; ") }
    }

    /// What speaks for it: the weakest ground of its factors.
    #[must_use]
    pub fn ground(&self) -> Option<Ground> {
        self.factors.iter().filter_map(|factor| factor.ground).max()
    }

    /// How many claims hold.
    #[must_use]
    pub fn held(&self) -> usize {
        self.claims.iter().filter(|claim| claim.verdict == Verdict::Holds).count()
    }

    /// What it explains, less what its changes cost.
    #[must_use]
    pub fn score(&self) -> i64 {
        score(self.explained(), self.factors.iter().map(|factor| factor.changes).sum())
    }

    fn explained(&self) -> usize {
        self.within.0 + self.held()
    }
}

/// Searches the readings by a few runs of each, then makes more of those that explain most: ours
/// first, then the best, those that the text allows among them, then the presets of the paper.
///
/// `settings` are those of a cell without any factor; `run` makes the runs of cells.
///
/// # Errors
///
/// A run can't be made.
pub(super) fn readings(
    paper: &Paper,
    part: &Part,
    settings: impl Fn(&str) -> Vec<String>,
    mut run: impl FnMut(Vec<Cell>, Runs) -> Result<Samples, SweepError>,
) -> Result<Vec<Reading>, SweepError> {
    let cases = paper.cells_of(part);
    let mut made = |factors: Vec<Factor>, runs| -> Result<Option<Reading>, SweepError> {
        let cell = |case: &String| {
            let of = factors.iter().flat_map(|factor| paper.settings(factor, case));
            paper.cell(case, &settings(case).into_iter().chain(of).collect::<Vec<_>>()).ok()
        };
        // What can't be planned in every cell explains nothing.
        let Some(cells) = cases.iter().map(cell).collect() else { return Ok(None) };
        let samples = cases.iter().cloned().zip(run(cells, runs)?);
        Ok(Some(Reading::of(paper, part, factors, &Results::new(samples))))
    };
    let all: Vec<&Factor> =
        paper.factors.iter().filter(|f| f.ground.is_some() && !f.preset).collect();
    let of = |changes: &[usize]| changes.iter().map(|&c| all[c].clone()).collect::<Vec<_>>();
    let together = |a: usize, b: usize| all[a].goes_with(all[b]);
    let tried = search(all.len(), together, |changes| {
        let reading = made(of(changes), Runs::Few)?;
        Ok::<_, SweepError>(reading.map(|reading| reading.explained()))
    })?;
    let is_of_text = |c: &usize| all[*c].ground == Some(Ground::Text);
    let of_text = tried.iter().filter(|tried| tried.changes.iter().all(is_of_text)).take(BEST);
    let mut chosen: Vec<&[usize]> = vec![&[]];
    for tried in tried.iter().take(BEST).chain(of_text) {
        if !chosen.contains(&&tried.changes[..]) {
            chosen.push(&tried.changes);
        }
    }
    let mut found = Vec::new();
    for changes in chosen {
        found.extend(made(of(changes), Runs::Many)?);
    }
    if let Some(others) = found.get_mut(1..) {
        others.sort_by_key(|reading: &Reading| -reading.score());
    }
    for preset in paper.factors.iter().filter(|factor| factor.preset) {
        found.extend(made(vec![preset.clone()], Runs::Many)?);
    }
    Ok(found)
}

impl Reading {
    fn of(paper: &Paper, part: &Part, factors: Vec<Factor>, results: &Results) -> Self {
        let rows = rows(paper, &[part], results);
        let counts = part.search.iter().map(|metric| beyond(&rows, Some(metric)));
        let (off, printed) = counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let claims = judge_all(paper, results);
        Self { factors, rows, claims, within: (printed - off, printed) }
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
        assert!(!goes("burst-on-free-vcpus", "burst-on-idle-vcpus"));
        assert!(!goes("events-of-the-market", "events-as-emulated"));
        assert!(!goes("table-ii-three", "artifact-t3") && !goes("table-ii-three", "five-of-each"));
        assert!(goes("relax-always", "frozen-charged"));
    }

    #[test]
    fn every_factor_with_a_ground_can_be_planned_in_every_cell() {
        let (paper, part) = named("burst-hads/readings").expect("it is there");
        let cases = paper.cells_of(paper.parts(part.as_deref())[0]);
        let grounded: Vec<&Factor> = paper.factors.iter().filter(|f| f.ground.is_some()).collect();
        assert_eq!((cases.len(), grounded.len()), (52, 21));
        for (factor, case) in grounded.iter().flat_map(|f| cases.iter().map(move |c| (f, c))) {
            let cell = paper.cell(case, &paper.settings(factor, case));
            assert!(cell.is_ok(), "{} {case}: {cell:?}", factor.name);
        }
    }

    /// Nothing runs, so that nothing is explained and every change only costs.
    #[test]
    fn ours_comes_first_and_the_presets_last() {
        let (mut paper, part) = named("burst-hads/readings").expect("it is there");
        let kept = ["frozen-charged", "boot-billed", "artifact"];
        paper.factors.retain(|factor| kept.contains(&&*factor.name));
        let part = paper.parts(part.as_deref())[0].clone();
        let (mut few, mut many) = (0, 0);
        let found = readings(
            &paper,
            &part,
            |_| Vec::new(),
            |cells, runs| {
                *(if runs == Runs::Few { &mut few } else { &mut many }) += 1;
                Ok(vec![Vec::new(); cells.len()])
            },
        );
        let found = found.expect("nothing fails");
        let grounds: Vec<_> = found.iter().map(|r| (r.score(), r.ground())).collect();
        let (text, code) = (Some(Ground::Text), Some(Ground::Code));
        assert_eq!(grounds, [(0, None), (-3, code), (-3, text), (-6, code), (-33, code)]);
        assert_eq!((found[0].name(), found[4].name()), ("none".into(), "artifact".into()));
        assert_eq!((few, many), (4, 5));
    }
}
