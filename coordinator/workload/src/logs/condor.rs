//! Histories of HTCondor: what `condor_history -long`, `-json` and `-jsonl` print, and the schedd's own history files.
//! A record (ClassAd) has one attribute per line, or is a JSON object (HTCondor's manual, "Job ClassAd Attributes").

use std::collections::BTreeMap;

use dormouse_input::{ItemsAt, JsonItems, Line, Source, Text};
use serde_json::Value;

use super::accounting_record::{AccountingLine, JobOutcome, JobRecord, value_problem};
use super::format::JobsFormat;
use super::listing::{JobListing, ListingBuilder, UnusableLog};
use super::problem::LineProblem;

/// The attributes of HTCondor's job records that are read; their letter case does not matter.
pub(super) const ATTRIBUTES: [&str; 24] = [
    "ClusterId",
    "ProcId",
    "QDate",
    "JobStatus",
    "JobUniverse",
    "JobStartDate",
    "JobCurrentStartDate",
    "CompletionDate",
    "EnteredCurrentStatus",
    "LastVacateTime",
    "RemoteWallClockTime",
    "NumJobStarts",
    "NumShadowStarts",
    "RequestCpus",
    "CpusProvisioned",
    "RequestMemory",
    "AllowedExecuteDuration",
    "AllowedJobDuration",
    "ExitCode",
    "ExitBySignal",
    "Owner",
    "User",
    "AccountingGroup",
    "AcctGroup",
];

/// Attributes by which a file is recognised: a record has at least two of them.
const TELLING: [&str; 6] =
    ["ClusterId", "ProcId", "QDate", "JobStatus", "JobUniverse", "GlobalJobId"];

/// Line with which the schedd's history files end a record.
const BANNER: &str = "*** ";

/// True if a file that begins with this text has one attribute per line.
pub(super) fn is_long_form(begins: &[u8]) -> bool {
    let text = String::from_utf8_lossy(begins);
    let is_telling = |line: &str| {
        let name = line.split_once(" = ").map(|(name, _)| name.trim());
        name.is_some_and(|name| TELLING.iter().any(|it| it.eq_ignore_ascii_case(name)))
    };
    let mut lines = text.lines().filter(|line| !is_comment(line));
    let first = lines.next().unwrap_or_default();
    (parse_attribute(first).is_some() || first.starts_with(BANNER))
        && text.lines().filter(|line| is_telling(line)).count() >= 2
}

/// True if a JSON file that begins with this text has records of HTCondor.
pub(super) fn is_json_form(begins: &[u8]) -> bool {
    let text = String::from_utf8_lossy(begins);
    TELLING.iter().filter(|name| text.contains(&format!("\"{name}\""))).count() >= 2
}

/// Reads a history with one attribute per line; `text` has just read its first line.
pub(super) fn read_long(mut text: Text) -> Result<JobListing, UnusableLog> {
    let mut listing = ListingBuilder::new(JobsFormat::Condor, true);
    let mut record = CondorRecord::default();
    let mut began = text.number();
    let mut problem = None;
    let mut read = Line::Read;
    loop {
        let line = String::from_utf8_lossy(text.line().trim_ascii()).into_owned();
        let is_boundary = read == Line::End || line.is_empty() || line.starts_with(BANNER);
        if read == Line::TooLong {
            // A long value, such as an environment, is of no attribute that is read.
        } else if is_boundary {
            if let Some(problem) = problem.take() {
                listing.add(began, Err(problem));
            } else if !record.is_empty() {
                listing.add(began, record.read_job());
            }
            record = CondorRecord::default();
            began = text.number() + 1;
        } else if !is_comment(&line) {
            match parse_attribute(&line) {
                Some((name, value)) => record.set(name, value),
                None => {
                    let why = "a line of it is not an attribute such as QDate = 1709287200";
                    problem = Some(LineProblem::NoJob { why: why.into() });
                }
            }
        }
        if read == Line::End {
            return Ok(listing.finish());
        }
        read = text.read_line()?;
    }
}

/// Reads a history of JSON objects, in a list or one after the other.
pub(super) fn read_json(source: Source) -> Result<JobListing, UnusableLog> {
    let mut listing = ListingBuilder::new(JobsFormat::Condor, true);
    let mut items = JsonItems::new(source, ItemsAt::ListOrDocuments("jobs"));
    while let Some(item) = items.next_item()? {
        let record = match serde_json::from_slice::<BTreeMap<String, Value>>(item.bytes) {
            Ok(all) => {
                let mut record = CondorRecord::default();
                for (name, value) in &all {
                    match value {
                        Value::String(text) => record.set(name, text),
                        Value::Number(_) | Value::Bool(_) => record.set(name, &value.to_string()),
                        _ => {}
                    }
                }
                record.read_job()
            }
            Err(error) => Err(LineProblem::NoJob { why: error.to_string().into() }),
        };
        listing.add(item.line, record);
    }
    Ok(listing.finish())
}

/// True if a line does not belong to a record: it is blank, or was printed by HTCondor's commands around records.
fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#') || line.starts_with("-- ")
}

/// Name and value of an attribute's line; text is without its quotation marks.
fn parse_attribute(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    let text = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    is_name.then_some((name, text.unwrap_or(value)))
}

/// The attributes of a job that are read, as text.
#[derive(Debug, Default)]
struct CondorRecord(BTreeMap<&'static str, String>);

impl CondorRecord {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn set(&mut self, name: &str, value: &str) {
        if let Some(known) = ATTRIBUTES.iter().find(|known| known.eq_ignore_ascii_case(name)) {
            self.0.insert(*known, value.to_owned());
        }
    }

    fn text(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_default()
    }

    /// The value of an attribute as an integer, its fraction cut off; `None`: the record lacks it, or it is an
    /// expression.
    fn number(&self, name: &str) -> Option<i64> {
        let number: f64 = self.0.get(name)?.parse().ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "its range was looked at")]
        (-1e12..1e12).contains(&number).then_some(number as i64)
    }

    /// A time in seconds since 1970; `None`: it is missing, or 0, which stands for none.
    fn instant(&self, name: &str) -> Option<i64> {
        self.number(name).filter(|second| *second > 0)
    }

    fn read_job(&self) -> Result<AccountingLine, LineProblem> {
        // The scheduler and local universes run on the access point: DAGMan itself does.
        if matches!(self.number("JobUniverse"), Some(7 | 12)) {
            return Ok(AccountingLine::NoProcessor);
        }
        let submitted = match (self.0.get("QDate"), self.instant("QDate")) {
            (_, Some(second)) => second,
            (None, None) => return Err(LineProblem::NoSubmission),
            (Some(text), None) => {
                return Err(value_problem("QDate", text, "write seconds since 1970"));
            }
        };
        let completed = self.instant("CompletionDate");
        let status = self.number("JobStatus");
        let is_removed = status == Some(3);
        // 4 is completed, 3 removed; others are in the queue.
        let is_completed = status == Some(4) || status.is_none() && completed.is_some();
        if !is_removed && !is_completed {
            return Ok(AccountingLine::Unfinished);
        }
        let began = self.instant("JobCurrentStartDate").or_else(|| self.instant("JobStartDate"));
        let vacated = self.instant("LastVacateTime").filter(|at| Some(*at) >= began);
        let ended = match (completed, self.instant("EnteredCurrentStatus")) {
            (Some(at), _) => Some(at),
            // What was removed ran until it was, or until it had lost its machine before.
            (None, Some(at)) => Some(vacated.map_or(at, |vacated| vacated.min(at))),
            (None, None) => vacated,
        };
        if began.is_some() && ended.is_none() {
            return Err(LineProblem::NoJob { why: "it has no CompletionDate".into() });
        }
        let ran = began.zip(ended);
        let requested = self.number("RequestCpus").unwrap_or(0);
        let provisioned = self.number("CpusProvisioned").unwrap_or(0);
        // HTCondor gives one to a job that asks for none.
        let processors = if provisioned > 0 { provisioned } else { requested.max(1) };
        let starts = self.number("NumJobStarts").or_else(|| self.number("NumShadowStarts"));
        let requeued = starts.map_or(0, |starts| u64::try_from(starts - 1).unwrap_or(0));
        let all_runs = self.number("RemoteWallClockTime").unwrap_or(0);
        let lost = all_runs - ran.map_or(0, |(began, ended)| ended - began);
        let lost = u64::try_from(lost.saturating_mul(processors)).unwrap_or(0);
        let has_failed = self.text("ExitBySignal").eq_ignore_ascii_case("true")
            || self.number("ExitCode").is_some_and(|code| code != 0);
        let limits = ["AllowedExecuteDuration", "AllowedJobDuration"];
        let first = |names: [&str; 2]| {
            let texts = names.map(|name| self.text(name));
            texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
        };
        Ok(AccountingLine::Job(Box::new(JobRecord {
            number: self.number("ClusterId").filter(|_| self.number("ProcId").unwrap_or(0) == 0),
            submitted,
            ran,
            requested: requested.max(0),
            allocated: processors,
            limit: limits.iter().find_map(|name| self.instant(name)).unwrap_or(0),
            // In MiB, for the whole job.
            memory_kib: self.number("RequestMemory").unwrap_or(0).max(0).saturating_mul(1024),
            outcome: match is_removed {
                true => JobOutcome::Cancelled,
                false => JobOutcome::of_success(!has_failed),
            },
            user: first(["Owner", "User"]),
            group: first(["AcctGroup", "AccountingGroup"]),
            requeued: if ran.is_some() { requeued } else { 0 },
            requeued_cpu_s: if requeued > 0 && ran.is_some() { lost } else { 0 },
            ..JobRecord::default()
        })))
    }
}
