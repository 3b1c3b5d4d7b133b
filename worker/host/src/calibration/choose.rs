//! At what speed-up an experiment is run live.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::words::{errors, percent};
use super::{Calibration, Expected, Found};

/// Who said at what speed an experiment is run live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpeedupSaid {
    /// Nobody: it is the standard one.
    #[default]
    Nobody,
    /// The experiment's file.
    Experiment,
    /// The command line.
    CommandLine,
}

/// The distance from their virtual twins that live tasks may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// The furthest of them.
    pub worst: f64,
    /// Largest mean error allowed, in absolute value.
    pub mean: f64,
}

impl Wanted {
    /// Whether these are within it.
    #[must_use]
    pub fn holds(&self, expected: &Expected) -> bool {
        expected
            .errors
            .is_some_and(|(mean, worst)| worst.abs() <= self.worst && mean.abs() <= self.mean)
    }
}

/// The properties of an experiment that matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Load of the experiment on this host.
    pub load: f64,
    /// Length of the experiment's shortest task, in emulated seconds.
    pub shortest_s: f64,
    /// Part of the cores that it keeps free of VMs.
    pub reserve: f64,
    /// The errors that the experiment allows.
    pub wanted: Wanted,
    /// The highest speed-up at which the host can hold it; `None`: at none.
    pub admitted: Option<f64>,
    /// The speed-up it has.
    pub speedup: f64,
    /// Who said so.
    pub said: SpeedupSaid,
    /// Nobody knows beforehand what fits beyond that.
    pub no_faster: bool,
}

/// The speed-up of a live run, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SpeedupChoice {
    /// Emulated seconds per real second.
    pub speedup: f64,
    /// Why, as the rest of a sentence.
    pub why: String,
    /// The load, where it was asked for.
    pub load: Option<f64>,
    /// The calibration that was known of this host.
    pub calibration: Option<Calibration>,
}

impl fmt::Display for SpeedupChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "speed-up {}, {}", self.speedup, self.why)
    }
}

/// The speed-up that is chosen, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// Run the experiment at the chosen speed-up.
    Run(Box<SpeedupChoice>),
    /// Don't: at every speed-up it would err more than is wanted.
    Refuse(String),
}

/// Chooses. `demand` is asked only where there is a calibration; it gives none where no speed-up
/// matters, because the hosts can't hold the experiment at any.
pub fn choose(
    found: Found,
    speedup: f64,
    said: SpeedupSaid,
    demand: impl FnOnce() -> Option<Demand>,
) -> Choice {
    let given = match said {
        SpeedupSaid::CommandLine => "as asked for",
        SpeedupSaid::Experiment => "as in the experiment",
        SpeedupSaid::Nobody => "the standard one",
    };
    let as_given = |why: Option<String>, load, calibration| {
        let why = why.map_or_else(|| given.to_owned(), |why| format!("{given}: {why}"));
        Choice::Run(Box::new(SpeedupChoice { speedup, why, load, calibration }))
    };
    let calibration = match found {
        Found::Current(calibration) => *calibration,
        Found::Unusable(why) => return as_given(Some(why), None, None),
        Found::None if said == SpeedupSaid::CommandLine => return as_given(None, None, None),
        Found::None => {
            let why = "this host is not calibrated (`dormouse calibrate`)".to_owned();
            return as_given(Some(why), None, None);
        }
    };
    match demand() {
        Some(demand) => Chooser { calibration, demand, given }.choose(),
        None => as_given(None, None, Some(calibration)),
    }
}

impl Calibration {
    /// The highest speed-up measured at a load that is within what is wanted.
    #[must_use]
    pub fn highest(&self, load: f64, wanted: &Wanted) -> Option<f64> {
        let mut cells = self.at_load(load).into_iter().rev().map(|cell| cell.speedup);
        cells.find(|&s| self.expected(s, load, 1.0).is_some_and(|e| wanted.holds(&e)))
    }
}

struct Chooser {
    calibration: Calibration,
    demand: Demand,
    given: &'static str,
}

impl Chooser {
    fn choose(self) -> Choice {
        let Demand { load, speedup, said, .. } = self.demand;
        if let Some(why) = self.silent() {
            let why = format!("{}: {why}", self.given);
            return self.run(speedup, why);
        }
        if said == SpeedupSaid::CommandLine {
            return self.obey();
        }
        let candidates = self.candidates();
        if candidates.is_empty() {
            let most = self.most();
            let what = if most < speedup { "the highest that fits" } else { self.given };
            let why = format!("{what}: no speed-up that low was measured at load {load:.2}");
            return self.run(most, why);
        }
        let within = candidates.iter().find(|e| self.demand.wanted.holds(e));
        match within {
            Some(taken) => {
                let why = self.why(taken, &candidates);
                self.run(taken.speedup, why)
            }
            None => Choice::Refuse(self.refusal()),
        }
    }

    /// Why the table says nothing of this experiment, if it doesn't.
    fn silent(&self) -> Option<String> {
        let Demand { load, reserve, .. } = self.demand;
        let measured = self.calibration.conditions.reserve.as_f64();
        if reserve < measured {
            return Some(format!(
                "this host is calibrated with {} % of its cores kept free, not {} %",
                measured * 100.0,
                reserve * 100.0
            ));
        }
        if self.expected(1.0).is_none() {
            let highest = self.calibration.loads().first().copied().unwrap_or_default();
            return Some(format!(
                "this host is calibrated up to a load of {highest}, and this one is {load:.2}: \
                 `dormouse calibrate --loads {:.2}`",
                (load * 20.0).ceil() / 20.0
            ));
        }
        None
    }

    /// Errors last as long as they do, so that those of shorter tasks are a larger part of them.
    fn times(&self) -> f64 {
        let (measured_s, _) = self.calibration.conditions.task_s;
        (measured_s / self.demand.shortest_s).max(1.0)
    }

    fn expected(&self, speedup: f64) -> Option<Expected> {
        self.calibration.expected(speedup, self.demand.load, self.times())
    }

    /// The highest speed-up that the experiment and the host allow.
    fn most(&self) -> f64 {
        let Demand { speedup, said, no_faster, admitted, .. } = self.demand;
        let own = (said == SpeedupSaid::Experiment || no_faster).then_some(speedup);
        [own, admitted].into_iter().flatten().fold(f64::INFINITY, f64::min)
    }

    /// The speed-ups that come into question, highest first: those that were measured, and the
    /// highest that is allowed where a higher one was measured.
    fn candidates(&self) -> Vec<Expected> {
        let most = self.most();
        let cells = self.calibration.at_load(self.demand.load);
        let measured: Vec<f64> = cells.iter().map(|cell| cell.speedup).collect();
        let (Some(&lowest), Some(&highest)) = (measured.first(), measured.last()) else {
            return Vec::new();
        };
        let mut all: Vec<f64> = measured.into_iter().filter(|&s| s <= most).collect();
        let below_all = most < lowest;
        if most <= highest && !all.contains(&most) {
            all.push(most);
        }
        all.sort_by(|a, b| b.total_cmp(a));
        let expected = all.into_iter().filter_map(|speedup| self.expected(speedup));
        // Below all that was measured it can only be better: no ground to refuse it.
        expected.filter(|e| !below_all || self.demand.wanted.holds(e)).collect()
    }

    /// The speed-up that was asked for, with what it costs.
    fn obey(self) -> Choice {
        let Demand { speedup, wanted, .. } = self.demand;
        let why = match self.expected(speedup).filter(|e| !wanted.holds(e)) {
            Some(expected) => format!(
                "{}, though {} was measured, and {} wanted",
                self.given,
                self.at(&expected),
                self.wanted()
            ),
            None => self.given.to_owned(),
        };
        self.run(speedup, why)
    }

    /// The errors that are allowed, in words.
    fn wanted(&self) -> String {
        let Wanted { worst, mean } = self.demand.wanted;
        format!("at most {} % and {} % on average are", percent(worst), percent(mean))
    }

    /// The errors that are to be expected, in words.
    fn at(&self, expected: &Expected) -> String {
        let Expected { speedup, measured_at, load, .. } = *expected;
        let place = if measured_at.total_cmp(&speedup).is_eq() {
            String::new()
        } else {
            format!("at {measured_at}, ")
        };
        format!("{place}at load {load}, {}", errors(expected.errors))
    }

    fn why(&self, taken: &Expected, candidates: &[Expected]) -> String {
        let Demand { speedup, load, said, .. } = self.demand;
        let day = self.calibration.made.split('T').next().unwrap_or_default();
        let is_own = taken.speedup.total_cmp(&speedup).is_eq() && said == SpeedupSaid::Experiment;
        let which =
            if is_own { "as in the experiment" } else { "the highest within what is wanted" };
        let better = candidates.iter().take_while(|e| e.speedup > taken.speedup).last();
        let not = better.map_or_else(String::new, |e| {
            let (speedup, errors) = (e.speedup, errors(e.errors));
            format!("; at {speedup} {errors}, and {} wanted", self.wanted())
        });
        format!("{which}: {} was measured (load {load:.2}, calibrated {day}){not}", self.at(taken))
    }

    /// The errors that were measured at each speed-up up to the highest that is allowed, what is wanted, and
    /// what can be done.
    fn refusal(&self) -> String {
        let load = self.demand.load;
        let (most, times) = (self.most(), self.times());
        let cells = self.calibration.at_load(load);
        let above = cells.iter().position(|c| c.speedup >= most).map_or(cells.len(), |n| n + 1);
        let each = cells.iter().take(above).map(|cell| {
            let these = cell.errors().map(|(mean, worst)| (mean * times, worst * times));
            format!("{}: {}", cell.speedup, errors(these))
        });
        let each: Vec<_> = each.collect();
        let lower = cells.first().map_or(1.0, |cell| cell.speedup / 2.0);
        format!(
            "no speed-up is as exact as this experiment wants (load {load:.2}, measured at {}): \
             {}; {} wanted; allow more with --set live.worst-error=X and live.mean-error=X, give \
             --speedup X to run all the same, measure lower ones with `dormouse calibrate \
             --speedups {lower}`, or give live runs more cores",
            cells.first().map_or(load, |cell| cell.load),
            each.join("; "),
            self.wanted()
        )
    }

    fn run(self, speedup: f64, why: String) -> Choice {
        let (load, calibration) = (Some(self.demand.load), Some(self.calibration));
        Choice::Run(Box::new(SpeedupChoice { speedup, why, load, calibration }))
    }
}

#[cfg(test)]
mod tests;
