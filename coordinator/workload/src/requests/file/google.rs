//! Requests of Google's cluster traces: an instance, from when it is scheduled until it is evicted,
//! fails, finishes, is killed or lost.

use std::collections::BTreeMap;

use dormouse_cloud::Market;

use super::error::Flaw;
use super::events::{AFTER_THE_END, Does, Event, Events};
use super::format::RequestFormat;
use super::held::{Hold, NO_TYPE, THERE_BEFORE, UNSEEN};
use super::kinds::Kinds;
use crate::requests::offer::Refusal;

/// Highest priority of what may be preempted, of 2019: best-effort batch has 110 to 115, and free jobs
/// less (Tirmazi et al., "Borg: the Next Generation", EuroSys 2020, section 2).
const BEST_EFFORT_2019: i64 = 115;
/// Highest priority of 2011 that may be preempted: 0 and 1 are "free" (google/cluster-data,
/// ClusterData2011_2.md).
const FREE_2011: i64 = 1;

/// An instance that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    since: i64,
    /// Type and market of the instance; `None`: it is left out.
    kind: Option<(u32, Market)>,
    line: u64,
}

/// Reads all events; what is kept meanwhile is the instances that run.
pub(super) fn hold(
    events: &mut Events,
    format: RequestFormat,
    spot_priority: Option<u32>,
    kinds: &mut Kinds,
    hold: &mut Hold,
) -> Result<(), Flaw> {
    let spot_priority = spot_priority.map_or(
        if format == RequestFormat::Google2011 { FREE_2011 } else { BEST_EFFORT_2019 },
        i64::from,
    );
    let (mut running, mut last) = (BTreeMap::<(u64, u64), Running>::new(), 0);
    while let Some(event) = events.next()? {
        let Event { time, does, instance, line, .. } = event;
        if time < last {
            let what = format!("its time, {time}, is before that of the event above it, {last}");
            return Err(Flaw::row(line, Refusal::new(what, "sort by time")));
        }
        last = time;
        if time != AFTER_THE_END {
            hold.see(time);
        }
        match does {
            Does::Schedule if running.contains_key(&instance) => {
                hold.changed.add("scheduled while they ran, and counted once", line);
            }
            Does::Schedule => {
                let kind = kind_of(&event, spot_priority, kinds, hold);
                let kind = kind.map_err(|refusal| Flaw::row(line, refusal))?;
                running.insert(instance, Running { since: time, kind, line });
            }
            Does::EndRunning | Does::EndAny => match running.remove(&instance) {
                Some(was) => was.end(if time == AFTER_THE_END { UNSEEN } else { time }, hold),
                None if does == Does::EndRunning => {
                    hold.left_out.add("whose beginning is not in the file", line);
                }
                None => {}
            },
            Does::UpdateRunning if running.contains_key(&instance) => {
                hold.changed.add("resized while they ran, and counted as they began", line);
            }
            Does::UpdateRunning | Does::Other => {}
        }
    }
    running.into_values().for_each(|was| was.end(UNSEEN, hold));
    Ok(())
}

impl Running {
    fn end(self, until: i64, hold: &mut Hold) {
        let Self { since, kind: Some((kind, market)), line } = self else { return };
        if since == 0 {
            hold.changed.add(THERE_BEFORE, line);
        }
        hold.add((since, until), kind, market, line);
    }
}

/// The type and market of an instance; `None`: it is left out, and counted.
fn kind_of(
    event: &Event,
    spot_priority: i64,
    kinds: &mut Kinds,
    hold: &mut Hold,
) -> Result<Option<(u32, Market)>, Refusal> {
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
    let kind = kinds.part(&size, market)?;
    if kind.is_none() {
        hold.left_out.add(NO_TYPE, line);
    }
    Ok(kind.map(|kind| (kind, market)))
}
