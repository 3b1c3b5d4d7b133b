//! The least program that schedules an SWF log by EASY: counted processors, one thread, and a CSV line for each job;
//! no placement, no separate record of promises, no checks and no log.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::error::Error;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;

const PROCESSORS: u64 = 320;

struct Job {
    number: u64,
    submitted: u64,
    processors: u64,
    runtime: u64,
    estimate: u64,
}

/// Reads the log `from`, schedules its jobs, and writes a line for each into `to`; returns the number of jobs.
pub(crate) fn easy(from: &Path, to: &Path) -> Result<usize, Box<dyn Error>> {
    let jobs = read(from)?;
    let mut out = BufWriter::with_capacity(1 << 16, File::create(to)?);
    let (mut free, mut queue, mut next) = (PROCESSORS, VecDeque::new(), 0);
    let mut ends = BinaryHeap::new();
    // By when jobs end at the latest, with their processors: the first last.
    let mut expected: Vec<(u64, u64)> = Vec::new();
    while next < jobs.len() || !ends.is_empty() {
        let submitted = jobs.get(next).map_or(u64::MAX, |job| job.submitted);
        let ended = ends.peek().map_or(u64::MAX, |Reverse((at, _, _))| *at);
        let now = submitted.min(ended);
        while ends.peek().is_some_and(|Reverse((at, _, _))| *at == now) {
            let Some(Reverse((_, processors, latest))) = ends.pop() else { break };
            free += processors;
            let at = expected.iter().rposition(|end| *end == (latest, processors));
            expected.remove(at.ok_or("a job ends that did not start")?);
        }
        while let Some(job) = jobs.get(next).filter(|job| job.submitted == now) {
            queue.push_back(job);
            next += 1;
        }
        // The first job's start, and the processors that it leaves free then.
        let (mut shadow, mut spare) = (u64::MAX, 0);
        let mut place = 0;
        while free > 0 && place < queue.len() {
            let job: &Job = queue[place];
            let ends_before = now + job.estimate <= shadow;
            if job.processors <= free && (place == 0 || ends_before || job.processors <= spare) {
                if place > 0 && !ends_before {
                    spare -= job.processors;
                }
                free -= job.processors;
                let latest = now + job.estimate;
                let at = expected.partition_point(|end| *end > (latest, job.processors));
                expected.insert(at, (latest, job.processors));
                ends.push(Reverse((now + job.runtime, job.processors, latest)));
                let end = now + job.runtime;
                writeln!(out, "{},{},{now},{end},{}", job.number, job.submitted, job.processors)?;
                queue.remove(place);
            } else {
                if place == 0 {
                    (shadow, spare) = reserved(&expected, free, job.processors);
                }
                place += 1;
            }
        }
    }
    out.flush()?;
    Ok(jobs.len())
}

/// The time at which `wanted` processors are free if the running jobs end at their latest, and how many processors are
/// left over then.
fn reserved(expected: &[(u64, u64)], mut free: u64, wanted: u64) -> (u64, u64) {
    for (latest, processors) in expected.iter().rev() {
        free += processors;
        if free >= wanted {
            return (*latest, free - wanted);
        }
    }
    (u64::MAX, 0)
}

fn read(from: &Path) -> Result<Vec<Job>, Box<dyn Error>> {
    let mut jobs = Vec::new();
    for line in BufReader::with_capacity(1 << 16, File::open(from)?).lines() {
        let line = line?;
        if line.starts_with(';') {
            continue;
        }
        let mut fields = [0_i64; 18];
        for (field, word) in fields.iter_mut().zip(line.split_ascii_whitespace()) {
            *field = word.parse()?;
        }
        let [number, submitted, _, runtime, used, _, _, wanted, estimate, ..] =
            fields.map(|field| u64::try_from(field).unwrap_or(0));
        let processors = if wanted > 0 { wanted } else { used };
        let estimate = estimate.max(runtime);
        jobs.push(Job { number, submitted, processors, runtime, estimate });
    }
    Ok(jobs)
}
