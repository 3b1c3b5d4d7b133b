//! Reader of Nextflow's trace of a run (`-with-trace`): a table of its tasks, separated by tabs. The trace has the run
//! time of each task, but not the order between tasks.

use std::collections::BTreeMap;
use std::path::Path;

use dormouse_documents::{Mistakes, Place};
use dormouse_input::Moment;
use dormouse_units::{Bytes, Span};

use super::{Workflow, WorkflowTask};

/// True if a text begins with the headings of a Nextflow trace.
pub(super) fn is_one(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    let has = |name: &str| first.split('\t').any(|cell| cell.trim() == name);
    has("name") && (has("realtime") || has("duration")) && (has("task_id") || has("hash"))
}

/// Cells of a row by their column.
struct TraceRow<'a> {
    columns: &'a BTreeMap<&'a str, usize>,
    cells: Vec<&'a str>,
}

impl TraceRow<'_> {
    /// Text of a cell; `None`: the column doesn't exist, or the cell is empty (`-`).
    fn cell(&self, name: &str) -> Option<&str> {
        let cell = self.cells.get(*self.columns.get(name)?)?.trim();
        (!cell.is_empty() && cell != "-").then_some(cell)
    }
}

/// Reads a trace into a workflow; mistakes are added to `found`.
pub(super) fn read(source: &str, text: &str, found: &mut Mistakes) -> Workflow {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let heading = lines.next().map_or("", |(_, line)| line);
    let columns: BTreeMap<&str, usize> = heading.split('\t').map(str::trim).zip(0..).collect();
    let mut workflow = Workflow::default();
    let (mut names, mut unfinished) = (BTreeMap::<String, usize>::new(), 0_usize);
    let (mut first, mut last) = (None::<i64>, None::<i64>);
    for (number, line) in lines {
        let row = TraceRow { columns: &columns, cells: line.split('\t').collect() };
        let place = || Place::line(Path::new(source), number, line);
        if !matches!(row.cell("status"), None | Some("COMPLETED" | "CACHED")) {
            unfinished += 1;
            continue;
        }
        let Some(name) = row.cell("name") else {
            found.add(&place(), "a task has no name", "give it one in the column 'name'");
            continue;
        };
        let ran = row.cell("realtime").or_else(|| row.cell("duration"));
        let runtime = ran.and_then(parse_length);
        if let (Some(ran), None) = (ran, runtime) {
            let what = format!("'{name}' took '{ran}', which is not a length of time");
            found.add(
                &place(),
                what,
                "write it as Nextflow does, such as 1m 30s, or in milliseconds",
            );
        }
        let submitted = row.cell("submit").and_then(Moment::read).map(|moment| moment.second);
        let took = row.cell("duration").and_then(parse_length).unwrap_or_default();
        if let Some(submitted) = submitted {
            let ended = submitted.saturating_add_unsigned(took.as_micros() / 1_000_000);
            first = Some(first.map_or(submitted, |first| first.min(submitted)));
            last = Some(last.map_or(ended, |last| last.max(ended)));
        }
        let times = names.entry(name.to_owned()).or_default();
        *times += 1;
        let name = if *times == 1 { name.to_owned() } else { format!("{name} #{times}") };
        let memory = row.cell("memory").or_else(|| row.cell("peak_rss")).and_then(parse_size);
        let cores = row.cell("cpus").and_then(|cores| cores.parse::<u32>().ok());
        workflow.tasks.push(WorkflowTask {
            name,
            runtime,
            memory: memory.filter(|memory| *memory > Bytes::ZERO),
            cores: cores.filter(|cores| *cores > 0),
            ..WorkflowTask::default()
        });
    }
    if unfinished > 0 {
        let said = format!("tasks that failed or were aborted, and are not run: {unfinished}");
        workflow.left_out.push(said);
    }
    workflow.left_out.push("a trace of Nextflow does not say which tasks follow which".to_owned());
    let makespan = first.zip(last).and_then(|(first, last)| u64::try_from(last - first).ok());
    workflow.makespan = makespan.map(Span::from_secs);
    workflow
}

/// Parses a length such as `1d 2h 3m 4.5s`, `482ms`, or a plain number of milliseconds.
fn parse_length(text: &str) -> Option<Span> {
    if let Ok(millis) = text.parse::<u64>() {
        return millis.checked_mul(1_000).map(Span::from_micros);
    }
    let mut seconds = 0.0;
    for word in text.split_whitespace() {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let scale = match word.get(digits.len()..)? {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        seconds += digits.parse::<f64>().ok()? * scale;
    }
    (!text.is_empty()).then(|| Span::from_secs_f64(seconds))?
}

/// Parses a size such as `2.4 MB`, with Nextflow's binary units (1 MB is 2^20 bytes), or a plain number of bytes.
fn parse_size(text: &str) -> Option<Bytes> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, "B"));
    let shift = match unit {
        "B" => 0,
        "KB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    let scale: u64 = 1 << shift;
    #[expect(clippy::cast_precision_loss, reason = "a power of two")]
    let bytes = number.parse::<f64>().ok()? * scale as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "its range was looked at"
    )]
    (0.0..1e18).contains(&bytes).then(|| Bytes::new(bytes.ceil() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_sizes_are_read_as_nextflow_writes_them() {
        for (text, millis) in [
            ("482ms", 482),
            ("4.9s", 4_900),
            ("1m 40s", 100_000),
            ("2h 3m 1s", 7_381_000),
            ("1d", 86_400_000),
            ("1500", 1_500),
        ] {
            assert_eq!(parse_length(text), Some(Span::from_micros(millis * 1_000)), "{text}");
        }
        assert_eq!(["", "soon", "-1s", "5 s"].map(parse_length), [None; 4]);
        assert_eq!(
            ["2.5 MB", "0", "7 B", "1 GB", "3 apples"].map(parse_size),
            [Some(2_621_440), Some(0), Some(7), Some(1 << 30), None].map(|it| it.map(Bytes::new))
        );
    }
}
