//! Measuring: short live runs beside their virtual twins.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Instant, SystemTime};

use dormouse_coordinator::CoordinatorError::Admission;
use dormouse_coordinator::Progress;
use dormouse_tell::Record;
use dormouse_tell::{Latency, LiveFacts, Mode};
use dormouse_worker::workspace::{Roots, remove_abandoned};

use super::bag::conditions;
use super::compare::errors;
use super::date::utc;
use super::{CalibrateError, CellPlan};
use crate::calibration::{
    Calibration, CalibrationError, Came, Cell, FORMAT, HostIdentity, Spread, folder,
};
use crate::experiment::Experiment;
use crate::live::{Conduct, LiveError, Outcome, Rehearsal, conduct, rehearse};
use crate::output::Header;
use crate::virtual_run::virtual_run;

/// Real seconds that a worker takes to come and to leave.
const AROUND_S: f64 = 2.0;

/// How the folders of calibrations' runs begin.
const PREFIX: &str = ".calibration-";

/// A host being measured, and a folder for the runs.
#[derive(Debug)]
pub struct Bench {
    folder: Roots,
    /// How often each cell is run, each time under another seed.
    repeat: u32,
}

/// What came of measuring a cell.
#[derive(Debug)]
pub enum Measured {
    /// It.
    Cell(Cell),
    /// A run was ended before its time, for this reason.
    Ended(String),
}

impl Bench {
    /// A bench whose runs' files are beside `file`, which will be written.
    ///
    /// # Errors
    ///
    /// It can't be written there.
    pub fn beside(file: &Path, repeat: u32) -> Result<Self, CalibrateError> {
        let refused = CalibrationError::io("write into", folder(file)?, "--out");
        // Workers are told of paths in it.
        let place = std::path::absolute(folder(file)?)
            .map_err(CalibrationError::io("find", file, "--out"))?;
        // What can't be listed can't be written into either, as is said next.
        let _ = remove_abandoned(&place, PREFIX);
        let folder = Roots::create(&place, PREFIX).map_err(|error| refused(error.into()))?;
        Ok(Self { folder, repeat })
    }

    /// About how many real seconds a cell will take.
    ///
    /// # Errors
    ///
    /// Its experiment can't be made or played.
    pub fn estimate_s(&self, plan: &CellPlan) -> Result<f64, CalibrateError> {
        let twin = twin(&plan.experiment(1)?)?;
        let once = twin.end().as_secs_f64() / plan.speedup + AROUND_S;
        Ok(once * f64::from(self.repeat))
    }

    /// Measures a cell, unless it is `told` to end before a run of it begins; `show` is called with
    /// how each run goes.
    ///
    /// # Errors
    ///
    /// A run broke.
    pub fn measure(
        &self,
        plan: &CellPlan,
        told: &dyn Fn() -> Option<String>,
        show: &mut dyn FnMut(&Progress),
    ) -> Result<Measured, CalibrateError> {
        let began = Instant::now();
        let cell = |came| {
            let CellPlan { speedup, load, vcpus, .. } = *plan;
            Measured::Cell(Cell { speedup, load, vcpus, made: utc(SystemTime::now()), came })
        };
        let mut sum = Sum::default();
        for seed in 1..=u64::from(self.repeat) {
            let experiment = plan.experiment(seed)?;
            let twin = twin(&experiment)?;
            let rehearsal = rehearse(&experiment, experiment.scheduler()?, &[]);
            // The run would end as well, but only once its workers are started.
            if let Some(why) = told() {
                return Ok(Measured::Ended(why));
            }
            match self.run(experiment, rehearsal, show) {
                Ok(outcome) => match &outcome.record.cancelled {
                    Some(why) => return Ok(Measured::Ended(why.clone())),
                    None => sum.add(&outcome, &twin),
                },
                Err(CalibrateError::Live(LiveError::Coordinator(Admission(error)))) => {
                    return Ok(cell(Came::Refused { why: error.to_string() }));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(cell(sum.came(self.repeat, began.elapsed().as_secs_f64())))
    }

    /// One live run, as `dormouse run --live` makes it.
    fn run(
        &self,
        experiment: Experiment,
        rehearsal: Rehearsal,
        show: &mut dyn FnMut(&Progress),
    ) -> Result<Outcome<'static>, CalibrateError> {
        let scheduler = experiment.scheduler()?;
        let place = self.folder.path();
        let out = tempfile::tempdir_in(place).map_err(CalibrationError::io(
            "write into",
            place,
            "--out",
        ))?;
        let header = Header::new(Mode::Live, "dormouse calibrate".to_owned(), experiment);
        let Outcome { record, fidelity, facts, .. } = conduct(
            Conduct {
                header: &header,
                scheduler,
                rehearsal,
                submissions: Vec::new(),
                skipped: None,
                listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                local_workers: 1,
                out: out.path().to_path_buf(),
                resume: false,
            },
            show,
        )?;
        // It has no parallel jobs.
        Ok(Outcome { record, fidelity, facts, jobs: None })
    }
}

/// The same in virtual time.
fn twin(experiment: &Experiment) -> Result<Record, CalibrateError> {
    let mut record = Record::new(&experiment.setup);
    virtual_run(experiment, experiment.scheduler()?, |step| record.see(step))?;
    Ok(record)
}

/// What the runs of a cell came to.
#[derive(Debug, Default)]
struct Sum {
    errors: Vec<f64>,
    checkpoints: u32,
    checkpoints_due: u32,
    unfaithful: bool,
    notes: Vec<String>,
    starts_us: Vec<u64>,
    restores_us: Vec<u64>,
    dumps_us: Vec<u64>,
}

impl Sum {
    fn add(&mut self, outcome: &Outcome<'_>, twin: &Record) {
        let Outcome { record, fidelity, facts, .. } = outcome;
        self.errors.extend(errors(record, twin));
        self.checkpoints += record.counts.checkpoints;
        self.checkpoints_due += twin.counts.checkpoints;
        self.unfaithful |= !fidelity.faithful;
        self.notes.extend(fidelity.notes.iter().cloned());
        let LiveFacts { starts, restores, checkpoints, .. } = facts;
        let took = |list: &[Latency]| list.iter().map(|l| l.real_us).collect::<Vec<_>>();
        self.starts_us.extend(took(starts));
        self.restores_us.extend(took(restores));
        self.dumps_us.extend(checkpoints.iter().map(|c| c.real_dump_us));
    }

    fn came(self, runs: u32, real_s: f64) -> Came {
        let worst = self.errors.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let Some(worst_error) = worst else {
            let why = format!("no task came to its end undisturbed: {}", self.notes.join("; "));
            return Came::Refused { why };
        };
        #[expect(clippy::cast_precision_loss, reason = "a count of tasks")]
        let mean_error = self.errors.iter().sum::<f64>() / self.errors.len() as f64;
        Came::Measured {
            runs,
            tasks: u32::try_from(self.errors.len()).unwrap_or(u32::MAX),
            mean_error,
            worst_error,
            checkpoints: self.checkpoints,
            checkpoints_due: self.checkpoints_due,
            faithful: !self.unfaithful,
            notes: self.notes,
            start: Spread::of(self.starts_us),
            restore: Spread::of(self.restores_us),
            dump: Spread::of(self.dumps_us),
            real_s,
        }
    }
}

impl Calibration {
    /// Of this host, with nothing measured yet; or `former`, if it is of this host and was
    /// measured as this version measures.
    #[must_use]
    pub fn begin(host: HostIdentity, former: Option<Self>) -> Self {
        let same = |former: &Self| former.host == host && former.conditions == conditions();
        former.filter(same).unwrap_or_else(|| Self {
            format: FORMAT,
            made: utc(SystemTime::now()),
            host,
            conditions: conditions(),
            cells: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::testing::{calibration, cell, host};

    #[test]
    fn the_worst_is_the_furthest_from_zero_and_signs_cancel_in_the_mean() {
        let sum = Sum { errors: vec![0.01, -0.06, 0.02], dumps_us: vec![500], ..Sum::default() };
        let came = sum.came(2, 12.5);
        let Came::Measured {
            runs, tasks, mean_error, worst_error, faithful, dump, restore, ..
        } = came
        else {
            panic!("{came:?}")
        };
        assert_eq!((runs, tasks, worst_error, faithful), (2, 3, -0.06, true));
        assert!((mean_error + 0.01).abs() < 1e-12);
        assert_eq!((dump.map(|d| d.n), restore), (Some(1), None));

        let none = Sum { notes: vec!["it was lost".into()], ..Sum::default() }.came(1, 1.0);
        assert!(matches!(none, Came::Refused { why } if why.contains("it was lost")));
    }

    #[test]
    fn what_was_measured_here_before_is_kept() {
        let former = calibration(vec![cell(10.0, 1.0, 0.01)]);
        let kept = Calibration::begin(host(), Some(former.clone()));
        assert_eq!(kept.cells.len(), 1);
        let elsewhere = HostIdentity { millicores: 4_000, ..host() };
        assert_eq!(Calibration::begin(elsewhere, Some(former.clone())).cells, []);
        let mut otherwise = former;
        otherwise.conditions.checkpoint_s += 1.0;
        assert_eq!(Calibration::begin(host(), Some(otherwise)).cells, []);
    }
}
