//! Tests that a run's files are the same on whichever thread the run is recorded, and whether the
//! recorder gets all steps or only those that it needs.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread::scope;

use dormouse_analysis::RunMode;
use dormouse_experiment::{ExperimentSource, LoadedExperiment, Override, open};
use dormouse_log::Seal;
use dormouse_model::Step;

use super::{RecorderThread, RunRecorded, RunRecorder};
use crate::output::{LogHeader, RunLogWriter};
use crate::results::virtual_results;
use crate::virtual_run::{model, play_requests};

fn header(name: &str, set: &[&str]) -> LogHeader {
    let overrides = set.iter().map(|text| Override::set(text).unwrap()).collect();
    let loaded = open(&ExperimentSource {
        experiment: Some(name),
        overrides,
        ..ExperimentSource::default()
    });
    let LoadedExperiment { experiment, .. } = loaded.unwrap();
    LogHeader::new(RunMode::Virtual, "a test".to_owned(), experiment)
}

fn play(header: &LogHeader, mut see: impl FnMut(&mut Step)) {
    let experiment = &header.experiment;
    let outside = (experiment.submissions().unwrap(), experiment.requests().unwrap());
    let mut run = experiment.run(None);
    let see = |step: &mut Step| {
        see(step);
        Ok(())
    };
    play_requests(experiment, &mut run, &mut model(experiment), outside, see).unwrap();
}

/// A recorder for a new run; without `with_steps`, the log leaves the steps out.
fn recorder<'a>(header: &'a LogHeader, folder: &Path, with_steps: bool) -> RunRecorder<'a> {
    let mut log = RunLogWriter::begin(folder, header).unwrap();
    log.expect(if with_steps { 0 } else { 1_000_000 }).unwrap();
    RunRecorder::begin(folder, header, log).unwrap()
}

fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    entries.map(|path| (name(&path), fs::read(path).unwrap())).collect()
}

#[test]
fn what_is_recorded_behind_a_run_is_what_would_be_recorded_within_it() {
    let every = ["checkpoint.policy=every", "checkpoint.period=5m", "checkpoint.fixed=10s"];
    let easy = ["scheduler.name=easy", "workload.jobs=900"];
    for (name, set) in [
        ("batch-small", &[][..]),
        ("batch-small", &every),
        ("fw-like", &easy),
        ("fw-like", &["workload.jobs=900"]),
        ("provider-testbed", &[]),
    ] {
        let header = header(name, set);
        for with_steps in [true, false] {
            let (here, behind) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let mut within = recorder(&header, here.path(), with_steps);
            play(&header, |step| within.see(step).unwrap());
            let within = within.finish().unwrap();
            let outside = scope(|scope| {
                let recorder = recorder(&header, behind.path(), with_steps);
                let mut outside = RecorderThread::start(scope, recorder).unwrap();
                play(&header, |step| outside.take(step).unwrap());
                outside.finish().unwrap().finish().unwrap()
            });
            assert_eq!(content(here.path()), content(behind.path()), "{name} {set:?}");
            let all = |of: RunRecorded<'_>| {
                let counts = of.tables.jobs.map(|jobs| {
                    (jobs.figures.jobs(), jobs.most_in_system, jobs.checkpoints, jobs.failed)
                });
                (of.digest, of.tables.hashes, of.head, counts)
            };
            let (digest, hashes, head, counts) = all(within);
            for (file, hash) in &hashes {
                assert_eq!(Seal::hash(&behind.path().join(file)).unwrap(), *hash, "{file}");
            }
            assert!(hashes.len() == if name == "provider-testbed" { 1 } else { 3 });
            assert_eq!(all(outside), (digest, hashes, head, counts), "{name} {set:?}");
        }
    }
}

#[test]
fn the_digest_is_that_of_the_run_itself() {
    let header = header("batch-small", &[]);
    let folder = tempfile::tempdir().unwrap();
    let run = crate::virtual_run::virtual_run(&header.experiment, None, |_| {}).unwrap();
    let results = virtual_results(&header, (None, None), folder.path(), |_| {}).unwrap();
    assert_eq!(results.jobs.unwrap().decisions_sha256, run.digest());
}

/// Each table is written in pieces during the run and at its end.
#[test]
fn a_disk_that_is_full_ends_the_run_with_the_file_that_has_no_room() {
    for jobs in ["40", "9000"] {
        let set = format!("workload.jobs={jobs}");
        let header = header("fw-like", &[&set, "scheduler.name=fcfs"]);
        for file in ["jobs.csv", "allocations.csv", "schedule.swf"] {
            let folder = tempfile::tempdir().unwrap();
            symlink("/dev/full", folder.path().join(file)).unwrap();
            let error = virtual_results(&header, (None, None), folder.path(), |_| {}).unwrap_err();
            let said = error.to_string();
            let begins = format!("can't write {}: ", folder.path().join(file).display());
            assert!(said.starts_with(&begins) && said.contains("free space there"), "{said}");
            assert!(!error.is_bad_input() && !said.contains('\n'), "{said}");
        }
    }
}
