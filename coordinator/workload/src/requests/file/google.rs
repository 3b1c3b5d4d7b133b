//! Requests of Google's cluster traces: an instance, from when it is scheduled until it is evicted,
//! fails, finishes, is killed or lost.

use std::collections::BTreeMap;

use dormouse_cloud::Market;

use super::error::RequestFileFlaw;
use super::events::{AFTER_THE_END, EventEffect, EventReader, InstanceEvent};
use super::format::RequestFormat;
use super::held::{NO_TYPE, RequestCollector, THERE_BEFORE, UNSEEN};
use super::kinds::NumberedTypes;
use crate::requests::offer::OfferRefusal;

/// Highest priority in the 2019 trace that counts as preemptible: best-effort batch has 110 to 115,
/// and free jobs less (Tirmazi et al., "Borg: the Next Generation", EuroSys 2020, section 2).
const BEST_EFFORT_2019: i64 = 115;
/// Highest priority in the 2011 trace that counts as preemptible: 0 and 1 are "free"
/// (google/cluster-data, ClusterData2011_2.md).
const FREE_2011: i64 = 1;

/// An instance whose end has not been read yet.
#[derive(Clone, Copy, Debug)]
struct RunningInstance {
    since: i64,
    /// Type number and market of the instance; `None`: the instance is left out of the requests.
    kind: Option<(u32, Market)>,
    line: u64,
}

/// Reads all events and collects the requests; only running instances are kept in memory.
pub(super) fn collect_events(
    events: &mut EventReader,
    format: RequestFormat,
    spot_priority: Option<u32>,
    kinds: &mut NumberedTypes,
    hold: &mut RequestCollector,
) -> Result<(), RequestFileFlaw> {
    let spot_priority = spot_priority.map_or(
        if format == RequestFormat::Google2011 { FREE_2011 } else { BEST_EFFORT_2019 },
        i64::from,
    );
    let (mut running, mut last) = (BTreeMap::<(u64, u64), RunningInstance>::new(), 0);
    while let Some(event) = events.next()? {
        let InstanceEvent { time, does, instance, line, .. } = event;
        if time < last {
            let what = format!("its time, {time}, is before that of the event above it, {last}");
            return Err(RequestFileFlaw::of_row(
                line,
                OfferRefusal::new(what, "sort the events by time"),
            ));
        }
        last = time;
        if time != AFTER_THE_END {
            hold.note_instant(time);
        }
        match does {
            EventEffect::Schedule if running.contains_key(&instance) => {
                hold.changed.add("scheduled while they ran, and counted once", line);
            }
            EventEffect::Schedule => {
                let kind = kind_of(&event, spot_priority, kinds, hold);
                let kind = kind.map_err(|refusal| RequestFileFlaw::of_row(line, refusal))?;
                running.insert(instance, RunningInstance { since: time, kind, line });
            }
            EventEffect::EndRunning | EventEffect::EndAny => match running.remove(&instance) {
                Some(was) => {
                    was.end_instance(if time == AFTER_THE_END { UNSEEN } else { time }, hold);
                }
                None if does == EventEffect::EndRunning => {
                    hold.left_out.add("whose beginning is not in the file", line);
                }
                None => {}
            },
            EventEffect::UpdateRunning if running.contains_key(&instance) => {
                hold.changed.add("resized while they ran, and counted as they began", line);
            }
            EventEffect::UpdateRunning | EventEffect::Other => {}
        }
    }
    running.into_values().for_each(|was| was.end_instance(UNSEEN, hold));
    Ok(())
}

impl RunningInstance {
    fn end_instance(self, until: i64, hold: &mut RequestCollector) {
        let Self { since, kind: Some((kind, market)), line } = self else { return };
        if since == 0 {
            hold.changed.add(THERE_BEFORE, line);
        }
        hold.add((since, until), kind, market, line);
    }
}

/// Returns the type number and market of an instance; `None`: the instance is left out and counted as such.
fn kind_of(
    event: &InstanceEvent,
    spot_priority: i64,
    kinds: &mut NumberedTypes,
    hold: &mut RequestCollector,
) -> Result<Option<(u32, Market)>, OfferRefusal> {
    let line = event.line;
    if event.in_alloc {
        hold.left_out.add("inside an alloc instance, which has a request of its own", line);
        return Ok(None);
    }
    let Some(size) = event.size else {
        hold.left_out.add("without a resource request", line);
        return Ok(None);
    };
    let is_spot = event.priority.is_some_and(|priority| priority <= spot_priority);
    let market = if is_spot { Market::Spot } else { Market::OnDemand };
    let kind = kinds.number_of_part(&size, market)?;
    if kind.is_none() {
        hold.left_out.add(NO_TYPE, line);
    }
    Ok(kind.map(|kind| (kind, market)))
}
