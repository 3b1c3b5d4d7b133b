//! Events of Google's cluster traces, from rows or from lines of JSON.

use dormouse_input::{Line, Row, Rows, Text};
use serde_json::Value;

use super::cells::{shorten_row, text};
use super::error::RequestFileFlaw;
use super::format::{
    ALLOC, COLLECTION, CPUS, EventColumns, INDEX, PRIORITY, RAM, REQUEST, RequestFormat, TIME, TYPE,
};
use crate::requests::check::LAST;
use crate::requests::offer::{OfferRefusal, VmSize};

/// Time, in microseconds, that Google's trace gives to events that lie after its end.
pub(super) const AFTER_THE_END: i64 = i64::MAX;

/// Effect of an event on an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventEffect {
    /// The instance is placed on a machine and runs.
    Schedule,
    /// The instance stops, after it ran: it was evicted, failed or finished.
    EndRunning,
    /// The instance stops or never starts: it was killed or lost, maybe while it waited.
    EndAny,
    /// The instance's resource request changes while the instance runs.
    UpdateRunning,
    /// An event without effect on VMs.
    Other,
}

/// An event of an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct InstanceEvent {
    /// Microseconds since the trace's beginning.
    pub(super) time: i64,
    pub(super) does: EventEffect,
    /// Collection id (job) and index of the instance.
    pub(super) instance: (u64, u64),
    pub(super) priority: Option<i64>,
    /// Size of the instance, as shares of the largest machine; `None`: the event gives no size.
    pub(super) size: Option<VmSize>,
    /// True if the instance runs inside an alloc instance, which has a resource request of its own.
    pub(super) in_alloc: bool,
    pub(super) line: u64,
}

/// Reader of a file's events; one is in memory at a time.
#[derive(Debug)]
pub(super) enum EventReader {
    Rows(Box<Rows>, RequestFormat, EventColumns),
    Json(Text),
}

impl EventReader {
    /// Reads the next event of the file; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<InstanceEvent>, RequestFileFlaw> {
        match self {
            Self::Rows(rows, format, columns) => {
                let Some(row) = rows.next_row()? else { return Ok(None) };
                let event = of_row(&row, *format, columns);
                event.map(Some).map_err(|refusal| RequestFileFlaw::of_row(row.line(), refusal))
            }
            Self::Json(lines) => loop {
                match lines.read_line()? {
                    Line::End => return Ok(None),
                    Line::Read if lines.line().trim_ascii().is_empty() => {}
                    Line::Read => {
                        let line = lines.number();
                        let event = of_json(lines.line(), line);
                        return event
                            .map(Some)
                            .map_err(|refusal| RequestFileFlaw::of_row(line, refusal));
                    }
                    Line::TooLong => {
                        let remedy = "give a file with one event a line, as BigQuery exports them";
                        let refusal =
                            OfferRefusal::new("the line is too long for an event", remedy);
                        return Err(RequestFileFlaw::of_row(lines.number(), refusal));
                    }
                }
            },
        }
    }
}

/// True if a line is an event in JSON.
pub(super) fn is_json_event(line: &[u8]) -> bool {
    let value: Option<Value> = serde_json::from_slice(line).ok();
    value.is_some_and(|value| ["time", "collection_id"].iter().all(|key| value.get(key).is_some()))
}

fn of_row(
    row: &Row<'_>,
    format: RequestFormat,
    columns: &EventColumns,
) -> Result<InstanceEvent, OfferRefusal> {
    let line = text(row)?;
    if format == RequestFormat::Google2011 && row.len() != 13 {
        let what = format!("'{}' has {} cells, not 13", shorten_row(line), row.len());
        return Err(OfferRefusal::new(
            what,
            "give files of task_events as they were published: each row has 13 cells",
        ));
    }
    let cell = |n: usize| columns.place_in_event(n).map_or("", |place| row.cell(place));
    let part = |n: usize, what: &str| parse_share(what, cell(n));
    let size = match (part(CPUS, "CPU request")?, part(RAM, "memory request")?) {
        (Some(vcpus), Some(memory)) => Some(VmSize { vcpus, memory }),
        _ => parse_resources(cell(REQUEST)),
    };
    Ok(InstanceEvent {
        time: parse_time(cell(TIME))?,
        does: parse_effect(format, cell(TYPE))?,
        instance: (
            parse_whole("collection", cell(COLLECTION))?,
            parse_whole("number in its collection", cell(INDEX))?,
        ),
        priority: cell(PRIORITY).parse().ok(),
        size,
        in_alloc: !matches!(cell(ALLOC), "" | "0"),
        line: row.line(),
    })
}

fn of_json(text: &[u8], line: u64) -> Result<InstanceEvent, OfferRefusal> {
    let value: Value = serde_json::from_slice(text).map_err(|error| {
        OfferRefusal::new(
            format!("it is not JSON: {error}"),
            "write one event a line, as BigQuery exports them",
        )
    })?;
    let string = |key: &str| match value.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let request = value.get("resource_request");
    let part = |key: &str| {
        let part = request?.get(key)?;
        part.as_f64().or_else(|| part.as_str()?.parse().ok())
    };
    let size = part("cpus").zip(part("memory"));
    Ok(InstanceEvent {
        time: parse_time(&string("time"))?,
        does: parse_effect(RequestFormat::Google2019, &string("type"))?,
        instance: (
            parse_whole("collection_id", &string("collection_id"))?,
            parse_whole("instance_index", &string("instance_index"))?,
        ),
        priority: string("priority").parse().ok(),
        size: size.map(|(vcpus, memory)| VmSize { vcpus, memory }).filter(is_share),
        in_alloc: !matches!(string("alloc_collection_id").as_str(), "" | "0"),
        line,
    })
}

fn parse_time(text: &str) -> Result<i64, OfferRefusal> {
    // The largest number of all stands for a time after the trace.
    let is_time = |time: &i64| {
        let us = u64::try_from(*time).ok();
        us.is_some_and(|us| us <= LAST.as_micros() || *time == AFTER_THE_END)
    };
    text.parse().ok().filter(is_time).ok_or_else(|| {
        let what = format!("its time, '{}', is not a number of microseconds", shorten_row(text));
        OfferRefusal::new(what, "give the table as it was exported, with one row a line")
    })
}

fn parse_whole(what: &str, text: &str) -> Result<u64, OfferRefusal> {
    text.parse().map_err(|_| {
        let what = format!("its {what}, '{}', is not a whole number", shorten_row(text));
        OfferRefusal::new(what, "give the table as it was exported, with one row a line")
    })
}

fn is_share(size: &VmSize) -> bool {
    [size.vcpus, size.memory].iter().all(|part| (0.0..=1e6).contains(part))
}

/// Parses a share of the largest machine; `None`: the cell is empty.
fn parse_share(what: &str, text: &str) -> Result<Option<f64>, OfferRefusal> {
    if super::cells::is_null(text) {
        return Ok(None);
    }
    let part = text.parse::<f64>().ok().filter(|part| (0.0..=1e6).contains(part));
    part.map(Some).ok_or_else(|| {
        let what = format!(
            "its {what}, '{}', is not a share of a machine (a number of 0 or more)",
            shorten_row(text)
        );
        OfferRefusal::new(what, "give the table as it was exported, with one row a line")
    })
}

/// Parses a resource request written as an object: `{"cpus": 0.02, "memory": 0.01}`, or with single
/// quotes, as Python prints it.
fn parse_resources(text: &str) -> Option<VmSize> {
    let value: Value = serde_json::from_str(&text.replace('\'', "\"")).ok()?;
    let part = |key: &str| value.get(key)?.as_f64();
    Some(VmSize { vcpus: part("cpus")?, memory: part("memory")? }).filter(is_share)
}

/// Effect of an event type, which is given by number or name.
fn parse_effect(format: RequestFormat, text: &str) -> Result<EventEffect, OfferRefusal> {
    let number = text.parse::<u8>().ok();
    // The trace of 2019 has QUEUE and ENABLE at 1 and 2, which that of 2011 lacks.
    let number = match format {
        RequestFormat::Google2011 => number.map(|n| if n == 0 { 0 } else { n.saturating_add(2) }),
        _ => number,
    };
    match (number, text.to_ascii_uppercase().as_str()) {
        (Some(3), _) | (None, "SCHEDULE") => Ok(EventEffect::Schedule),
        (Some(4..=6), _) | (None, "EVICT" | "FAIL" | "FINISH") => Ok(EventEffect::EndRunning),
        (Some(7 | 8), _) | (None, "KILL" | "LOST") => Ok(EventEffect::EndAny),
        (Some(10), _) | (None, "UPDATE_RUNNING") => Ok(EventEffect::UpdateRunning),
        (Some(0..=2 | 9), _) | (None, "SUBMIT" | "QUEUE" | "ENABLE" | "UPDATE_PENDING") => {
            Ok(EventEffect::Other)
        }
        _ => {
            let what = format!("'{}' is not the type of an event", shorten_row(text));
            Err(OfferRefusal::new(
                what,
                "write the type's number in the trace, or its name, such as SCHEDULE",
            ))
        }
    }
}
