//! Measures a user's own program without a given run time: one of its tasks is measured before the run, and the file of
//! measurements is kept, so that the same command measures only once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use dormouse_experiment::{Experiment, LoadedExperiment, identity_of_program};
use dormouse_host::doctor::proved;
use dormouse_report::output::make_folder;
use sha2::{Digest as _, Sha256};

use super::args::Say;
use super::failure::Failure;
use super::own_args::ProgramArgs;
use super::sampling::{Prepared, Sampled, of_kinds, write_measures};
use crate::said;

/// Folder for files of measured programs: the one that also has the folders of runs.
const FOLDER: &str = "runs";

/// Returns the file with the measured run times of an experiment's tasks; measures them now if there is no such file.
pub(super) fn sample(
    loaded: &LoadedExperiment,
    own: &ProgramArgs,
    say: Say,
) -> Result<PathBuf, Failure> {
    let (experiment, folder) = (&loaded.experiment, Path::new(FOLDER));
    let file = folder.join(file_name(experiment, own));
    let tasks = experiment.own_tasks.tasks.len();
    if file.is_file() {
        if !say.quiet {
            let file = file.display();
            said::note(&format!(
                "how long a task takes is as measured before ({file}; without it, it is measured again)"
            ));
        }
        return Ok(file);
    }
    let prepared = Prepared::new(experiment, &loaded.sources, of_kinds(experiment))?;
    if let Some(lacking) = proved().0.lacking(prepared.needs_criu()) {
        let (what, found) = (&lacking.name, &lacking.found);
        return Err(Failure::BadInput(format!(
            "{}: a task has no run time, and it can't be measured here ({what}: {found}); give one, \
             such as --runtime 10m, or see `dormouse doctor`",
            experiment.name
        )));
    }
    if !say.quiet {
        said::note(&format!(
            "the tasks' run time is not given: one of {tasks} is measured first, alone (or give it, such as --runtime 10m)"
        ));
    }
    let Sampled { measures, failures } = prepared.measured(say, false)?;
    if !failures.is_empty() {
        return Err(Failure::Broken(failures.join("\n")));
    }
    make_folder(folder)?;
    write_measures(&file, &measures)?;
    let done = measures.measures.iter().rfind(|it| it.measured.exit_status == Some(0));
    if let (Some(it), false) = (done, say.quiet) {
        let runtime = it.measured.runtime(experiment.live.speedup);
        said::note(&format!(
            "{} takes {runtime} on a vCPU of the reference speed, a sample of one, taken for all {tasks} ({})",
            it.task,
            file.display()
        ));
    }
    Ok(file)
}

/// Name of the file of measurements for these programs; it differs for another program, command or input.
fn file_name(experiment: &Experiment, own: &ProgramArgs) -> String {
    let program = own.command.first().and_then(|word| Path::new(word).file_name());
    let program = program.unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_alphanumeric() || ".-_".contains(c) { c } else { '_' };
    let program: String = program.chars().map(plain).take(40).collect();
    let all: BTreeSet<String> =
        experiment.own_programs.values().map(|it| identity_of_program(it)).collect();
    let all: Vec<String> = all.into_iter().collect();
    let digest = Sha256::digest(all.join("\n"));
    let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("measured-{program}-{digest}.json")
}
