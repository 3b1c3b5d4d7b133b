//! Decodes and checks messages of untrusted peers as the service does, but without a run.
//!
//! Fuzz targets call these functions, which cover all code that reads a message before its run is known.

use std::time::Duration;

use dormouse_model::{LoadReport, Report, Submission};
use dormouse_proto::v1;
use dormouse_units::Time;

use crate::contents::read_digests;
use crate::limits::measured::{VmRoom, check_load, check_report};
use crate::messages::interruption::InjectedInterruption;
use crate::messages::outside::JobSubmission;
use crate::protocol::link::SessionLink;
use crate::protocol::wire::DecodedReport;
use crate::server::desk;
use crate::sessions::session;

/// Assumed vCPUs of a VM and connection time of its host, by which reported measurements are checked.
const ROOM: VmRoom = VmRoom { vcpus: 8, there: Duration::from_secs(3600) };

/// Decodes and checks a message of a worker's session; returns its reports that would go into the log.
///
/// # Errors
///
/// The reason why the message isn't believed.
pub fn worker_message(mut message: v1::FromWorker) -> Result<Vec<Report>, String> {
    let Some(v1::from_worker::Body::Reports(reports)) = &mut message.body else {
        let hello = desk::check_hello(Some(message));
        return hello.map(|_| Vec::new()).map_err(|no| no.to_string());
    };
    let mut link = SessionLink::default();
    link.on_acknowledged(message.ack).map_err(|no| no.to_string())?;
    let mut judged = Vec::new();
    for (_, report) in link.take_reports(std::mem::take(reports)).map_err(|no| no.to_string())? {
        judged.extend(judge_report(report)?);
    }
    Ok(judged)
}

/// Decodes and checks a report; returns the reports that would go into the log.
fn judge_report(report: v1::Report) -> Result<Vec<Report>, String> {
    match session::read(report)? {
        DecodedReport::Report { report, ledger, .. } => {
            let reports: Vec<Report> = ledger.into_iter().chain([report]).collect();
            reports.iter().try_for_each(|report| check_report(report, ROOM))?;
            Ok(reports)
        }
        DecodedReport::Load(load) => {
            let load = LoadReport {
                elapsed_us: load.real_elapsed_us,
                millicores: load.millicores,
                busy_us: load.real_busy_us,
                ours_us: load.real_ours_us,
                machine: load.machine,
            };
            check_load(&load, None).map(|()| Vec::new())
        }
        DecodedReport::Ready { .. }
        | DecodedReport::Console { .. }
        | DecodedReport::PoweredOff { .. }
        | DecodedReport::Fault { .. }
        | DecodedReport::Unsupported { .. } => Ok(Vec::new()),
    }
}

/// Reads the digests of contents that a worker names; returns their number.
///
/// # Errors
///
/// The reason why the digests are refused.
pub fn content_digests(contents: &v1::Contents) -> Result<usize, String> {
    read_digests(&contents.digests).map(|all| all.len()).map_err(|no| no.to_string())
}

/// Reads a request for a further job.
///
/// # Errors
///
/// Why the job is refused.
pub fn read_submission(request: v1::SubmitRequest) -> Result<Submission, String> {
    Ok(JobSubmission::from_request(request)?.make_submission(1, Time::ZERO))
}

/// Reads a request for an interruption.
///
/// # Errors
///
/// The reason why the request is refused.
pub fn check_interruption(request: v1::InterruptRequest) -> Result<(), String> {
    InjectedInterruption::from_request(request).map(drop)
}
