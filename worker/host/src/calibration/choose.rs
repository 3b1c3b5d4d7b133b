//! Choice of the speed-up of a live run.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::words::{errors_text, percent_text};
use super::{Calibration, ExpectedErrors, StoredCalibration};

/// Where the speed-up of an experiment was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpeedupSaid {
    /// The speed-up is set nowhere: the default one is used.
    #[default]
    Nobody,
    /// The experiment's file sets the speed-up.
    Experiment,
    /// The speed-up is set on the command line.
    CommandLine,
}

/// The greatest errors that times of live tasks may have, as fractions of the times of the same tasks in the virtual twin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WantedErrors {
    /// Largest allowed error of a single live task's time, as a fraction of its virtual time, in absolute value.
    pub worst: f64,
    /// Largest allowed mean error of live tasks' times, as a fraction of their virtual times, in absolute value.
    pub mean: f64,
}

impl WantedErrors {
    /// True if the expected errors of a speed-up are within these limits.
    #[must_use]
    pub fn are_kept_by(&self, expected: &ExpectedErrors) -> bool {
        expected
            .errors
            .is_some_and(|(mean, worst)| worst.abs() <= self.worst && mean.abs() <= self.mean)
    }
}

/// Properties of an experiment on which the choice of its speed-up depends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExperimentDemand {
    /// Load of the experiment on this host: the vCPUs that it may have busy at once, as a fraction of those that the host holds at
    /// 1/24 of a core each.
    pub load: f64,
    /// Length of the experiment's shortest task, in emulated seconds.
    pub shortest_s: f64,
    /// Fraction of the cores that the experiment keeps free of VMs.
    pub reserve: f64,
    /// The errors of live tasks' times that the experiment allows.
    pub wanted: WantedErrors,
    /// Highest speed-up at which the host can hold the experiment; `None`: the host can't hold it at any speed-up.
    pub admitted: Option<f64>,
    /// Speed-up that is set for the experiment, in emulated seconds per real second.
    pub speedup: f64,
    /// Where the experiment's speed-up was set.
    pub said: SpeedupSaid,
    /// True if it is not known before the run whether the host can hold a higher speed-up than the experiment's own.
    pub no_faster: bool,
}

/// The chosen speed-up of a live run, with the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SpeedupChoice {
    /// Emulated seconds per real second.
    pub speedup: f64,
    /// Reason for the choice, worded to follow the speed-up in a sentence.
    pub why: String,
    /// The load of the experiment on this host (1: a vCPU has 1/24 of a core); `None` if it was not computed.
    pub load: Option<f64>,
    /// The host's calibration, if there is one.
    pub calibration: Option<Calibration>,
}

impl fmt::Display for SpeedupChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "speed-up {}, {}", self.speedup, self.why)
    }
}

/// Result of choosing a speed-up.
#[derive(Clone, Debug, PartialEq)]
pub enum SpeedupVerdict {
    /// Run the experiment at the chosen speed-up.
    Run(Box<SpeedupChoice>),
    /// Refuse the run, for this reason: the errors exceed the limits at every speed-up.
    Refuse(String),
}

/// Chooses the speed-up of a run. Calls `demand` only if there is a calibration; `demand` returns `None` if the hosts
/// can't hold the experiment at any speed-up.
pub fn choose(
    found: StoredCalibration,
    speedup: f64,
    said: SpeedupSaid,
    demand: impl FnOnce() -> Option<ExperimentDemand>,
) -> SpeedupVerdict {
    let given = match said {
        SpeedupSaid::CommandLine => "as asked for",
        SpeedupSaid::Experiment => "as in the experiment",
        SpeedupSaid::Nobody => "the standard one",
    };
    let as_given = |why: Option<String>, load, calibration| {
        let why = why.map_or_else(|| given.to_owned(), |why| format!("{given}: {why}"));
        SpeedupVerdict::Run(Box::new(SpeedupChoice { speedup, why, load, calibration }))
    };
    let calibration = match found {
        StoredCalibration::Current(calibration) => *calibration,
        StoredCalibration::Unusable(why) => return as_given(Some(why), None, None),
        StoredCalibration::None if said == SpeedupSaid::CommandLine => {
            return as_given(None, None, None);
        }
        StoredCalibration::None => {
            let why = "this host is not calibrated (`dormouse calibrate`)".to_owned();
            return as_given(Some(why), None, None);
        }
    };
    match demand() {
        Some(demand) => SpeedupChooser { calibration, demand, given }.choose_speedup(),
        None => as_given(None, None, Some(calibration)),
    }
}

impl Calibration {
    /// Highest measured speed-up whose errors at this load are within the limits; `None` if there is no such speed-up.
    #[must_use]
    pub fn highest(&self, load: f64, wanted: &WantedErrors) -> Option<f64> {
        let mut cells = self.at_load(load).into_iter().rev().map(|cell| cell.speedup);
        cells.find(|&s| self.expected_errors(s, load, 1.0).is_some_and(|e| wanted.are_kept_by(&e)))
    }
}

/// Chooses a speed-up for an experiment from a calibration.
struct SpeedupChooser {
    calibration: Calibration,
    demand: ExperimentDemand,
    given: &'static str,
}

impl SpeedupChooser {
    fn choose_speedup(self) -> SpeedupVerdict {
        let ExperimentDemand { load, speedup, said, .. } = self.demand;
        if let Some(why) = self.why_silent() {
            let why = format!("{}: {why}", self.given);
            return self.run(speedup, why);
        }
        if said == SpeedupSaid::CommandLine {
            return self.obey_user();
        }
        let candidates = self.candidate_speedups();
        if candidates.is_empty() {
            let most = self.highest_allowed();
            let what = if most < speedup { "the highest that fits" } else { self.given };
            let why = format!("{what}: no speed-up that low was measured at load {load:.2}");
            return self.run(most, why);
        }
        let within = candidates.iter().find(|e| self.demand.wanted.are_kept_by(e));
        match within {
            Some(taken) => {
                let why = self.reason_of_choice(taken, &candidates);
                self.run(taken.speedup, why)
            }
            None => SpeedupVerdict::Refuse(self.refusal_text()),
        }
    }

    /// Reason why the calibration doesn't apply to this experiment; `None`: the calibration applies.
    fn why_silent(&self) -> Option<String> {
        let ExperimentDemand { load, reserve, .. } = self.demand;
        let measured = self.calibration.conditions.reserve.as_f64();
        if reserve < measured {
            return Some(format!(
                "this host is calibrated with {} % of its cores kept free, not {} %",
                measured * 100.0,
                reserve * 100.0
            ));
        }
        if self.expected_at(1.0).is_none() {
            let highest = self.calibration.loads().first().copied().unwrap_or_default();
            return Some(format!(
                "this host is calibrated up to a load of {highest}, and this one is {load:.2}: \
                 `dormouse calibrate --loads {:.2}`",
                (load * 20.0).ceil() / 20.0
            ));
        }
        None
    }

    /// Factor for the measured relative errors: shorter tasks have the same absolute errors, and so larger relative
    /// ones.
    fn error_factor(&self) -> f64 {
        let (measured_s, _) = self.calibration.conditions.task_s;
        (measured_s / self.demand.shortest_s).max(1.0)
    }

    fn expected_at(&self, speedup: f64) -> Option<ExpectedErrors> {
        self.calibration.expected_errors(speedup, self.demand.load, self.error_factor())
    }

    /// Highest speed-up that both the experiment and the host allow.
    fn highest_allowed(&self) -> f64 {
        let ExperimentDemand { speedup, said, no_faster, admitted, .. } = self.demand;
        let own = (said == SpeedupSaid::Experiment || no_faster).then_some(speedup);
        [own, admitted].into_iter().flatten().fold(f64::INFINITY, f64::min)
    }

    /// Speed-ups to choose from, highest first: the measured ones, and the highest allowed one if a
    /// higher one was measured.
    fn candidate_speedups(&self) -> Vec<ExpectedErrors> {
        let most = self.highest_allowed();
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
        let expected = all.into_iter().filter_map(|speedup| self.expected_at(speedup));
        // Below all that was measured it can only be better: no ground to refuse it.
        expected.filter(|e| !below_all || self.demand.wanted.are_kept_by(e)).collect()
    }

    /// Keeps the speed-up that the user set, and explains which errors to expect.
    fn obey_user(self) -> SpeedupVerdict {
        let ExperimentDemand { speedup, wanted, .. } = self.demand;
        let why = match self.expected_at(speedup).filter(|e| !wanted.are_kept_by(e)) {
            Some(expected) => format!(
                "{}, though {} was measured, and {} wanted",
                self.given,
                self.errors_in_words(&expected),
                self.limits_in_words()
            ),
            None => self.given.to_owned(),
        };
        self.run(speedup, why)
    }

    /// The allowed errors of live tasks' times, in words.
    fn limits_in_words(&self) -> String {
        let WantedErrors { worst, mean } = self.demand.wanted;
        format!("at most {} % and {} % on average are", percent_text(worst), percent_text(mean))
    }

    /// The errors of live tasks' times that are expected at a speed-up, in words.
    fn errors_in_words(&self, expected: &ExpectedErrors) -> String {
        let ExpectedErrors { speedup, measured_at, load, .. } = *expected;
        let place = if measured_at.total_cmp(&speedup).is_eq() {
            String::new()
        } else {
            format!("at {measured_at}, ")
        };
        format!("{place}at load {load}, {}", errors_text(expected.errors))
    }

    fn reason_of_choice(&self, taken: &ExpectedErrors, candidates: &[ExpectedErrors]) -> String {
        let ExperimentDemand { speedup, load, said, .. } = self.demand;
        let day = self.calibration.made.split('T').next().unwrap_or_default();
        let is_own = taken.speedup.total_cmp(&speedup).is_eq() && said == SpeedupSaid::Experiment;
        let which =
            if is_own { "as in the experiment" } else { "the highest within what is wanted" };
        let better = candidates.iter().take_while(|e| e.speedup > taken.speedup).last();
        let not = better.map_or_else(String::new, |e| {
            let (speedup, errors) = (e.speedup, errors_text(e.errors));
            format!("; at {speedup} {errors}, and {} wanted", self.limits_in_words())
        });
        format!(
            "{which}: {} was measured (load {load:.2}, calibrated {day}){not}",
            self.errors_in_words(taken)
        )
    }

    /// Text of a refusal: the expected errors at each allowed speed-up, the limits, and possible
    /// remedies.
    fn refusal_text(&self) -> String {
        let load = self.demand.load;
        let (most, times) = (self.highest_allowed(), self.error_factor());
        let cells = self.calibration.at_load(load);
        let above = cells.iter().position(|c| c.speedup >= most).map_or(cells.len(), |n| n + 1);
        let each = cells.iter().take(above).map(|cell| {
            let these = cell.errors().map(|(mean, worst)| (mean * times, worst * times));
            format!("{}: {}", cell.speedup, errors_text(these))
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
            self.limits_in_words()
        )
    }

    fn run(self, speedup: f64, why: String) -> SpeedupVerdict {
        let (load, calibration) = (Some(self.demand.load), Some(self.calibration));
        SpeedupVerdict::Run(Box::new(SpeedupChoice { speedup, why, load, calibration }))
    }
}

#[cfg(test)]
mod tests;
