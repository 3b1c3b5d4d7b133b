//! Measures cells by short live runs beside their virtual twins.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use dormouse_analysis::fidelity::{FidelityVerdict, span_of};
use dormouse_analysis::{CommandLatency, LiveFacts, RunMode, RunRecord};
use dormouse_coordinator::CoordinatorError::Admission;
use dormouse_coordinator::RunProgress;
use dormouse_folders::{HeldFolder, remove_abandoned};
use dormouse_host::calibration::{
    CalibrationCell, CalibrationError, CellOutcome, Samples, folder_of,
};
use dormouse_units::{TaskId, Time};

use super::{CalibrateError, CellPlan};
use crate::live::{Conduct, LiveError, Rehearsal, conduct, rehearse};
use dormouse_experiment::{Experiment, Sources};
use dormouse_report::output::LogHeader;
use dormouse_report::run_view::RunResults;
use dormouse_report::virtual_run::virtual_run;

/// Real seconds that a worker takes to join and to leave.
const AROUND_S: f64 = 2.0;

/// Beginning of the names of the folders with calibrations' runs.
const PREFIX: &str = ".calibration-";

/// The host that is calibrated, with a folder for the runs.
#[derive(Debug)]
pub(crate) struct Bench {
    folder: HeldFolder,
    /// The number of times that each cell is run, each time under another seed.
    repeat: u32,
}

/// The outcome of measuring a cell.
#[derive(Debug)]
pub(crate) enum Measured {
    /// The measured cell, or why it was refused.
    Cell(CalibrationCell),
    /// A run was ended early, for this reason.
    Ended(String),
}

impl Bench {
    /// Makes a bench that keeps its runs beside `file`, which will be written.
    pub(crate) fn beside(file: &Path, repeat: u32) -> Result<Self, CalibrateError> {
        let refused = CalibrationError::io("write into", folder_of(file)?, "--out");
        // Workers are told of paths in it.
        let place = std::path::absolute(folder_of(file)?)
            .map_err(CalibrationError::io("find", file, "--out"))?;
        // What can't be listed can't be written into either, as is said next.
        let _ = remove_abandoned(&place, PREFIX);
        let folder = HeldFolder::create(&place, PREFIX).map_err(|error| refused(error.into()))?;
        Ok(Self { folder, repeat })
    }

    /// Estimate of the real seconds that a cell will take.
    pub(crate) fn estimate_s(&self, plan: &CellPlan) -> Result<f64, CalibrateError> {
        let experiment = plan.experiment(1)?;
        let end = twin(&experiment)?.end();
        let once = experiment.live.speedup.to_real(end.since(Time::ZERO)).as_secs_f64() + AROUND_S;
        Ok(once * f64::from(self.repeat))
    }

    /// Measures a cell; ends early if `told` returns, before one of the cell's runs, that the measurement should end.
    /// `show` is called with the progress of each run.
    pub(crate) fn measure(
        &self,
        plan: &CellPlan,
        told: &dyn Fn() -> Option<String>,
        show: &mut dyn FnMut(&RunProgress),
    ) -> Result<Measured, CalibrateError> {
        let began = Instant::now();
        let cell =
            |came| Measured::Cell(CalibrationCell::now(plan.speedup, plan.load, plan.vcpus, came));
        let mut all = Samples::default();
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
                    None => add(&mut all, &outcome, &twin),
                },
                Err(CalibrateError::Live(LiveError::Coordinator(Admission(error)))) => {
                    return Ok(cell(CellOutcome::Refused { why: error.to_string() }));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(cell(all.came(self.repeat, began.elapsed().as_secs_f64())))
    }

    /// Makes one live run, as `dormouse run --live` does.
    fn run(
        &self,
        experiment: Experiment,
        rehearsal: Rehearsal,
        show: &mut dyn FnMut(&RunProgress),
    ) -> Result<Outcome, CalibrateError> {
        let scheduler = experiment.scheduler()?;
        let place = self.folder.path();
        let out = tempfile::tempdir_in(place).map_err(CalibrationError::io(
            "write into",
            place,
            "--out",
        ))?;
        let header = LogHeader::new(RunMode::Live, "dormouse calibrate".to_owned(), experiment);
        let (results, facts) = conduct(
            Conduct {
                header: &header,
                scheduler,
                rehearsal,
                submissions: Vec::new(),
                requests: Vec::new(),
                listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                local_workers: 1,
                out: out.path().to_path_buf(),
                resume: false,
                page: None,
                sources: Sources::new(),
            },
            show,
        )?;
        let RunResults { record, fidelity, .. } = results;
        let record = record.unwrap_or_else(|| header.record());
        Ok(Outcome { record, fidelity: fidelity.unwrap_or_default(), facts })
    }
}

/// Results of one live run.
struct Outcome {
    record: RunRecord,
    fidelity: FidelityVerdict,
    facts: LiveFacts,
}

/// Runs the experiment of a live run again in virtual time.
fn twin(experiment: &Experiment) -> Result<RunRecord, CalibrateError> {
    let mut record = RunRecord::new(&experiment.setup);
    virtual_run(experiment, experiment.scheduler()?, |step| record.see(step))?;
    Ok(record)
}

/// The error of every task that was disturbed in neither run: (live − virtual) / virtual, of the time from its start to
/// its end, as measured by the worker in the live run. A task is undisturbed if it finished in its only attempt.
pub fn errors(live: &RunRecord, twin: &RunRecord) -> Vec<f64> {
    let both = (0..).map(TaskId::new).zip(live.tasks.iter().zip(&twin.tasks));
    both.filter_map(|(task, _)| {
        let (live, twin) = (span_of(live, task)?, span_of(twin, task)?);
        let (live, twin) = (live.as_secs_f64(), twin.as_secs_f64());
        (twin > 0.0).then(|| live / twin - 1.0)
    })
    .collect()
}

/// Adds the errors of a run and its twin to the samples of their cell.
fn add(all: &mut Samples, outcome: &Outcome, twin: &RunRecord) {
    let Outcome { record, fidelity, facts } = outcome;
    all.errors.extend(errors(record, twin));
    all.checkpoints += record.counts.checkpoints;
    all.checkpoints_due += twin.counts.checkpoints;
    all.unfaithful |= !fidelity.faithful;
    all.notes.extend(fidelity.notes.iter().cloned());
    let LiveFacts { starts, restores, checkpoints, .. } = facts;
    let took = |list: &[CommandLatency]| list.iter().map(|l| l.real_us).collect::<Vec<_>>();
    all.starts_us.extend(took(starts));
    all.restores_us.extend(took(restores));
    all.dumps_us.extend(checkpoints.iter().map(|c| c.real_dump_us));
}
