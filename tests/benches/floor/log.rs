//! A log of parallel jobs for benchmarks: on 320 processors at load .9, a quarter of the jobs serial, the others of up
//! to some 135 processors and mostly a power of two, run times lognormal, estimates up to five times as long, and
//! fewer submissions at night.

use std::error::Error;
use std::f64::consts::TAU;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use dormouse_units::{RandomStream, Span};

const PROCESSORS: f64 = 320.0;
const LOAD: f64 = 0.9;
/// Mean run time in seconds, and the coefficient of variation: the logarithms of run times have mean 7.2 and deviation
/// 1.6.
const MEAN_RUNTIME: f64 = 4_817.0;
const VARIATION: f64 = 3.455;

struct Job {
    submitted: f64,
    processors: f64,
    runtime: f64,
    estimate: f64,
}

/// Writes a log of `count` parallel jobs into a folder; the log is the same every time.
pub(crate) fn make(folder: &Path, count: usize) -> Result<PathBuf, Box<dyn Error>> {
    let mut chance = RandomStream::new(1, "log", 0);
    let mut at = 0.0;
    let jobs: Vec<_> = (0..count).map(|_| job(&mut chance, &mut at)).collect();
    let work: f64 = jobs.iter().map(|job| job.processors * job.runtime).sum();
    // Submissions are moved together or apart until the load is as wanted.
    let scale = work / (LOAD * PROCESSORS) / at;
    let path = folder.join(format!("log-{count}.swf"));
    let mut log = BufWriter::new(File::create(&path)?);
    writeln!(log, "; Version: 2.2\n; MaxJobs: {count}\n; MaxProcs: {PROCESSORS}")?;
    for (n, Job { submitted, processors, runtime, estimate }) in (1..).zip(&jobs) {
        let at = (submitted * scale).floor();
        writeln!(
            log,
            "{n} {at} -1 {runtime} {processors} -1 -1 {processors} {estimate} -1 1 {} 1 1 1 1 -1 -1",
            1 + n % 50
        )?;
    }
    log.flush()?;
    Ok(path)
}

/// Draws the next job, which runs for at most 36 hours.
fn job(chance: &mut RandomStream, at: &mut f64) -> Job {
    let mut uniform = |low: f64, high: f64| low + (high - low) * chance.draw_unit();
    let serial = uniform(0.0, 1.0) < 0.25;
    let exponent = uniform(0.5, PROCESSORS.log2() * 0.85);
    let is_power = uniform(0.0, 1.0) < 0.75;
    let longer = uniform(1.0, 5.0);
    let exponent = if is_power { exponent.round() } else { exponent };
    let processors = if serial { 1.0 } else { exponent.exp2().round() };
    let runtime = (MEAN_RUNTIME * chance.draw_lognormal(VARIATION)).clamp(10.0, 129_600.0).floor();
    let estimate = (runtime * longer / 300.0).ceil() * 300.0;
    let hour = (*at / 3_600.0) % 24.0;
    let busy = 0.4 + 0.6 * (1.0 + ((hour - 14.0) / 24.0 * TAU).cos());
    *at += chance.draw_exponential(Span::from_secs(300)).as_secs_f64() / busy;
    Job { submitted: *at, processors, runtime, estimate }
}
