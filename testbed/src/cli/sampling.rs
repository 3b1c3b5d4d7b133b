//! Programs of the user's own that are measured: a task of each kind, alone, one after the other.

use std::collections::BTreeSet;
use std::path::Path;

use dormouse_analysis::RunMode;
use dormouse_experiment::{
    CarriedProgram, Experiment, ExperimentSource, InputError, LoadedExperiment, MeasureFile,
    MeasuredProgram, Override, OwnSaid, ProgramMeasure, Sources, command_line, identity_of_program,
    open,
};
use dormouse_model::Step;
use dormouse_report::output::{LogHeader, ReplacedContent, RunLog, StagedFolder, live_header};
use dormouse_units::{Ppm, TaskId};

use super::args::Say;
use super::failure::Failure;
use super::log;
use super::preflight::{ANY_PORT, Rehearsed};
use crate::live::{Conduct, conduct};
use crate::measure::{Sample, carried_off, compare, measured, undisturbed};

/// Settings of a scheduler that needs no run times, which replace the experiment's settings: only one task runs.
const ANY: [(&str, &str); 2] = [
    ("scheduler", "{ name = \"program\", command = [\"true\"] }"),
    ("checkpoint", "{ policy = \"none\" }"),
];

/// Most tasks of a kind that are tried until one of them ends successfully.
const MOST_TRIES: usize = 3;

/// Opens an experiment whose tasks are to be measured, as their run times are not known yet.
pub(super) fn open_to_measure(
    experiment: Option<&str>,
    mut overrides: Vec<Override>,
    own: OwnSaid,
) -> Result<LoadedExperiment, InputError> {
    overrides.extend(ANY.map(|(path, value)| Override {
        option: "measure",
        path: path.to_owned(),
        value: value.to_owned(),
    }));
    open(&ExperimentSource {
        experiment,
        overrides,
        own,
        is_unmeasured: true,
        ..ExperimentSource::default()
    })
}

/// The tasks of the experiment grouped by kind; it is enough that one task of each kind ends successfully.
pub(super) fn of_kinds(experiment: &Experiment) -> Vec<Vec<TaskId>> {
    let mut kinds = experiment.tasks_of_kinds();
    kinds.iter_mut().for_each(|tasks| tasks.truncate(MOST_TRIES));
    kinds
}

/// The first task of each different program.
pub(super) fn of_programs(experiment: &Experiment) -> Vec<Vec<TaskId>> {
    let mut seen = BTreeSet::new();
    let programs = experiment.own_programs.iter();
    let firsts = programs.filter(|(_, it)| seen.insert(identity_of_program(it)));
    firsts.map(|(id, _)| vec![*id]).collect()
}

/// Measurements of tasks in groups, and the groups in which no task ended successfully.
#[derive(Debug)]
pub(super) struct Sampled {
    /// A measure for each task that was tried.
    pub(super) measures: MeasureFile,
    /// For each kind without a task that ended successfully: the reason, in one line.
    pub(super) failures: Vec<String>,
}

/// A task, and an experiment in which it is the only task.
type Alone = (TaskId, Experiment);

/// Tasks that are to be measured, in groups; one task of each group must end successfully.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    experiment: &'a Experiment,
    sources: &'a Sources,
    groups: Vec<Vec<Alone>>,
}

impl<'a> Prepared<'a> {
    /// Prepares to measure the tasks of these groups.
    pub(super) fn new(
        experiment: &'a Experiment,
        sources: &'a Sources,
        groups: Vec<Vec<TaskId>>,
    ) -> Result<Self, Failure> {
        let alone = |task| {
            let alone = undisturbed(experiment, task);
            alone
                .map(|alone| (task, alone))
                .map_err(|why| Failure::BadInput(format!("{}: {why}", experiment.name)))
        };
        let groups = groups.into_iter().map(|tasks| tasks.into_iter().map(alone).collect());
        Ok(Self { experiment, sources, groups: groups.collect::<Result<_, _>>()? })
    }

    /// Whether CRIU checkpoints any of the tasks.
    pub(super) fn needs_criu(&self) -> bool {
        self.groups.iter().flatten().any(|(_, alone)| alone.needs_criu())
    }

    /// Runs the tasks of each group until one ends successfully. With `moves`, a task that ended successfully is run once more if
    /// CRIU can save it, and is then moved to a second VM in the middle.
    pub(super) fn measured(&self, say: Say, moves: bool) -> Result<Sampled, Failure> {
        log::begin(false, None);
        let mut measures = MeasureFile {
            dormouse: env!("CARGO_PKG_VERSION").to_owned(),
            pace: Some(self.experiment.live.speedup),
            ..MeasureFile::default()
        };
        let mut failures = Vec::new();
        let mut progress = say.progress(self.groups.len(), "programs measured");
        for (n, group) in self.groups.iter().enumerate() {
            let mut failed = Vec::new();
            for alone in group {
                let (share, measure, failure) = self.one(alone, moves)?;
                measures.share = share;
                let task = measure.task.clone();
                measures.measures.push(measure);
                match failure {
                    None => {
                        failed.clear();
                        break;
                    }
                    Some(why) => failed.push(format!("{task}: {why}")),
                }
            }
            failures.extend(failed.first().map(|first| self.failure(group, first)));
            progress.show(n as u64 + 1, self.groups.len() as u64, "", None);
        }
        Ok(Sampled { measures, failures })
    }

    /// Message that no task of a group ended successfully; `first` is the failure of its first task.
    fn failure(&self, group: &[Alone], first: &str) -> String {
        let kind = group.first().and_then(|(task, _)| self.kind(*task)).unwrap_or_default();
        let tried = match group.len() {
            1 => "the task that was measured failed".to_owned(),
            tried => format!("each of {tried} tasks that were measured failed"),
        };
        let remedy = "mend the command, or say how long a task takes: --runtime 150s";
        format!("{}: {tried}, {first}; {remedy}", command_line(kind))
    }

    fn kind(&self, task: TaskId) -> Option<&'a [String]> {
        let own = &self.experiment.own_tasks;
        let task = own.tasks.get(&task)?;
        own.kinds.get(task.kind as usize).map(Vec::as_slice)
    }

    /// Runs a single task; returns the share of a core that its vCPU had, the measurements, and the reason if it
    /// failed.
    fn one(
        &self,
        (task, alone): &Alone,
        moves: bool,
    ) -> Result<(Ppm, ProgramMeasure, Option<String>), Failure> {
        let spec = self.experiment.setup.bag.tasks.get(task.get() as usize);
        let name = spec.map(|task| task.name.as_str()).unwrap_or_default();
        let broken = |why: String| Failure::Broken(format!("{name} can't be measured: {why}"));
        let folder = || tempfile::tempdir().map_err(|error| broken(error.to_string()));
        let first = folder()?;
        let staging = self.run_alone(alone, &first.path().join("run"))?;
        let share = Ppm::new(live_header(staging.path())?.share_ppm);
        let steps = RunLog::read(staging.path())?.steps.unwrap_or_default();
        let Sample { mut measured, failure } =
            measured(&steps, alone.live.speedup).map_err(|error| broken(error.to_string()))?;
        let can_move = alone.needs_criu() && measured.not_dumped.is_none() && failure.is_none();
        if moves && can_move && measured.exit_status == Some(0) {
            measured.carried =
                self.carried(alone, &measured, &steps, &folder()?.path().join("run"))?;
        }
        let program = self.experiment.own_programs.get(task);
        let measure = ProgramMeasure {
            task: name.to_owned(),
            kind: self.kind(*task).unwrap_or_default().to_vec(),
            program: program.map(|program| identity_of_program(program)).unwrap_or_default(),
            measured,
        };
        let failure = failure.or_else(|| failure_of(&measure, staging.path()));
        Ok((share, measure, failure))
    }

    /// The changes that a move makes to a program, measured in a run with these steps.
    fn carried(
        &self,
        alone: &Experiment,
        undisturbed: &MeasuredProgram,
        steps: &[Step],
        out: &Path,
    ) -> Result<Option<CarriedProgram>, Failure> {
        let off = carried_off(alone, undisturbed, steps).map_err(Failure::Broken)?;
        let Some(off) = off else { return Ok(None) };
        let staging = self.run_alone(&off, out)?;
        let steps = RunLog::read(staging.path())?.steps.unwrap_or_default();
        let sample = measured(&steps, off.live.speedup).map_err(|error| error.to_string());
        Ok(compare(undisturbed, &steps, sample))
    }

    /// Runs the only task of an experiment live, into a folder that is removed when the returned value is dropped.
    fn run_alone(&self, alone: &Experiment, out: &Path) -> Result<StagedFolder, Failure> {
        let header =
            LogHeader::new(RunMode::Live, command_line(["dormouse", "measure"]), alone.clone());
        let Rehearsed { rehearsal, submissions, requests, .. } = Rehearsed::rehearse(alone)?;
        let staging = StagedFolder::begin_in_place(out, ReplacedContent::Anything)?;
        let how = Conduct {
            header: &header,
            scheduler: alone.scheduler()?,
            rehearsal,
            submissions,
            requests,
            listen: ANY_PORT,
            local_workers: 1,
            out: staging.path().to_path_buf(),
            resume: false,
            page: None,
            sources: self.sources.clone(),
        };
        conduct(how, |_| {})?;
        Ok(staging)
    }
}

/// Reason why a program failed that was the only task of the run in a folder, with the program's last output; `None` if
/// it succeeded.
fn failure_of(measure: &ProgramMeasure, folder: &Path) -> Option<String> {
    let how = match (measure.measured.exit_status, measure.measured.signal) {
        (Some(0), _) => return None,
        (Some(status), _) => format!("it returned status {status}"),
        (None, signal) => format!("signal {} ended it", signal.unwrap_or_default()),
    };
    let said = std::fs::read(folder.join("tasks/0/stderr")).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let last =
        said.lines().rfind(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned());
    Some(last.map_or_else(|| how.clone(), |last| format!("{how}: {last}")))
}

/// Writes measurements to a file, as JSON.
pub(super) fn write_measures(path: &Path, measures: &MeasureFile) -> Result<(), Failure> {
    // Text and numbers: this can't fail.
    let text = serde_json::to_string_pretty(measures).unwrap_or_default() + "\n";
    std::fs::write(path, text)
        .map_err(|error| Failure::BadInput(format!("--out {}: {error}", path.display())))
}
