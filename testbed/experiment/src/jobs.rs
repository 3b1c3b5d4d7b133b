//! Resolves the sections of parallel jobs, and finds the data files that built-in experiments name.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};

use dormouse_documents::{InputError, Mistakes, Node, Place, Value, instead, missing, read};
use dormouse_policies::Own;
use dormouse_policies::batch::{Algorithm, BatchSchedulerConfig};
use dormouse_policies::program::ProgramConfig;
use dormouse_units::Bytes;
use dormouse_vm::ProcessorSharing;
use dormouse_workload::{BatchWorkload, Estimates, JobSource, JobSpec, LogRules, SwfError, Trace};
use schemars::schema_for;

use super::sections::{CheckpointSection, ModelSection, WorkloadSection, properties};
use super::{BatchSetup, checkpoint, programs, sharing};

/// Default number of processors: that of the MEASY paper.
const PROCESSORS: u32 = 320;

/// Resolves the workload, scheduler and machine of parallel jobs in the sections of `node`.
pub(crate) fn check(node: &Node, found: &mut Mistakes) -> Option<BatchSetup> {
    let scheduler = scheduler(node, found);
    let sharing = match node.get("sharing") {
        None => Some(ProcessorSharing::default()),
        Some(node) => read(node, found).and_then(|section| sharing::check(section, node, found)),
    };
    let checkpoint = node.get("checkpoint").and_then(|node| {
        let section: CheckpointSection = read(node, found)?;
        checkpoint::check_of_jobs(section, node, found)
    });
    let Some(inside) = node.get("workload") else {
        missing(node, "workload", "{ kind = \"swf\", log = \"my.swf\" }", found);
        return None;
    };
    let workload = read(inside, found).and_then(|section| workload(section, inside, found))?;
    if workload.burstable.is_some_and(|burstable| burstable.surplus.is_some()) {
        let what = "the machine of parallel jobs has no bill";
        let remedy = "leave it out: without credits the machine has its baseline";
        found.add(inside.innermost("burstable").place_of("surplus-price"), what, remedy);
    }
    let (scheduler, sharing) = (scheduler?, sharing?);
    let batch = BatchSetup { workload, scheduler, checkpoint, sharing };
    check_memory(&batch, inside, found);
    Some(batch)
}

/// Checks that the jobs listed in the experiment fit into the memory of their machine.
fn check_memory(batch: &BatchSetup, node: &Node, found: &mut Mistakes) {
    let JobSource::Jobs { job } = &batch.workload.source else { return };
    let largest = job.iter().map(|job| job.memory).max().unwrap_or_default();
    let place = match node.get("memory-per-processor") {
        Some(said) => said.place.clone(),
        None => node.place.key("memory-per-processor"),
    };
    match batch.simulation(0).job_capacity().memory {
        None if largest > Bytes::ZERO => {
            let what = format!(
                "jobs want up to {largest} for each process, but the memory of a processor is not given"
            );
            let remedy = "give it, such as: memory-per-processor = \"2 GiB\"";
            found.add(&place, what, remedy);
        }
        Some(most) if largest > most => {
            let whose = match batch.scheduler.name.promotion() {
                Some(_) => "half of a processor's, as its scheduler puts two on one",
                None => "all of a processor's",
            };
            let what = format!(
                "a job wants {largest} for each process, and a process can have {most}: {whose}"
            );
            found.add(&place, what, "give the processors more memory, or the job less");
        }
        _ => {}
    }
}

fn workload(section: WorkloadSection, node: &Node, found: &mut Mistakes) -> Option<BatchWorkload> {
    Some(match section {
        WorkloadSection::Bag(_) | WorkloadSection::Requests(_) => return None,
        WorkloadSection::Swf(section) => {
            let place = node.place_of("log");
            let log = file(node, "log", &section.log, found)?;
            let (rules, estimates) = (section.rules(), section.estimates);
            if estimates == Estimates::Tsafrir {
                let what = "tsafrir is of models: a log has its users' own";
                found.add(node.place_of("estimates"), what, "write given, exact or double");
            }
            let processors = match section.processors {
                Some(processors) => processors,
                None => found.take(said_by(&log, rules, place))?,
            };
            section.on(processors, JobSource::Swf { log, rules, estimates, first: section.first })
        }
        WorkloadSection::Model(section) => {
            let ModelSection { model, jobs, estimates, shape, .. } = section;
            if estimates == Estimates::Given {
                let what = "given is of logs: a model has no users";
                found.add(node.place_of("estimates"), what, "write tsafrir, exact or double");
            }
            let processors = section.processors.unwrap_or(PROCESSORS);
            section.on(processors, JobSource::Model { model, jobs, estimates, shape })
        }
        WorkloadSection::Jobs(mut section) => {
            let mut job = std::mem::take(&mut section.job);
            for job in &mut job {
                job.estimate.get_or_insert(job.runtime);
            }
            check_jobs(&job, section.processors, node, found);
            section.on(section.processors.unwrap_or(PROCESSORS), JobSource::Jobs { job })
        }
    })
}

/// Checks that listed jobs are in order of submission, and that each fits on the machine.
fn check_jobs(jobs: &[JobSpec], machine: Option<u32>, node: &Node, found: &mut Mistakes) {
    let Some(machine) = machine else { return missing(node, "processors", "16", found) };
    for (n, job) in jobs.iter().enumerate() {
        let place = |key: &str| node.place_of(&format!("job.{n}.{key}"));
        if job.processes > machine {
            let what = format!("{} is out of range", job.processes);
            let remedy = format!("write a whole number from 1 to {machine}, the machine's");
            found.add(place("processes"), what, remedy);
        }
        if n > 0 && job.submitted < jobs[n - 1].submitted {
            let what = format!("{} is before the job above it was submitted", job.submitted);
            found.add(place("submitted"), what, "write the jobs in order of submission");
        }
    }
}

/// Number of processors of the machine that the log at `log` is from, as the log's header gives it.
fn said_by(log: &Path, rules: LogRules, place: &Place) -> Result<u32, InputError> {
    let trace = Trace::from_file(log, File::open(log), None, rules).map_err(|error| match error {
        SwfError::NoMachine { path } => {
            let path = path.display();
            let what =
                format!("{path} does not say how many processors its machine has (MaxProcs)");
            InputError::new(place, what, "add workload.processors")
        }
        error => {
            let remedy = "give the path of a log in the Standard Workload Format, such as with --set \
                          workload.log=FILE; the Parallel Workloads Archive has them, \
                          https://www.cs.huji.ac.il/labs/parallel/workload/";
            InputError::new(place, crate::chain::chain(&error), remedy)
        }
    })?;
    Ok(trace.machine())
}

fn scheduler(node: &Node, found: &mut Mistakes) -> Option<BatchSchedulerConfig> {
    let Some(inside) = node.get("scheduler") else {
        missing(node, "scheduler", "{ name = \"easy\" }", found);
        return None;
    };
    if found.inside(&inside.place.path) {
        return None;
    }
    let word = inside.text("name").unwrap_or_default();
    if Algorithm::named(word).is_none() {
        let what = format!("{word} schedules a bag of tasks, and these are parallel jobs");
        let all = Algorithm::ALL.map(Algorithm::name);
        found.add(inside.place_of("name"), what, instead(word, &all));
        return None;
    }
    let Value::Table(table) = &inside.value else { return None };
    let (mut own, mut rest) = (table.clone(), table.clone());
    let of_program = properties(&schema_for!(ProgramConfig));
    own.retain(|key, _| of_program.contains_key(key));
    rest.retain(|key, _| !of_program.contains_key(key));
    let node = |table| Node { place: inside.place.clone(), value: Value::Table(table) };
    let config: BatchSchedulerConfig = read(&node(rest), found)?;
    let own = match node(own).json() {
        serde_json::Value::Object(own) if config.name == Algorithm::Program => Own(own),
        _ => return Some(config),
    };
    Some(BatchSchedulerConfig { own: programs::check(own, inside, found)?, ..config })
}

/// Path of the file that the key `key` of the table at `node` names. Files of built-in experiments
/// are also found where `scripts/get-data` puts them.
pub(crate) fn file(node: &Node, key: &str, name: &str, found: &mut Mistakes) -> Option<PathBuf> {
    let place = node.place_of(key);
    let path = place.file(name);
    let is_built_in = place.at.is_some() && place.source.ends_with("(built in)");
    if !is_built_in || path.exists() {
        return Some(path);
    }
    let obtained = data_folders().map(|folder| folder.join(name)).find(|path| path.exists());
    if obtained.is_none() {
        let what = format!("{name} is public and not ours to ship, and it is not here");
        let remedy = format!(
            "fetch it with `scripts/get-data`, or give another with --set {}=FILE",
            place.path
        );
        found.add(place, what, remedy);
    }
    obtained
}

/// Folders where `scripts/get-data` puts files: `$DORMOUSE_HOME/data`, or `.dormouse/data` in a
/// directory above the current one or this program.
fn data_folders() -> impl Iterator<Item = PathBuf> {
    let home = env::var_os("DORMOUSE_HOME").filter(|home| !home.is_empty());
    let above = [env::current_dir().ok(), env::current_exe().ok()];
    let above: Vec<PathBuf> = above
        .iter()
        .flatten()
        .flat_map(|start| start.ancestors().map(|dir| dir.join(".dormouse/data")))
        .collect();
    home.map(|home| Path::new(&home).join("data")).into_iter().chain(above)
}
