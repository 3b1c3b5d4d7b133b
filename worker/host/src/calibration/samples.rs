//! Samples of the runs of a cell.

use std::time::SystemTime;

use super::{
    Calibration, CalibrationCell, CalibrationConditions, CellFigures, CellOutcome, FORMAT,
    HostIdentity, RepeatedDuration,
};
use crate::date::utc_text;

/// Samples from all runs of a cell, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Error of each undisturbed task: (live − virtual) / virtual of its time.
    pub errors: Vec<f64>,
    /// The number of checkpoints that were taken.
    pub checkpoints: u32,
    /// The number of checkpoints that the same runs took in virtual time.
    pub checkpoints_due: u32,
    /// Whether the report of a run said that the run was not faithful.
    pub unfaithful: bool,
    /// The notes of the runs.
    pub notes: Vec<String>,
    /// Times from start commands to tasks' first instructions, in real microseconds.
    pub starts_us: Vec<u64>,
    /// Times from restore commands to the first instructions of tasks restored from a checkpoint, in real microseconds.
    pub restores_us: Vec<u64>,
    /// The times that CRIU took for checkpoints, real microseconds.
    pub dumps_us: Vec<u64>,
}

impl Samples {
    /// The outcome of a cell with these samples, after this number of runs that took `real_s` real seconds.
    #[must_use]
    pub fn came(self, runs: u32, real_s: f64) -> CellOutcome {
        let worst = self.errors.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let Some(worst_error) = worst else {
            let why = format!("no task came to its end undisturbed: {}", self.notes.join("; "));
            return CellOutcome::Refused { why };
        };
        #[expect(clippy::cast_precision_loss, reason = "a count of tasks")]
        let mean_error = self.errors.iter().sum::<f64>() / self.errors.len() as f64;
        CellOutcome::Measured(CellFigures {
            runs,
            tasks: u32::try_from(self.errors.len()).unwrap_or(u32::MAX),
            mean_error,
            worst_error,
            checkpoints: self.checkpoints,
            checkpoints_due: self.checkpoints_due,
            faithful: !self.unfaithful,
            notes: self.notes,
            start: RepeatedDuration::from_times(self.starts_us),
            restore: RepeatedDuration::from_times(self.restores_us),
            dump: RepeatedDuration::from_times(self.dumps_us),
            real_s,
        })
    }
}

impl CalibrationCell {
    /// A cell that was measured now.
    #[must_use]
    pub fn now(speedup: f64, load: f64, vcpus: u32, came: CellOutcome) -> Self {
        Self { speedup, load, vcpus, made: utc_text(SystemTime::now()), came }
    }
}

impl Calibration {
    /// A calibration of this host under these conditions, with nothing measured yet; or `former`, if that is of this
    /// host and was measured under the same conditions.
    #[must_use]
    pub fn begin(
        host: HostIdentity,
        conditions: CalibrationConditions,
        former: Option<Self>,
    ) -> Self {
        let same = |former: &Self| former.host == host && former.conditions == conditions;
        former.filter(same).unwrap_or_else(|| Self {
            format: FORMAT,
            made: utc_text(SystemTime::now()),
            host,
            conditions,
            cells: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::host::tests::host_for_tests;
    use crate::calibration::table::tests::{calibration, cell};

    #[test]
    fn the_worst_is_the_furthest_from_zero_and_signs_cancel_in_the_mean() {
        let errors = vec![0.01, -0.06, 0.02];
        let came = Samples { errors, dumps_us: vec![500], ..Samples::default() }.came(2, 12.5);
        let CellOutcome::Measured(of) = came else { panic!("{came:?}") };
        assert_eq!((of.runs, of.tasks, of.worst_error, of.faithful), (2, 3, -0.06, true));
        assert!((of.mean_error + 0.01).abs() < 1e-12);
        assert_eq!((of.dump.map(|d| d.n), of.restore), (Some(1), None));

        let none = Samples { notes: vec!["it was lost".into()], ..Samples::default() };
        assert!(
            matches!(none.came(1, 1.0), CellOutcome::Refused { why } if why.contains("it was lost"))
        );
    }

    #[test]
    fn what_was_measured_here_before_is_kept() {
        let former = calibration(vec![cell(10.0, 1.0, 0.01)]);
        let conditions = former.conditions.clone();
        let begin = |host, conditions| Calibration::begin(host, conditions, Some(former.clone()));
        assert_eq!(begin(host_for_tests(), conditions.clone()).cells.len(), 1);
        let elsewhere = HostIdentity { millicores: 4_000, ..host_for_tests() };
        assert_eq!(begin(elsewhere, conditions.clone()).cells, []);
        let otherwise =
            CalibrationConditions { checkpoint_s: conditions.checkpoint_s + 1.0, ..conditions };
        assert_eq!(begin(host_for_tests(), otherwise).cells, []);
    }
}
