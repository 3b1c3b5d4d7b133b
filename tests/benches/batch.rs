//! Jobs a second and peak memory of whole simulations, each in a process of its own: SWF
//! in, schedule with processors, `jobs.csv` out; beside a bare loop that reads the same
//! log, counts processors and writes a CSV, and beside EASY in as few lines as it takes. A case
//! in capitals is a run with all that `dormouse run` leaves, in the time of the whole process.
//!
//! `cargo bench -p dormouse-tests --bench batch [-- LOG.swf …]`; without a log it makes FW-like ones of
//! 200,000 and 1,000,000 jobs at load .9.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use dormouse_analysis::jobs::{JobsCsv, simulate};
use dormouse_analysis::{RunMode, RunRecord};
use dormouse_engine::jobs::{JobSimulation, SimulationError};
use dormouse_experiment::{ExperimentSource, LoadedExperiment, open};
use dormouse_model::Step;
use dormouse_policies::batch::{Algorithm, Config};
use dormouse_report::output::{LogHeader as RunHeader, ReplacedContent, StagedFolder};
use dormouse_report::results::virtual_results;
use dormouse_workload::{
    Header, Model, OnMalformed, SwfJob, SwfWriter, Trace, UsageRule, offered_load, scale_arrivals,
    tsafrir_estimates,
};

const CASES: [&str; 10] =
    ["counting", "floor", "fcfs", "easy", "keasy", "reasy", "measy", "EASY", "KEASY", "MEASY"];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, case, log, out] = args.as_slice()
        && flag == "--case"
    {
        return one_case(case, Path::new(log), Path::new(out));
    }
    let folder = std::env::temp_dir().join(format!("dormouse-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let done = all_cases(&args, &folder);
    std::fs::remove_dir_all(&folder)?;
    done
}

fn all_cases(args: &[String], folder: &Path) -> Outcome<()> {
    let mut logs: Vec<PathBuf> = args.iter().map(PathBuf::from).collect();
    if logs.is_empty() {
        for jobs in [200_000, 1_000_000] {
            logs.push(make_log(folder, jobs)?);
        }
    }
    for log in &logs {
        println!("{}", log.display());
        println!("{:>10} {:>9} {:>9} {:>11} {:>9}", "", "jobs", "seconds", "jobs/s", "peak MB");
        for case in CASES {
            let out = folder.join("jobs.csv");
            let status = Command::new(std::env::current_exe()?)
                .arg("--case")
                .arg(case)
                .arg(log)
                .arg(&out)
                .status()?;
            if !status.success() {
                return Err(format!("{case} failed").into());
            }
        }
    }
    Ok(())
}

fn make_log(folder: &Path, count: usize) -> Outcome<PathBuf> {
    let mut jobs = Model::FwLike.generate(count, 320, 1)?;
    tsafrir_estimates(&mut jobs, Model::FwLike.longest(), 1)?;
    let factor = offered_load(&jobs, 320) / 0.9;
    let path = folder.join(format!("fw-like-{count}.swf"));
    let mut header = Header::default();
    header.set("MaxProcs", 320);
    let mut log = SwfWriter::new(BufWriter::new(File::create(&path)?), &header)?;
    for job in jobs {
        log.write(&SwfJob::from(&scale_arrivals(job, dormouse_units::Time::ZERO, factor)?))?;
    }
    log.finish()?;
    Ok(path)
}

fn one_case(case: &str, log: &Path, out: &Path) -> Outcome<()> {
    let began = Instant::now();
    let jobs = match case {
        "counting" => counting(log, out)?,
        "floor" => floor(log, out)?,
        _ if case == case.to_uppercase() => whole_run(&case.to_lowercase(), log, out)?,
        _ => scheduled(Algorithm::named(case).ok_or("no scheduler has this name")?, log, out)?,
    };
    let seconds = began.elapsed().as_secs_f64();
    let rate = jobs as f64 / seconds;
    println!("{case:>10} {jobs:>9} {seconds:>9.3} {rate:>11.0} {:>9.1}", peak_mb()?);
    Ok(())
}

fn scheduled(algorithm: Algorithm, log: &Path, out: &Path) -> Outcome<u64> {
    let trace = Trace::from_file(log, File::open(log), None, OnMalformed::Fail)?;
    let simulation = JobSimulation::new(Config::new(algorithm, trace.machine()), 1);
    let rule = match algorithm.promotion() {
        None => UsageRule::full_usage(),
        Some(_) => UsageRule::paper_rule(1),
    };
    let to = BufWriter::with_capacity(1 << 16, File::create(out)?);
    let (mut csv, mut ended) = (JobsCsv::new(to, "bench")?, 0);
    let jobs = trace.map(|job| Ok(rule.assign_usage(job.map_err(Box::new)?)));
    let see = |record: &RunRecord, _: &Step| {
        ended += record.closed().jobs.len() as u64;
        record.closed().jobs.iter().try_for_each(|job| csv.write(job)).map_err(Into::into)
    };
    simulate(jobs, &simulation, see).map_err(|e: SimulationError<Box<dyn Error>>| e.to_string())?;
    csv.finish()?;
    Ok(ended)
}

/// The least work for a log: parses the numbers of each line, counts processors up and down without a queue or
/// placement, and writes a line.
fn counting(log: &Path, out: &Path) -> Outcome<u64> {
    let mut to = BufWriter::with_capacity(1 << 16, File::create(out)?);
    let (mut jobs, mut busy) = (0, 0_i64);
    for line in BufReader::with_capacity(1 << 16, File::open(log)?).lines() {
        let line = line?;
        if line.starts_with(';') {
            continue;
        }
        let mut fields = [0_i64; 18];
        for (field, word) in fields.iter_mut().zip(line.split_ascii_whitespace()) {
            *field = word.parse()?;
        }
        busy = (busy + fields[7]) % 320;
        jobs += 1;
        writeln!(to, "{},{},{},{}", fields[0], fields[1], fields[1] + fields[3], busy)?;
    }
    to.flush()?;
    Ok(jobs)
}

/// Runs EASY with counted processors only, and writes a line for each job.
fn floor(log: &Path, out: &Path) -> Outcome<u64> {
    struct Job {
        submitted: i64,
        runs: i64,
        size: i64,
        estimate: i64,
        started: i64,
    }
    let mut jobs = Vec::new();
    for line in BufReader::with_capacity(1 << 16, File::open(log)?).lines() {
        let line = line?;
        if line.starts_with(';') {
            continue;
        }
        let mut fields = [0_i64; 18];
        for (field, word) in fields.iter_mut().zip(line.split_ascii_whitespace()) {
            *field = word.parse()?;
        }
        let [_, submitted, _, runs, .., size, estimate] = fields[..9] else { continue };
        jobs.push(Job { submitted, runs, size, estimate: estimate.max(runs), started: 0 });
    }
    let mut to = BufWriter::with_capacity(1 << 16, File::create(out)?);
    let (mut free, mut next, mut queue) = (320, 0, Vec::new());
    // When jobs end, and when they are expected to.
    let (mut ends, mut expected) = (BTreeSet::new(), BTreeSet::new());
    while next < jobs.len() || !ends.is_empty() {
        let submitted = jobs.get(next).map_or(i64::MAX, |job| job.submitted);
        let now = submitted.min(ends.first().map_or(i64::MAX, |(at, _)| *at));
        while let Some(&(at, n)) = ends.first()
            && at <= now
        {
            ends.pop_first();
            let Job { submitted, size, estimate, started, .. } = jobs[n];
            expected.remove(&(started + estimate, n));
            free += size;
            writeln!(to, "{n},{submitted},{started},{at},{size}")?;
        }
        while jobs.get(next).is_some_and(|job| job.submitted <= now) {
            queue.push(next);
            next += 1;
        }
        let (mut shadow, mut extra, mut has_head) = (i64::MAX, 0, false);
        let mut waiting = Vec::with_capacity(queue.len());
        for n in queue.drain(..) {
            let Job { runs, size, estimate, .. } = jobs[n];
            let delays = has_head && now + estimate > shadow;
            if size <= free && !(delays && size > extra) {
                extra -= if delays { size } else { 0 };
                free -= size;
                jobs[n].started = now;
                ends.insert((now + runs, n));
                expected.insert((now + estimate, n));
                continue;
            }
            if !has_head {
                (has_head, shadow) = (true, now);
                let mut then = free;
                for &(at, job) in &expected {
                    if then >= size && at > shadow {
                        break;
                    }
                    then += jobs[job].size;
                    shadow = shadow.max(at);
                }
                extra = then - size;
            }
            waiting.push(n);
        }
        queue = waiting;
    }
    to.flush()?;
    Ok(jobs.len() as u64)
}

/// A run of the command with all its output files.
fn whole_run(scheduler: &str, log: &Path, out: &Path) -> Outcome<u64> {
    let (file, folder) = (out.with_extension("toml"), out.with_extension("run"));
    let log = log.display();
    std::fs::write(
        &file,
        format!(
            "name = \"bench\"\n[workload]\nkind = \"swf\"\nlog = \"{log}\"\n[scheduler]\nname = \"{scheduler}\"\n"
        ),
    )?;
    let loaded =
        open(&ExperimentSource { experiment: file.to_str(), ..ExperimentSource::default() });
    let LoadedExperiment { experiment, .. } = loaded.map_err(|error| error.to_string())?;
    let header = RunHeader::new(RunMode::Virtual, "bench".to_owned(), experiment);
    let staging = StagedFolder::begin(&folder, ReplacedContent::Anything)?;
    let results = virtual_results(&header, (None, None), staging.path(), |_| {})?;
    results.view().write(staging)?;
    Ok(results.jobs.map_or(0, |jobs| jobs.outcomes().total))
}

fn peak_mb() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    let kilobytes: f64 = kilobytes.ok_or("no VmHWM in /proc/self/status")?;
    Ok(kilobytes / 1000.0)
}
