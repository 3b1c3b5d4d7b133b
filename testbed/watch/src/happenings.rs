//! Events of a run in words, read from its log on request.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use dormouse_analysis::happening::StepSummary;
use dormouse_model::Step;
use serde::Deserialize;
use serde_json::{Value, json};

/// Greatest number of events that are searched for one answer: a client that wants more sends another query for the events after
/// the last searched one.
const LOOKED_AT: u64 = 20_000;
/// Number of events that are read from the log at once.
const BLOCK: u64 = 512;
/// Greatest number of events in one answer.
const MAX_EVENTS: usize = 1_000;

/// A query for events of a run.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct EventQuery {
    /// The query asks only for events before the event with this number; `None` for no such limit.
    before: Option<u64>,
    /// The query asks only for events after the event with this number, as a client does that has the earlier ones; `None` for no
    /// such limit.
    after: Option<u64>,
    /// The query asks only for events up to this time, in emulated seconds since the run's beginning; `None` for no such limit.
    until_s: Option<f64>,
    /// Greatest number of events in the answer that the client wants.
    limit: Option<usize>,
    /// The query asks only for events about this VM, task or host; `None` for events about any.
    about: Option<String>,
    /// The query asks only for events of this kind; `None` for all kinds.
    kind: Option<String>,
}

/// The events that match, the newest first; `lines` are the offsets at which events begin in the
/// log.
///
/// # Errors
///
/// The log can't be read.
pub(crate) fn told(folder: &Path, lines: &[u64], asked: &EventQuery) -> io::Result<Value> {
    let limit = asked.limit.unwrap_or(200).clamp(1, MAX_EVENTS);
    let count = lines.len() as u64;
    let mut before = asked.before.unwrap_or(count).min(count);
    let known = asked.after.map_or(0, |after| after.saturating_add(1)).min(before);
    let earliest = before.saturating_sub(LOOKED_AT).max(known);
    // Without a filter only as many events are read as are wanted.
    let is_filtered = asked.kind.is_some() || asked.about.is_some() || asked.until_s.is_some();
    let block = if is_filtered { BLOCK } else { (limit as u64).min(BLOCK) };
    let mut file = BufReader::new(File::open(folder.join(dormouse_log::FILE))?);
    let mut events = Vec::new();
    while before > earliest && events.len() < limit {
        let from = before.saturating_sub(block).max(earliest);
        let steps = read_steps(&mut file, lines, from, before)?;
        for step in steps.into_iter().rev() {
            before = step.seq;
            let at = step.at.as_secs_f64();
            if asked.until_s.is_some_and(|until| at > until) {
                continue;
            }
            let StepSummary { kind, text, about } = StepSummary::from_step(&step);
            let is_wanted = asked.kind.as_ref().is_none_or(|wanted| wanted == kind)
                && asked.about.as_ref().is_none_or(|wanted| about.contains(wanted));
            if is_wanted {
                let seq = step.seq;
                events.push(
                    json!({ "seq": seq, "t": at, "kind": kind, "text": text, "about": about }),
                );
            }
            if events.len() == limit {
                break;
            }
        }
    }
    Ok(json!({ "events": events, "first": before == 0, "before": before }))
}

/// Reads the steps from number `from` up to, but without, `before`.
fn read_steps(
    file: &mut BufReader<File>,
    lines: &[u64],
    from: u64,
    before: u64,
) -> io::Result<Vec<Step>> {
    let place = usize::try_from(from).ok().and_then(|from| lines.get(from));
    let Some(place) = place else { return Ok(Vec::new()) };
    file.seek(SeekFrom::Start(*place))?;
    let (mut steps, mut line) = (Vec::new(), String::new());
    for _ in from..before {
        line.clear();
        file.read_line(&mut line)?;
        steps.push(serde_json::from_str(&line)?);
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use dormouse_model::Event;
    use dormouse_units::Time;

    use super::*;

    /// Writes a log with a header and events, of which each third ends the run; returns its folder and the offsets of
    /// the events.
    fn log(events: u64) -> (tempfile::TempDir, Vec<u64>) {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut text, mut lines) = ("{}\n".to_owned(), Vec::new());
        for seq in 0..events {
            lines.push(text.len() as u64);
            let why = || "late".to_owned();
            let event = if seq % 3 == 0 { Event::Cancel { why: why() } } else { Event::Tick };
            let step = Step { seq, at: Time::from_secs(seq), event, ..Step::blank() };
            text += &serde_json::to_string(&step).expect("a step can be written");
            text.push('\n');
        }
        std::fs::write(folder.path().join(dormouse_log::FILE), text).expect("room");
        (folder, lines)
    }

    fn seqs(told: &Value) -> Vec<u64> {
        let events = told["events"].as_array().expect("a list");
        events.iter().map(|event| event["seq"].as_u64().expect("a number")).collect()
    }

    #[test]
    fn events_are_told_newest_first_as_they_are_asked_for() {
        let (folder, lines) = log(1_500);
        let ask = |asked: EventQuery| told(folder.path(), &lines, &asked).expect("it can be read");
        let newest = ask(EventQuery { limit: Some(3), ..EventQuery::default() });
        assert_eq!(
            (seqs(&newest), newest["before"].as_u64()),
            (vec![1_499, 1_498, 1_497], Some(1_497))
        );
        let older = ask(EventQuery { before: Some(2), ..EventQuery::default() });
        assert_eq!((seqs(&older), older["first"].as_bool()), (vec![1, 0], Some(true)));
        // Only what is new, and where that is more than fits, what is newest.
        let new = ask(EventQuery { after: Some(1_496), ..EventQuery::default() });
        assert_eq!((seqs(&new), new["before"].as_u64()), (vec![1_499, 1_498, 1_497], Some(1_497)));
        let none = ask(EventQuery { after: Some(1_499), ..EventQuery::default() });
        assert_eq!((seqs(&none), none["before"].as_u64()), (vec![], Some(1_500)));
        let many = ask(EventQuery { after: Some(0), limit: Some(2), ..EventQuery::default() });
        assert_eq!((seqs(&many), many["before"].as_u64()), (vec![1_499, 1_498], Some(1_498)));
        let kind = Some("run".to_owned());
        let ended =
            ask(EventQuery { kind, until_s: Some(700.0), limit: Some(2), ..EventQuery::default() });
        assert_eq!(seqs(&ended), [699, 696]);
        let about = Some("vm7".to_owned());
        assert_eq!(seqs(&ask(EventQuery { about, ..EventQuery::default() })), Vec::<u64>::new());
    }
}
