//! Workloads of Batsim: `nb_res` hosts, `jobs` and `profiles` that say what the jobs do.
//!
//! Only jobs whose profile gives their duration are read: delays, and sequences of delays. The duration of other
//! profiles, which compute or send, depends on Batsim's platform.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::format::JobsFormat;
use super::job::SwfJob;
use super::listing::{JobListing, UnusableLog};
use super::problem::LineProblem;

/// A Batsim workload file; other keys are ignored.
#[derive(Deserialize)]
struct BatsimWorkload<'a> {
    nb_res: Option<u32>,
    #[serde(borrow)]
    jobs: Vec<&'a RawValue>,
    #[serde(default)]
    profiles: BTreeMap<String, BatsimProfile>,
}

/// One job of the workload: submission and wall time in seconds, number of hosts, and name of its
/// profile.
#[derive(Deserialize)]
struct BatsimJob {
    id: Value,
    subtime: f64,
    walltime: Option<f64>,
    res: i64,
    profile: String,
}

/// A profile: the work of a job. The keys that are used depend on the kind of profile.
#[derive(Deserialize)]
struct BatsimProfile {
    #[serde(rename = "type")]
    kind: String,
    delay: Option<f64>,
    repeat: Option<u32>,
    #[serde(default)]
    seq: Vec<String>,
    /// Exit status of the job; any other than 0 is a failure.
    #[serde(default)]
    ret: i64,
}

/// Result of running a profile.
#[derive(Clone, Copy, Debug, Default)]
struct ProfileRun {
    /// Duration of the profile in microseconds.
    takes: u64,
    /// True if the profile ends with a failure.
    fails: bool,
}

/// Reads a Batsim workload into jobs in order of submission.
pub(super) fn read(text: &str) -> Result<JobListing, UnusableLog> {
    let wrong = |error: serde_json::Error| {
        let what = format!("it is JSON, but not a workload of Batsim: {error}");
        UnusableLog::unusable_file(
            what,
            "give a log of jobs, such as {\"nb_res\": 4, \"jobs\": [...], ...}",
        )
    };
    let workload: BatsimWorkload<'_> = serde_json::from_str(text).map_err(wrong)?;
    let mut listing = JobListing::default();
    listing.skipped.taken_for.format = JobsFormat::Batsim;
    if let Some(hosts) = workload.nb_res {
        listing.header.set("MaxProcs", hosts);
    }
    let mut profiles = ProfileTimes { all: &workload.profiles, known: BTreeMap::new() };
    let (mut line, mut at) = (1, 0);
    let mut ids = Vec::new();
    for job in &workload.jobs {
        let begins = job.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
        line += text.get(at..begins).map_or(0, |between| between.matches('\n').count() as u64);
        at = begins;
        let parsed = serde_json::from_str::<BatsimJob>(job.get());
        ids.push(parsed.as_ref().map_or(None, |job| parse_whole(&job.id)));
        let parsed = parsed.map_err(|error| LineProblem::NoJob { why: error.to_string().into() });
        listing.jobs.push((line, parsed.and_then(|job| profiles.convert_job(&job))));
    }
    // Their own numbers, where all are whole ones; flawed jobs have none and are not asked.
    let mut jobs = listing.jobs.iter().zip(&ids);
    let is_numbered = jobs.all(|((_, job), id)| job.is_err() || id.is_some());
    listing.skipped.taken_for.numbered = !is_numbered;
    for (n, ((_, job), id)) in (1..).zip(listing.jobs.iter_mut().zip(ids)) {
        if let Ok(job) = job {
            job.number = if is_numbered { id.unwrap_or(-1) } else { n };
        }
    }
    listing.sort_jobs();
    Ok(listing)
}

/// Parses a job id that is a whole number.
fn parse_whole(id: &Value) -> Option<i64> {
    let number = match id {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number.filter(|number| *number >= 0)
}

/// The profiles of a workload and the results computed for them so far.
struct ProfileTimes<'a> {
    all: &'a BTreeMap<String, BatsimProfile>,
    /// Result of each profile, or why it has none; `None` while it is being computed, which detects
    /// cycles.
    known: BTreeMap<&'a str, Option<Result<ProfileRun, String>>>,
}

impl<'a> ProfileTimes<'a> {
    fn convert_job(&mut self, job: &BatsimJob) -> Result<SwfJob, LineProblem> {
        let (submitted, micros) = split_seconds("subtime", job.subtime)?;
        let (requested_time, of_request) = match job.walltime {
            // −1 and no walltime are the same to Batsim.
            Some(walltime) if walltime > 0.0 => split_seconds("walltime", walltime)?,
            _ => (-1, 0),
        };
        let ProfileRun { takes: runtime, fails } = self.run(&job.profile).map_err(|what| {
            LineProblem::Profile { name: job.profile.as_str().into(), what: what.into() }
        })?;
        let fraction = u32::try_from(runtime % 1_000_000).unwrap_or_default();
        Ok(SwfJob {
            submitted,
            run_time: i64::try_from(runtime / 1_000_000).unwrap_or(i64::MAX),
            requested: job.res,
            requested_time,
            micros: [micros, fraction, of_request],
            status: if fails { 0 } else { -1 },
            fails,
            ..SwfJob::unknown()
        })
    }

    /// The result of the profile with this name, or an error text that says why the profile has none.
    fn run(&mut self, name: &str) -> Result<ProfileRun, String> {
        let Some((name, profile)) = self.all.get_key_value(name) else {
            return Err("not one of the profiles".to_owned());
        };
        match self.known.get(name.as_str()) {
            Some(Some(known)) => return known.clone(),
            Some(None) => return Err("a sequence that contains itself".to_owned()),
            None => {}
        }
        self.known.insert(name, None);
        let run = self.run_profile(profile);
        self.known.insert(name, Some(run.clone()));
        run
    }

    fn run_profile(&mut self, profile: &'a BatsimProfile) -> Result<ProfileRun, String> {
        let kind = &profile.kind;
        let fails = profile.ret != 0;
        match kind.as_str() {
            "delay" | "DelayProfile" => {
                let delay = profile.delay.and_then(to_micros);
                let takes =
                    delay.ok_or_else(|| format!("of type {kind} without a 'delay' in seconds"))?;
                Ok(ProfileRun { takes, fails })
            }
            "composed" | "SequentialCompositionProfile" => {
                let mut once = ProfileRun::default();
                for part in &profile.seq {
                    let run = self
                        .run(part)
                        .map_err(|what| format!("a sequence with '{part}', {what}"))?;
                    once.takes = once.takes.saturating_add(run.takes);
                    once.fails |= run.fails;
                    // Batsim ends a sequence with the first part that fails.
                    if run.fails {
                        return Ok(once);
                    }
                }
                let takes = once.takes.saturating_mul(profile.repeat.unwrap_or(1).into());
                Ok(ProfileRun { takes, fails })
            }
            _ => Err(format!("of type {kind}, which does not say how long it takes")),
        }
    }
}

/// Converts seconds to microseconds; `None` if the value is not a valid time.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked in the same expression"
)]
fn to_micros(seconds: f64) -> Option<u64> {
    let us = (seconds * 1e6).round();
    // Up to here a float has every whole number.
    (0.0..9_007_199_254_740_992.0).contains(&us).then_some(us as u64)
}

/// Splits a time into whole seconds and the remaining microseconds.
fn split_seconds(name: &'static str, seconds: f64) -> Result<(i64, u32), LineProblem> {
    let wrong = || LineProblem::Value {
        name,
        value: seconds.to_string().into(),
        right: "write a number of seconds, 0 or more",
    };
    let us = to_micros(seconds).ok_or_else(wrong)?;
    let whole = i64::try_from(us / 1_000_000).map_err(|_| wrong())?;
    Ok((whole, u32::try_from(us % 1_000_000).unwrap_or_default()))
}
