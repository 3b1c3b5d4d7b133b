//! The sections of an experiment file that parallel jobs have.

use std::path::Path;

use dormouse_policies::batch::Algorithm;
use dormouse_units::{Bytes, Span};
use dormouse_vm::Sharing;
use dormouse_workload::{Model, OnMalformed, SwfError, Trace};

use super::{
    Batch, BatchScheduler, BatchWorkload, Estimates, Information, JobSource, JobSpec, UsageKind,
};
use crate::experiment::cloud::read_burstable;
use crate::experiment::import::path_of;
use crate::experiment::reader::{Section, pair};
use crate::experiment::{InputError, Place, checkpoint, sharing};

/// Most processors of a machine, and jobs of a model: beyond it a slip of the hand is likelier.
const MOST_PROCESSORS: u32 = 10_000_000;
const MOST_JOBS: u64 = 1_000_000_000;

const USAGES: [(&str, UsageKind); 2] = [("drawn", UsageKind::Drawn), ("full", UsageKind::Full)];
const ESTIMATES: [(&str, Estimates); 2] =
    [("tsafrir", Estimates::Tsafrir), ("exact", Estimates::Exact)];
const ON_MALFORMED: [(&str, OnMalformed); 2] =
    [("fail", OnMalformed::Fail), ("skip", OnMalformed::Skip)];
const INFORMATION: [(&str, Information); 2] =
    [("exact", Information::Exact), ("absent", Information::Absent)];

/// Processors of a machine that nobody describes: those of the MEASY paper's.
const PROCESSORS: u32 = 320;

/// Kinds of `[workload]` that are of parallel jobs.
pub(in crate::experiment) const KINDS: [&str; 3] = ["swf", "model", "jobs"];

/// Reads the parallel jobs of an experiment: their workload, their scheduler and their machine.
///
/// # Errors
///
/// The first thing that is wrong with them.
pub(in crate::experiment) fn read(section: &mut Section<'_>) -> Result<Batch, InputError> {
    let workload = section.section("workload")?;
    let workload = section.need("workload", workload, "{ kind = \"swf\", log = \"my.swf\" }")?;
    let place = workload.place_of("memory-per-processor");
    let workload = read_workload(workload)?;
    let scheduler = section.section("scheduler")?;
    let scheduler = section.need("scheduler", scheduler, "{ name = \"easy\" }")?;
    let scheduler = read_scheduler(scheduler)?;
    let checkpoint = section.section("checkpoint")?.map(checkpoint::read_of_jobs).transpose()?;
    let checkpoint = checkpoint.flatten();
    let sharing = section.section("sharing")?.map(read_sharing).transpose()?.unwrap_or_default();
    let batch = Batch { workload, scheduler, checkpoint, sharing };
    check_memory(&batch, &place)?;
    Ok(batch)
}

/// Jobs that stand in the experiment have room in the memory of their machine.
fn check_memory(batch: &Batch, place: &Place) -> Result<(), InputError> {
    let JobSource::Jobs { job } = &batch.workload.source else { return Ok(()) };
    let largest = job.iter().map(|job| job.memory).max().unwrap_or_default();
    match batch.simulation(0).space().memory {
        None if largest > Bytes::ZERO => {
            let what = format!(
                "jobs want up to {largest} for each process, and nobody says how much memory a processor has"
            );
            let remedy = "say how much its machine has, such as: memory-per-processor = \"2 GiB\"";
            Err(InputError::new(place, what, remedy))
        }
        Some(most) if largest > most => {
            let whose = match batch.scheduler.name.promotion() {
                Some(_) => "half of a processor's, as its scheduler puts two on one",
                None => "all of a processor's",
            };
            let what = format!(
                "a job wants {largest} for each process, and a process can have {most}: {whose}"
            );
            let remedy = "give the processors more memory, or the job less";
            Err(InputError::new(place, what, remedy))
        }
        _ => Ok(()),
    }
}

fn read_workload(mut section: Section<'_>) -> Result<BatchWorkload, InputError> {
    let place = section.place_of("log");
    let kind = section.choice("kind", &KINDS.map(|kind| (kind, kind)))?;
    let kind = section.need("kind", kind, "\"swf\"")?;
    let processors = section.count("processors", 1..=MOST_PROCESSORS)?;
    let memory_per_processor = section.bytes("memory-per-processor")?;
    if memory_per_processor == Some(Bytes::ZERO) {
        let (place, what) = (section.place_of("memory-per-processor"), "0 B hold no process");
        return Err(InputError::new(&place, what, "write an amount such as \"2 GiB\", or nothing"));
    }
    let burstable = section.section("burstable")?.map(read_burstable).transpose()?;
    let load = section.number("load", 0.0..=1e6)?;
    if load == Some(0.0) {
        let what = "there is no load of 0";
        return Err(InputError::new(&section.place_of("load"), what, "write one such as 0.9"));
    }
    let usage = section.choice("usage", &USAGES)?.unwrap_or_default();
    let source = match kind {
        "swf" => {
            let log = section.get("log");
            let log = section.need("log", log, "\"KTH-SP2-1996-2.1-cln.swf.gz\"")?;
            let log = path_of(log)?;
            let on_malformed = section.choice("on-malformed", &ON_MALFORMED)?.unwrap_or_default();
            JobSource::Swf { log, on_malformed }
        }
        "model" => {
            let model = section.choice("model", &Model::ALL.map(|model| (model.name(), model)))?;
            let model = section.need("model", model, "\"fw-like\"")?;
            let jobs = section.whole("jobs", 2..=MOST_JOBS)?.unwrap_or(10_000);
            let jobs = usize::try_from(jobs).unwrap_or(usize::MAX);
            let estimates = section.choice("estimates", &ESTIMATES)?.unwrap_or_default();
            JobSource::Model { model, jobs, estimates }
        }
        _ => JobSource::Jobs { job: read_jobs(&mut section, processors)? },
    };
    section.finish()?;
    let processors = match (processors, &source) {
        (Some(processors), _) => processors,
        (None, JobSource::Swf { log, on_malformed }) => said_by(log, *on_malformed, &place)?,
        (None, _) => PROCESSORS,
    };
    Ok(BatchWorkload { source, processors, memory_per_processor, burstable, load, usage })
}

/// The processors of the machine that a log is of, as its header says.
fn said_by(log: &Path, on_malformed: OnMalformed, place: &Place) -> Result<u32, InputError> {
    let trace = Trace::open(log, None, on_malformed).map_err(|error| match error {
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

fn read_jobs(
    section: &mut Section<'_>,
    processors: Option<u32>,
) -> Result<Vec<JobSpec>, InputError> {
    let machine = section.need("processors", processors, "16")?;
    let list = section.list("job")?;
    if list.is_empty() {
        let what = "there are no jobs";
        return Err(InputError::new(section.place(), what, "add [[workload.job]]"));
    }
    let mut jobs = Vec::<JobSpec>::with_capacity(list.len());
    for node in list {
        let mut section = Section::of(node)?;
        let submitted = section.span("submitted")?.unwrap_or_default();
        let processes = section.count("processes", 1..=machine)?.unwrap_or(1);
        let runtime = section.span("runtime")?;
        let runtime = section.need("runtime", runtime, "\"120s\"")?;
        let estimate = section.span("estimate")?.unwrap_or(runtime);
        let usage = section.fraction("usage", 0.01..=1.0)?;
        let memory = section.bytes("memory")?.unwrap_or_default();
        if jobs.last().is_some_and(|before| submitted < before.submitted) {
            let what = format!("{submitted} is before the job above it was submitted");
            let place = section.place_of("submitted");
            return Err(InputError::new(&place, what, "write the jobs in order of submission"));
        }
        section.finish()?;
        jobs.push(JobSpec { submitted, processes, runtime, estimate, usage, memory });
    }
    Ok(jobs)
}

fn read_scheduler(mut section: Section<'_>) -> Result<BatchScheduler, InputError> {
    let name = section.choice("name", &Algorithm::ALL.map(|a| (a.name(), a)))?;
    let name = section.need("name", name, "\"easy\"")?;
    let migration_cost = section.span("migration-cost")?.unwrap_or(Span::from_secs(20));
    let usage_information = section.choice("usage-information", &INFORMATION)?.unwrap_or_default();
    section.finish()?;
    Ok(BatchScheduler { name, migration_cost, usage_information })
}

/// `[sharing]`: the distributions of the model: the paper's, or those of the `two-tier.json` of
/// `reproduce measy/two-tier` that `measured` names; each may be given besides.
fn read_sharing(mut section: Section<'_>) -> Result<Sharing, InputError> {
    let standard = match section.get("measured") {
        None => Sharing::default(),
        Some(node) => sharing::read_sharing(&path_of(node)?).map_err(|error| {
            let remedy = "give the two-tier.json of `dormouse reproduce measy/two-tier`";
            InputError::new(&node.place, crate::chain::chain(&error), remedy)
        })?,
    };
    let mut range = |key: &'static str, or: (f64, f64)| -> Result<(f64, f64), InputError> {
        let Some(node) = section.get(key) else { return Ok(or) };
        let (low, high) = pair(node, 0.0..=1.0)?;
        if low > high {
            let what = format!("{low} is above {high}");
            return Err(InputError::new(&node.place, what, "write the lower end first"));
        }
        Ok((low, high))
    };
    let loss = range("loss", standard.loss)?;
    let single = range("single", standard.single)?;
    let several_within = range("several-within", standard.several_within)?;
    let several_normal = section
        .get("several-normal")
        .map(|node| pair(node, 0.0..=1.0))
        .transpose()?
        .unwrap_or(standard.several_normal);
    let each_process = section.flag("each-process")?.unwrap_or(standard.each_process);
    section.finish()?;
    Ok(Sharing { loss, single, several_normal, several_within, each_process })
}
