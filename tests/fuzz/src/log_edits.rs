//! A valid log with a few values changed, which raw bytes would hardly ever become.

use std::sync::LazyLock;

use dormouse_analysis::RunMode;
use dormouse_experiment::of_text;
use dormouse_report::output::LogHeader;
use dormouse_report::virtual_run::virtual_run;
use serde_json::Value;

use super::log;

/// Experiments whose logs are changed: a bag with interruptions, parallel jobs, requests for VMs, two tenants.
const EXPERIMENTS: [&str; 4] = [
    include_str!("../experiments/bag.toml"),
    include_str!("../experiments/jobs.toml"),
    include_str!("../experiments/requests.toml"),
    include_str!("../experiments/shared.toml"),
];

/// Logs of live runs, which hold machines, accounts and loads that no virtual run has.
const LIVE: [&str; 2] =
    [include_str!("../logs/live-bag.jsonl"), include_str!("../logs/live-jobs.jsonl")];

/// All logs as lines; the logs of experiments are made by this version.
static LOGS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let live = LIVE.map(|text| text.lines().map(str::to_owned).collect());
    EXPERIMENTS.map(lines_of).into_iter().chain(live).collect()
});

/// Runs an experiment and returns the lines of its log.
fn lines_of(text: &str) -> Vec<String> {
    let experiment = of_text("fuzz.toml", text).expect("the experiment is right");
    let scheduler = experiment.scheduler().expect("it has a plan");
    let header = LogHeader::new(RunMode::Virtual, "dormouse run fuzz".to_owned(), experiment);
    let mut lines = vec![serde_json::to_string(&header).expect("a header is written")];
    virtual_run(&header.experiment, scheduler, |step| {
        lines.push(serde_json::to_string(step).expect("a step is written"));
    })
    .expect("it comes to its end");
    lines
}

/// Values at which sums and products overflow, or that are out of every valid range.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    1_000_000,
    1_000_001,
    u32::MAX as u64 - 1,
    u32::MAX as u64,
    1 << 40,
    1 << 53,
    i64::MAX as u64,
    u64::MAX - 1,
    u64::MAX,
];

/// Reads, checks and explains a changed log.
pub(crate) fn log_edits(bytes: &[u8]) {
    if let Some(text) = changed_log(bytes, 0) {
        log::log(&text);
    }
}

/// Computes the results of a changed log. Its header is not changed: the experiment there decides how long that takes.
pub(crate) fn log_results(bytes: &[u8]) {
    if let Some(text) = changed_log(bytes, 1) {
        log::results(&text);
    }
}

/// A log with changes from the line `from` on. The first byte of the input chooses the log; four bytes make each
/// change: the line, the value in it (two bytes), and the new value.
fn changed_log(bytes: &[u8], from: usize) -> Option<Vec<u8>> {
    let (which, edits) = bytes.split_first()?;
    let mut lines = LOGS[usize::from(*which) % LOGS.len()].clone();
    for edit in edits.as_chunks::<4>().0.iter().take(16) {
        let [line, high, low, change] = *edit;
        let count = lines.len() - from;
        let line = &mut lines[from + usize::from(line) % count];
        let mut value: Value = serde_json::from_str(line).expect("the log is JSON");
        let mut at = usize::from(u16::from_be_bytes([high, low])) % leaves(&value).max(1);
        edit_leaf(&mut value, &mut at, change);
        *line = value.to_string();
    }
    Some((lines.join("\n") + "\n").into_bytes())
}

/// The number of leaves in a JSON value: scalars, empty lists and empty objects.
fn leaves(value: &Value) -> usize {
    match value {
        Value::Array(list) if !list.is_empty() => list.iter().map(leaves).sum(),
        Value::Object(table) if !table.is_empty() => table.values().map(leaves).sum(),
        _ => 1,
    }
}

fn edit_leaf(value: &mut Value, at: &mut usize, change: u8) -> bool {
    let inside: Vec<&mut Value> = match value {
        Value::Array(list) if !list.is_empty() => {
            // A list may also lose its end, or have it twice.
            if *at == 0 && change >= 250 {
                let last = list.last().cloned();
                if change.is_multiple_of(2) {
                    list.extend(last);
                } else {
                    list.truncate(list.len() - 1);
                }
                return true;
            }
            list.iter_mut().collect()
        }
        Value::Object(table) if !table.is_empty() => table.values_mut().collect(),
        leaf => {
            if *at > 0 {
                *at -= 1;
                return false;
            }
            *leaf = changed(leaf, change);
            return true;
        }
    };
    inside.into_iter().any(|value| edit_leaf(value, at, change))
}

fn changed(leaf: &Value, change: u8) -> Value {
    let pick = usize::from(change) % 20;
    match (leaf, NUMBERS.get(pick)) {
        (Value::Number(_), Some(number)) => Value::from(*number),
        (Value::Number(number), None) => match (number.as_u64(), pick % 4) {
            (Some(number), 0) => Value::from(number.wrapping_add(1)),
            (Some(number), 1) => Value::from(number.wrapping_sub(1)),
            (Some(number), 2) => Value::from(number.wrapping_mul(2)),
            (Some(number), _) => Value::from(number.wrapping_mul(1_000_003)),
            (None, _) => Value::from(f64::from(change) * 1e300),
        },
        (Value::String(text), _) if pick.is_multiple_of(2) => Value::from(format!("{text}9")),
        (Value::String(_), Some(number)) => Value::from(number.to_string()),
        (Value::Bool(is), _) => Value::from(!is),
        (Value::Null, Some(number)) => Value::from(*number),
        _ => Value::Null,
    }
}
