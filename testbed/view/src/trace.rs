//! A Gantt chart as a trace of events, as Perfetto (ui.perfetto.dev) and Chrome read it.
//!
//! The format is Chrome's Trace Event Format, JSON: a lane is a process, a row of it a thread, a
//! bar a complete event, a mark an instant, a link a flow, a measure a counter. Times are emulated
//! microseconds.

use dormouse_units::Tier;
use serde_json::{Value, json};

use crate::plot::{GanttBar, GanttChart, GanttPlace};

impl GanttChart {
    /// The chart as a trace, a JSON document.
    #[must_use]
    pub fn to_trace(&self) -> Value {
        let mut events = Vec::new();
        for (n, lane) in self.lanes.iter().enumerate() {
            let name = if lane.name.is_empty() { &lane.about } else { &lane.name };
            events.push(name_event("process_name", (n, 0), name));
            for row in 0..lane.rows {
                let (above, below) =
                    (thread_number(row, Tier::Foreground), thread_number(row, Tier::Background));
                events.push(name_event("thread_name", (n, above), &format!("vCPU {row}")));
                if lane.has_background {
                    let name = format!("vCPU {row}, background");
                    events.push(name_event("thread_name", (n, below), &name));
                }
            }
            if let Some(measure) = &lane.measure {
                events.extend(measure.points.iter().map(|(at, value)| {
                    let (name, ts) = (&measure.name, at.as_micros());
                    json!({ "ph": "C", "name": name, "pid": n, "ts": ts, "args": { "value": value } })
                }));
            }
        }
        // Bars over work are left out: the title of the work's bar tells the same.
        let bars = self.bars.iter().filter(|bar| !bar.fill.is_overlay());
        events.extend(bars.flat_map(bar_events));
        for mark in &self.marks {
            let (pid, tid) = first_thread(&mark.place);
            events.push(json!({
                "ph": "i", "s": "t", "name": mark.kind.name(), "pid": pid, "tid": tid,
                "ts": mark.at.as_micros(), "args": { "about": mark.title },
            }));
        }
        for (id, link) in self.links.iter().enumerate() {
            for (ph, (place, at)) in [("s", &link.from), ("f", &link.to)] {
                let (pid, tid) = first_thread(place);
                events.push(json!({
                    "ph": ph, "bp": "e", "id": id, "name": link.title, "cat": "migration",
                    "pid": pid, "tid": tid, "ts": at.as_micros(),
                }));
            }
        }
        json!({
            "displayTimeUnit": "ms",
            "otherData": { "title": self.title, "about": self.lead },
            "traceEvents": events,
        })
    }
}

fn bar_events(bar: &GanttBar) -> impl Iterator<Item = Value> + '_ {
    let name = bar.title.split([':', '\n']).next().unwrap_or_default();
    bar.place.rows.iter().flat_map(Clone::clone).map(move |row| {
        json!({
            "ph": "X", "name": name, "pid": bar.place.lane, "tid": thread_number(row, bar.place.tier),
            "ts": bar.from.as_micros(), "dur": bar.until.since(bar.from).as_micros(),
            "args": { "about": bar.title },
        })
    })
}

/// Number of the thread in the trace that shows a tier of a row.
fn thread_number(row: u32, tier: Tier) -> u64 {
    1 + u64::from(row) * 2 + u64::from(tier == Tier::Background)
}

fn first_thread(place: &GanttPlace) -> (usize, u64) {
    let row = place.rows.first().map_or(0, |rows| rows.start);
    (place.lane, thread_number(row, place.tier))
}

fn name_event(what: &str, (pid, tid): (usize, u64), name: &str) -> Value {
    json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "args": { "name": name } })
}

#[cfg(test)]
mod tests {
    use dormouse_units::Time;

    use super::*;
    use crate::plot::{BarFill, GanttLane};

    #[test]
    fn a_bar_is_an_event_of_each_of_its_rows() {
        let lane =
            GanttLane { name: "vm0".into(), rows: 3, has_background: true, ..GanttLane::default() };
        let bar = GanttBar {
            place: GanttPlace::rows(0, 0..2),
            from: Time::from_secs(1),
            until: Time::from_secs(3),
            fill: BarFill::Work(0),
            label: "7".into(),
            title: "task7 (ed-7) on vm0: 1 s to 3 s".into(),
        };
        let trace =
            GanttChart { lanes: vec![lane], bars: vec![bar], ..GanttChart::default() }.to_trace();
        let events = trace["traceEvents"].as_array().cloned().unwrap_or_default();
        let slices: Vec<_> = events.iter().filter(|e| e["ph"] == "X").collect();
        assert_eq!(slices.len(), 2, "{trace:#}");
        assert_eq!((&slices[1]["ts"], &slices[1]["dur"]), (&json!(1_000_000), &json!(2_000_000)));
        assert_eq!(
            (&slices[1]["name"], &slices[1]["tid"]),
            (&json!("task7 (ed-7) on vm0"), &json!(3))
        );
        assert_eq!(events.iter().filter(|e| e["name"] == "thread_name").count(), 6);
    }
}
