//! `cluster_job_log` of Microsoft's Philly traces (Jeon et al., ATC '19): a JSON list of jobs on GPUs, each with its
//! attempts, and of each attempt the GPUs of each machine.

use dormouse_input::{ItemsAt, JsonItems, Moment, Source};
use serde::Deserialize;

use super::accounting_record::{AccountingLine, JobOutcome, JobRecord, value_problem};
use super::format::JobsFormat;
use super::listing::{JobListing, ListingBuilder, UnusableLog};
use super::problem::LineProblem;

/// True if a JSON file that begins with this text is a job log of Philly.
pub(super) fn is_json_form(begins: &[u8]) -> bool {
    let text = String::from_utf8_lossy(begins);
    ["\"attempts\"", "\"jobid\""].iter().all(|key| text.contains(key))
}

/// Keys of the JSON file that are read.
pub(super) const KEYS: [&str; 8] =
    ["status", "vc", "user", "submitted_time", "attempts", "start_time", "end_time", "gpus"];

/// A job of the log; other keys are ignored.
#[derive(Deserialize)]
struct PhillyJob {
    #[serde(default)]
    status: String,
    /// Name of the virtual cluster of the job.
    #[serde(default)]
    vc: String,
    #[serde(default)]
    user: String,
    submitted_time: Option<String>,
    attempts: Vec<PhillyAttempt>,
}

/// One execution of a job.
#[derive(Deserialize)]
struct PhillyAttempt {
    start_time: Option<String>,
    end_time: Option<String>,
    #[serde(default)]
    detail: Vec<PhillyMachine>,
}

/// The GPUs of a machine that an execution had.
#[derive(Deserialize)]
struct PhillyMachine {
    #[serde(default)]
    gpus: Vec<String>,
}

/// Reads the jobs of a log. Processors are GPUs.
pub(super) fn read(source: Source) -> Result<JobListing, UnusableLog> {
    let mut listing = ListingBuilder::new(JobsFormat::Philly, true);
    let mut items = JsonItems::new(source, ItemsAt::ListOrDocuments("jobs"));
    while let Some(item) = items.next_item()? {
        let job = serde_json::from_slice::<PhillyJob>(item.bytes);
        let job = job.map_err(|error| LineProblem::NoJob { why: error.to_string().into() });
        listing.add(item.line, job.and_then(|job| job.read_job()));
    }
    Ok(listing.finish())
}

impl PhillyJob {
    fn read_job(&self) -> Result<AccountingLine, LineProblem> {
        let submitted = parse_moment("submitted_time", self.submitted_time.as_deref())?
            .ok_or(LineProblem::NoSubmission)?;
        let (mut requeued, mut requeued_gpu_s, mut last) = (0, 0_u64, None);
        for attempt in &self.attempts {
            let Some(began) = parse_moment("start_time", attempt.start_time.as_deref())? else {
                continue;
            };
            let Some(ended) = parse_moment("end_time", attempt.end_time.as_deref())? else {
                return Ok(AccountingLine::Unfinished);
            };
            let gpus: usize = attempt.detail.iter().map(|machine| machine.gpus.len()).sum();
            let gpus = i64::try_from(gpus).unwrap_or(i64::MAX);
            if let Some((began, ended, gpus)) = last.replace((began, ended, gpus)) {
                requeued += 1;
                let seconds = u64::try_from((ended - began).max(0).saturating_mul(gpus));
                requeued_gpu_s = requeued_gpu_s.saturating_add(seconds.unwrap_or(0));
            }
        }
        let gpus = last.map_or(0, |(_, _, gpus)| gpus);
        if last.is_some() && gpus == 0 {
            return Ok(AccountingLine::NoProcessor);
        }
        Ok(AccountingLine::Job(Box::new(JobRecord {
            submitted,
            ran: last.map(|(began, ended, _)| (began, ended)),
            requested: gpus,
            allocated: gpus,
            outcome: match self.status.as_str() {
                "Pass" => JobOutcome::Completed,
                "Killed" => JobOutcome::Cancelled,
                _ => JobOutcome::Failed,
            },
            user: self.user.clone(),
            queue: self.vc.clone(),
            requeued,
            requeued_cpu_s: requeued_gpu_s,
            ..JobRecord::default()
        })))
    }
}

/// Parses a date to seconds since 1970; `None`: it is missing, `None` or empty.
fn parse_moment(name: &'static str, text: Option<&str>) -> Result<Option<i64>, LineProblem> {
    match text {
        None | Some("" | "None") => Ok(None),
        Some(text) => match Moment::read(text) {
            Some(moment) => Ok(Some(moment.second)),
            None => Err(value_problem(name, text, "write a date such as 2017-10-07 01:11:39")),
        },
    }
}
