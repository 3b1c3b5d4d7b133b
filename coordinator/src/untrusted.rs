//! Messages of strangers, read and judged as the service does it, without a run.
//!
//! Here so that fuzz targets reach what is read of a message before anything is known of its run.

use std::time::Duration;

use dormouse_model::{HostLoad, Submission};
use dormouse_proto::v1;
use dormouse_units::Time;

use crate::contents::digests;
use crate::interruption::Injection;
use crate::link::Link;
use crate::measured::{Room, check_load, check_report};
use crate::outside::Asked;
use crate::wire::{Heard, heard};
use crate::{bounds, desk, texts};

/// The size of a VM and the age of its host, by which measurements are judged here.
const ROOM: Room = Room { vcpus: 8, there: Duration::from_secs(3600) };

/// Reads a message of a worker's session, with all its reports.
///
/// # Errors
///
/// Why the worker is not believed.
pub fn worker_message(mut message: v1::FromWorker) -> Result<(), String> {
    let Some(v1::from_worker::Body::Reports(reports)) = &mut message.body else {
        return desk::check_hello(Some(message)).map(drop).map_err(|no| no.to_string());
    };
    let mut link = Link::default();
    link.acknowledged(message.ack).map_err(|no| no.to_string())?;
    for (_, report) in link.hear(std::mem::take(reports)).map_err(|no| no.to_string())? {
        check_one(report)?;
    }
    Ok(())
}

fn check_one(mut report: v1::Report) -> Result<(), String> {
    bounds::check(&report)?;
    texts::bound(&mut report)?;
    match heard(report)? {
        Heard::Report { report, ledger, .. } => {
            // What a report says goes into the log and is read from there.
            for report in ledger.iter().chain([&report]) {
                check_report(report, ROOM)?;
                let line = serde_json::to_string(report).map_err(|error| error.to_string())?;
                let read = serde_json::from_str(&line).map_err(|error| error.to_string());
                assert_eq!(read.as_ref(), Ok(report), "a report reads back from the log");
            }
            Ok(())
        }
        Heard::Load(load) => {
            let load = HostLoad {
                elapsed_us: load.real_elapsed_us,
                millicores: load.millicores,
                busy_us: load.real_busy_us,
                ours_us: load.real_ours_us,
                machine: load.machine,
            };
            check_load(&load, None, Some(ROOM.there))
        }
        Heard::Ready { .. } | Heard::Fault { .. } | Heard::Unsupported { .. } => Ok(()),
    }
}

/// Reads the digests of contents that a worker names.
///
/// # Errors
///
/// Why they are refused.
pub fn content_digests(contents: &v1::Contents) -> Result<usize, String> {
    digests(&contents.digests).map(|all| all.len()).map_err(|no| no.to_string())
}

/// Reads a request for one more job.
///
/// # Errors
///
/// Why no such job is taken.
pub fn submission(request: v1::SubmitRequest) -> Result<Submission, String> {
    Ok(Asked::of(request)?.job(1, Time::ZERO))
}

/// Reads a request for an interruption.
///
/// # Errors
///
/// Why no such interruption is injected.
pub fn interruption(request: v1::InterruptRequest) -> Result<(), String> {
    Injection::of(request).map(drop)
}
