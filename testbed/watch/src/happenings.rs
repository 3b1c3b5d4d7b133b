//! The events of a run, in words: read from its log when somebody asks.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use dormouse_analysis::happening::Happening;
use dormouse_model::Step;
use serde::Deserialize;
use serde_json::{Value, json};

/// Events that are looked at for one answer: where fewer are wanted ones, whoever asks goes on from there.
const LOOKED_AT: u64 = 20_000;
/// Events that are read of the log at once.
const BLOCK: u64 = 512;
/// The most events in one answer.
const MOST: usize = 1_000;

/// The events that are asked for.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Asked {
    /// Those before this one; all, where it is not said.
    before: Option<u64>,
    /// Not those after this time, in emulated seconds.
    until_s: Option<f64>,
    /// So many at most.
    limit: Option<usize>,
    /// Those about this VM, task or host.
    about: Option<String>,
    /// Those of this kind.
    kind: Option<String>,
}

/// The events that were asked for, the newest first, of a log in which they begin at these places.
///
/// # Errors
///
/// The log can't be read.
pub(crate) fn told(folder: &Path, lines: &[u64], asked: &Asked) -> io::Result<Value> {
    let limit = asked.limit.unwrap_or(200).clamp(1, MOST);
    let count = lines.len() as u64;
    let mut before = asked.before.unwrap_or(count).min(count);
    let earliest = before.saturating_sub(LOOKED_AT);
    let mut file = BufReader::new(File::open(folder.join(dormouse_log::FILE))?);
    let mut events = Vec::new();
    while before > earliest && events.len() < limit {
        let from = before.saturating_sub(BLOCK).max(earliest);
        let steps = read(&mut file, lines, from, before)?;
        for step in steps.into_iter().rev() {
            before = step.seq;
            let at = step.at.as_secs_f64();
            if asked.until_s.is_some_and(|until| at > until) {
                continue;
            }
            let Happening { kind, text, about } = Happening::of(&step);
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

/// The steps from one to before another.
fn read(
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
