//! The table of a calibration, and the errors that it predicts for an experiment.

use dormouse_units::{Bytes, Ppm};
use serde::{Deserialize, Serialize};

use super::HostIdentity;

/// The version of the format of a calibration's file.
pub const FORMAT: u32 = 1;

/// Number of vCPUs per core at a load of 1: a little more than in the built-in experiments on two
/// cores.
const VCPUS_A_CORE: f64 = 24.0;

/// Loads that differ by less than this fraction count as the same, as shares of cores are whole millionths.
const SAME_LOAD: f64 = 0.005;

/// Measured timing errors of live tasks on a host, relative to their virtual twins, by speed-up and
/// load.
///
/// The load of an experiment is the number of vCPUs that it may have busy at once, divided by the number that the host
/// holds at 1/24 of a core each. If load were relative to the number of vCPUs that the host holds at the experiment's
/// own share, nearly every experiment would have the same load: without `live.share` an experiment fills the host, and
/// errors depend on how finely the cores are divided. A vCPU's share at a load L is 1/24 L of a core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Calibration {
    /// Version of the format of the calibration's file.
    pub format: u32,
    /// The time at which the latest cell was measured, in UTC.
    pub made: String,
    /// The host that was measured.
    pub host: HostIdentity,
    /// Conditions that every cell was measured under.
    pub conditions: CalibrationConditions,
    /// The measured cells, sorted by load, highest first, and speed-up.
    pub cells: Vec<CalibrationCell>,
}

/// The conditions under which every cell was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CalibrationConditions {
    /// Fraction of the cores that was kept free of VMs.
    pub reserve: Ppm,
    /// Shortest and longest task in emulated seconds.
    pub task_s: (f64, f64),
    /// Memory of each task.
    pub memory: Bytes,
    /// Time that a checkpoint stops a task, in emulated seconds.
    pub checkpoint_s: f64,
}

/// Measurements at one speed-up and one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CalibrationCell {
    /// Emulated seconds per real second.
    pub speedup: f64,
    /// Load of the host at which the cell was measured: busy vCPUs as a fraction of those that it holds at 1/24 of a core each.
    pub load: f64,
    /// Number of vCPUs busy at once.
    pub vcpus: u32,
    /// The time at which the cell was measured, in UTC.
    pub made: String,
    /// The outcome of the cell.
    #[serde(flatten)]
    pub came: CellOutcome,
}

/// Outcome of measuring a cell of a calibration: one speed-up at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "came", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum CellOutcome {
    /// Tasks were run in the cell, with these figures.
    Measured(CellFigures),
    /// The host can't hold this load at this speed-up.
    Refused {
        /// The calculation that shows that nothing fits, in words.
        why: String,
    },
}

/// Figures of the tasks that were run at one speed-up and one load of a calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CellFigures {
    /// The number of runs.
    pub runs: u32,
    /// The number of undisturbed tasks that were compared with their twins.
    pub tasks: u32,
    /// Mean relative error of the times of live tasks: the mean of (live − virtual) / virtual, a fraction.
    pub mean_error: f64,
    /// Relative error of a live task's time that is furthest from zero: (live − virtual) / virtual, a fraction.
    pub worst_error: f64,
    /// The number of checkpoints that the cell's tasks took in its live runs.
    pub checkpoints: u32,
    /// The number of checkpoints that the cell's tasks took in their virtual twins.
    pub checkpoints_due: u32,
    /// True if every run was faithful.
    pub faithful: bool,
    /// Remarks that the cell's runs made.
    pub notes: Vec<String>,
    /// Time from the start command to a task's first instruction; `None` without a measurement.
    pub start: Option<RepeatedDuration>,
    /// Time from the restore command to a task's first instruction after the checkpoint; `None` without a measurement.
    pub restore: Option<RepeatedDuration>,
    /// The time that CRIU took for a checkpoint; `None` without a measurement.
    pub dump: Option<RepeatedDuration>,
    /// Duration of the cell's measurement in real seconds.
    pub real_s: f64,
}

/// Median and maximum of a repeatedly measured duration, in real milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepeatedDuration {
    /// The number of measurements.
    pub n: u32,
    /// Median of the durations, in real milliseconds.
    pub median_ms: f64,
    /// The longest measured duration, in real milliseconds.
    pub worst_ms: f64,
}

impl CalibrationCell {
    /// True if the measured errors, the speed-up and the load of the cell are plausible.
    pub(super) fn makes_sense(&self) -> bool {
        let came = match &self.came {
            CellOutcome::Measured(of) => {
                // A task can't take less than no time.
                of.tasks > 0
                    && [of.mean_error, of.worst_error].iter().all(|e| (-1.0..1e9).contains(e))
            }
            CellOutcome::Refused { .. } => true,
        };
        came && (0.001..=1e6).contains(&self.speedup) && (1e-6..=1e6).contains(&self.load)
    }
}

impl CalibrationCell {
    /// Mean and worst relative error of the cell's live tasks, as fractions of their virtual times; `None` if no tasks ran.
    pub(super) fn errors(&self) -> Option<(f64, f64)> {
        match &self.came {
            CellOutcome::Measured(of) => Some((of.mean_error, of.worst_error)),
            CellOutcome::Refused { .. } => None,
        }
    }
}

impl ExpectedErrors {
    /// The mean and the worst error that are further from zero in either prediction, with the speed-up at which the worst error was
    /// measured.
    fn or_worse(self, higher: Self) -> Self {
        let further = |a: f64, b: f64| if a.abs() > b.abs() { a } else { b };
        match (self.errors, higher.errors) {
            (Some((mean, worst)), Some((higher_mean, higher_worst))) => {
                let errors = Some((further(mean, higher_mean), further(worst, higher_worst)));
                let stays = worst.abs() > higher_worst.abs();
                Self { errors, ..if stays { self } else { higher } }
            }
            // A load refused at a lower speed-up fits at no higher one.
            (None, _) => self,
            (_, None) => higher,
        }
    }
}

impl RepeatedDuration {
    /// Median and maximum of the given durations in real microseconds; `None` if there are none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
    pub fn from_times(mut real_us: Vec<u64>) -> Option<Self> {
        real_us.sort_unstable();
        let ms = |us: &u64| *us as f64 / 1e3;
        Some(Self {
            n: u32::try_from(real_us.len()).unwrap_or(u32::MAX),
            median_ms: ms(real_us.get((real_us.len().max(1) - 1) / 2)?),
            worst_ms: ms(real_us.last()?),
        })
    }
}

/// Errors of live tasks' times that a calibration predicts for a speed-up.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedErrors {
    /// Speed-up for which the errors are predicted.
    pub speedup: f64,
    /// Speed-up at which the errors were measured.
    pub measured_at: f64,
    /// Load of the host at which the errors were measured: busy vCPUs as a fraction of those that it holds at 1/24 of a core each.
    pub load: f64,
    /// Mean and worst predicted error of live tasks' times, as fractions; `None`: the host can't run this speed-up.
    pub errors: Option<(f64, f64)>,
}

/// The load of an experiment whose vCPUs have this share of a core.
#[must_use]
pub fn load_at(share: Ppm) -> f64 {
    1.0 / (VCPUS_A_CORE * share.as_f64())
}

/// The share of a core that a vCPU has at a load, rounded down so that all vCPUs fit; at most a core.
#[must_use]
pub fn share_at(load: f64) -> Ppm {
    let ppm = (1e6 / (VCPUS_A_CORE * load)).clamp(1.0, 1e6);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped above")]
    Ppm::new(ppm as u32)
}

impl Calibration {
    /// Expected errors of tasks at a speed-up and a load: `times` times the largest errors measured at speed-ups up to the next
    /// higher measured one, each at the lowest measured load that is at least `load`. `None` if no load that high was measured.
    ///
    /// Delays that cause errors shrink as time passes more slowly, so a higher speed-up can't be
    /// better than a lower one, except by luck.
    #[must_use]
    pub fn expected_errors(&self, speedup: f64, load: f64, times: f64) -> Option<ExpectedErrors> {
        let cells = self.at_load(load);
        let (first, rest) = cells.split_first()?;
        let of = |cell: &CalibrationCell| ExpectedErrors {
            speedup,
            measured_at: cell.speedup,
            load: cell.load,
            errors: cell.errors().map(|(mean, worst)| (mean * times, worst * times)),
        };
        let below = rest.iter().zip(&cells).take_while(|(_, before)| before.speedup < speedup);
        Some(below.fold(of(first), |expected, (cell, _)| expected.or_worse(of(cell))))
    }

    /// For each speed-up, lowest first, the cell at the lowest measured load that is at least
    /// `load`.
    #[must_use]
    pub fn at_load(&self, load: f64) -> Vec<&CalibrationCell> {
        let mut cells: Vec<_> =
            self.cells.iter().filter(|c| c.load * (1.0 + SAME_LOAD) >= load).collect();
        cells.sort_by(|a, b| {
            a.speedup.total_cmp(&b.speedup).then_with(|| a.load.total_cmp(&b.load))
        });
        cells.dedup_by(|later, earlier| later.speedup.total_cmp(&earlier.speedup).is_eq());
        cells
    }

    /// All measured loads, highest first.
    #[must_use]
    pub fn loads(&self) -> Vec<f64> {
        let mut loads: Vec<_> = self.cells.iter().map(|cell| cell.load).collect();
        loads.sort_by(|a, b| b.total_cmp(a));
        loads.dedup();
        loads
    }

    /// Adds a cell, replacing an earlier one of the same speed-up and load.
    pub fn add(&mut self, cell: CalibrationCell) {
        let same = |c: &CalibrationCell| (c.speedup, c.load) == (cell.speedup, cell.load);
        self.cells.retain(|c| !same(c));
        self.made = self.made.clone().max(cell.made.clone());
        self.cells.push(cell);
        self.cells.sort_by(|a, b| {
            b.load.total_cmp(&a.load).then_with(|| a.speedup.total_cmp(&b.speedup))
        });
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::calibration::host::tests::host_for_tests;

    pub(crate) fn cell(speedup: f64, load: f64, worst_error: f64) -> CalibrationCell {
        let came = CellOutcome::Measured(CellFigures {
            runs: 1,
            tasks: 40,
            mean_error: worst_error / 20.0,
            worst_error,
            checkpoints: 41,
            checkpoints_due: 42,
            faithful: worst_error.abs() < 0.05,
            notes: Vec::new(),
            start: RepeatedDuration::from_times(vec![2_000, 1_000, 9_000]),
            restore: None,
            dump: RepeatedDuration::from_times(vec![30_000]),
            real_s: 9.5,
        });
        CalibrationCell { speedup, load, vcpus: 30, made: "2026-11-22T03:34:53Z".into(), came }
    }

    pub(crate) fn calibration(cells: Vec<CalibrationCell>) -> Calibration {
        Calibration {
            format: FORMAT,
            made: "2026-11-22T03:34:53Z".into(),
            host: host_for_tests(),
            conditions: CalibrationConditions {
                reserve: Ppm::new(250_000),
                task_s: (110.0, 140.0),
                memory: Bytes::new(10_000_000),
                checkpoint_s: 13.395,
            },
            cells,
        }
    }

    #[test]
    fn a_load_is_how_finely_cores_are_cut() {
        assert!((load_at(Ppm::new(83_333)) - 0.5).abs() < 1e-5);
        assert_eq!(share_at(1.0), Ppm::new(41_666));
        assert_eq!(share_at(0.001), Ppm::ONE);
        for load in [0.05, 0.25, 0.5, 1.0, 3.0] {
            assert!((load_at(share_at(load)) - load).abs() < load * SAME_LOAD, "{load}");
        }
    }

    #[test]
    fn what_was_measured_at_the_next_higher_load_and_speedup_counts() {
        let table = calibration(vec![
            cell(10.0, 1.0, 0.02),
            cell(50.0, 1.0, 0.10),
            cell(10.0, 0.5, 0.01),
            cell(50.0, 0.5, -0.04),
            // Only one speed-up came to be measured at this load.
            cell(10.0, 0.25, 0.005),
        ]);
        let at = |speedup, load| {
            let e = table.expected_errors(speedup, load, 1.0).unwrap_or_else(|| panic!("{load}"));
            (e.measured_at, e.load, e.errors.map(|(_, worst)| worst))
        };
        assert_eq!(at(10.0, 1.0), (10.0, 1.0, Some(0.02)));
        assert_eq!(at(11.0, 0.6), (50.0, 1.0, Some(0.10)));
        assert_eq!(at(50.0, 0.5), (50.0, 0.5, Some(-0.04)));
        assert_eq!(at(5.0, 0.2), (10.0, 0.25, Some(0.005)));
        assert_eq!(at(30.0, 0.2), (50.0, 0.5, Some(-0.04)));
        // Beyond the highest speed-up the highest one counts; beyond the highest load there is no
        // prediction.
        assert_eq!(at(200.0, 0.5), (50.0, 0.5, Some(-0.04)));
        assert_eq!(table.expected_errors(10.0, 1.1, 1.0), None);
        let longer = table.expected_errors(10.0, 1.0, 2.0).and_then(|e| e.errors);
        assert_eq!(longer, Some((0.002, 0.04)));
        assert_eq!(calibration(Vec::new()).expected_errors(10.0, 0.1, 1.0), None);
    }

    #[test]
    fn an_error_of_a_lower_speedup_counts_at_higher_ones() {
        let table =
            calibration(vec![cell(10.0, 1.0, 0.02), cell(20.0, 1.0, -0.3), cell(30.0, 1.0, 0.04)]);
        let at =
            |speedup| table.expected_errors(speedup, 1.0, 1.0).map(|e| (e.measured_at, e.errors));
        assert_eq!(at(10.0), Some((10.0, Some((0.001, 0.02)))));
        assert_eq!(at(30.0), Some((20.0, Some((-0.015, -0.3)))));
        assert_eq!(at(99.0), at(30.0));
        let mut refused = table;
        let why = "too fast".to_owned();
        refused.add(CalibrationCell { came: CellOutcome::Refused { why }, ..cell(20.0, 1.0, 0.0) });
        let errors = refused.expected_errors(30.0, 1.0, 1.0).map(|e| (e.measured_at, e.errors));
        assert_eq!(errors, Some((20.0, None)));
    }

    #[test]
    fn a_new_cell_takes_the_place_of_the_old_one() {
        let mut table = calibration(vec![cell(10.0, 1.0, 0.02), cell(10.0, 0.5, 0.01)]);
        let later = CalibrationCell { made: "2026-11-23T00:00:00Z".into(), ..cell(10.0, 1.0, 0.5) };
        table.add(later.clone());
        table.add(cell(5.0, 1.0, 0.3));
        assert_eq!(table.cells, [cell(5.0, 1.0, 0.3), later, cell(10.0, 0.5, 0.01)]);
        assert_eq!(table.made, "2026-11-23T00:00:00Z");
        assert_eq!(table.loads(), [1.0, 0.5]);
    }

    #[test]
    fn a_spread_is_the_middle_and_the_end() {
        let four = RepeatedDuration::from_times(vec![4_000, 1_000, 3_000, 2_000]);
        assert_eq!(four, Some(RepeatedDuration { n: 4, median_ms: 2.0, worst_ms: 4.0 }));
        assert_eq!(RepeatedDuration::from_times(Vec::new()), None);
    }
}
