//! Workloads of Batsim: `nb_res` hosts, `jobs` and `profiles` that say what the jobs do.
//!
//! Jobs of profiles that say how long they take are read: delays, and sequences of delays. Whatever
//! else a job computes and sends takes a time that depends on Batsim's platform.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::format::JobsFormat;
use super::job::SwfJob;
use super::listing::{Listing, Unusable};
use super::problem::Problem;

/// A workload as its file has it; further keys are for people.
#[derive(Deserialize)]
struct Workload<'a> {
    nb_res: Option<u32>,
    #[serde(borrow)]
    jobs: Vec<&'a RawValue>,
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

#[derive(Deserialize)]
struct Job {
    id: Value,
    subtime: f64,
    walltime: Option<f64>,
    res: i64,
    profile: String,
}

#[derive(Deserialize)]
struct Profile {
    #[serde(rename = "type")]
    kind: String,
    delay: Option<f64>,
    repeat: Option<u32>,
    #[serde(default)]
    seq: Vec<String>,
    /// The status that a job ends with; another than 0 is a failure.
    #[serde(default)]
    ret: i64,
}

/// What a profile comes to.
#[derive(Clone, Copy, Debug, Default)]
struct ProfileRun {
    /// Microseconds that it takes.
    takes: u64,
    /// Whether it ends with a failure.
    fails: bool,
}

/// Reads a workload, whose jobs come out in order of submission.
pub(super) fn read(text: &str) -> Result<Listing, Unusable> {
    let wrong = |error: serde_json::Error| {
        let what = format!("it is JSON, and no workload of Batsim: {error}");
        Unusable::flaw(what, "give a log of jobs, such as {\"nb_res\": 4, \"jobs\": [...], ...}")
    };
    let workload: Workload<'_> = serde_json::from_str(text).map_err(wrong)?;
    let mut listing = Listing::default();
    listing.skipped.taken_for.format = JobsFormat::Batsim;
    if let Some(hosts) = workload.nb_res {
        listing.header.set("MaxProcs", hosts);
    }
    let mut profiles = Profiles { all: &workload.profiles, known: BTreeMap::new() };
    let (mut line, mut at) = (1, 0);
    let (mut read, mut ids) = (Vec::new(), Vec::new());
    for job in &workload.jobs {
        let begins = job.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
        line += text.get(at..begins).map_or(0, |between| between.matches('\n').count() as u64);
        at = begins;
        let parsed = serde_json::from_str::<Job>(job.get());
        ids.push(parsed.as_ref().map_or(None, |job| whole(&job.id)));
        let parsed = parsed.map_err(|error| Problem::NoJob { why: error.to_string().into() });
        read.push((line, parsed.and_then(|job| profiles.job(&job))));
    }
    // Their own numbers, where all are whole ones; flawed jobs have none and are not asked.
    let is_numbered = read.iter().zip(&ids).all(|((_, job), id)| job.is_err() || id.is_some());
    listing.skipped.taken_for.numbered = !is_numbered;
    for (n, ((line, job), id)) in (1..).zip(read.into_iter().zip(ids)) {
        let number = if is_numbered { id.unwrap_or(-1) } else { n };
        listing.jobs.push((line, job.map(|job| SwfJob { number, ..job })));
    }
    listing.sort();
    Ok(listing)
}

/// The whole number that an id is.
fn whole(id: &Value) -> Option<i64> {
    let number = match id {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number.filter(|number| *number >= 0)
}

/// The profiles, with how long they take as far as that was asked.
struct Profiles<'a> {
    all: &'a BTreeMap<String, Profile>,
    /// What each comes to, or why that can't be said; `None`: it is being found out.
    known: BTreeMap<&'a str, Option<Result<ProfileRun, String>>>,
}

impl<'a> Profiles<'a> {
    fn job(&mut self, job: &Job) -> Result<SwfJob, Problem> {
        let (submitted, micros) = exact("subtime", job.subtime)?;
        let (requested_time, of_request) = match job.walltime {
            // −1 and no walltime are the same to Batsim.
            Some(walltime) if walltime > 0.0 => exact("walltime", walltime)?,
            _ => (-1, 0),
        };
        let ProfileRun { takes: runtime, fails } = self.run(&job.profile).map_err(|what| {
            Problem::Profile { name: job.profile.as_str().into(), what: what.into() }
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

    /// What a profile comes to, or what it is instead.
    fn run(&mut self, name: &str) -> Result<ProfileRun, String> {
        let Some((name, profile)) = self.all.get_key_value(name) else {
            return Err("not among the profiles".to_owned());
        };
        match self.known.get(name.as_str()) {
            Some(Some(known)) => return known.clone(),
            Some(None) => return Err("a sequence of itself".to_owned()),
            None => {}
        }
        self.known.insert(name, None);
        let run = self.found(profile);
        self.known.insert(name, Some(run.clone()));
        run
    }

    fn found(&mut self, profile: &'a Profile) -> Result<ProfileRun, String> {
        let kind = &profile.kind;
        let fails = profile.ret != 0;
        match kind.as_str() {
            "delay" | "DelayProfile" => {
                let delay = profile.delay.and_then(micros);
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

/// Microseconds of a time in seconds; `None`: it is none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked in the same expression"
)]
fn micros(seconds: f64) -> Option<u64> {
    let us = (seconds * 1e6).round();
    // Up to here a float has every whole number.
    (0.0..9_007_199_254_740_992.0).contains(&us).then_some(us as u64)
}

/// A time as whole seconds and the microseconds beside them.
fn exact(name: &'static str, seconds: f64) -> Result<(i64, u32), Problem> {
    let wrong = || Problem::Value {
        name,
        value: seconds.to_string().into(),
        right: "write a number of seconds, 0 or more",
    };
    let us = micros(seconds).ok_or_else(wrong)?;
    let whole = i64::try_from(us / 1_000_000).map_err(|_| wrong())?;
    Ok((whole, u32::try_from(us % 1_000_000).unwrap_or_default()))
}
