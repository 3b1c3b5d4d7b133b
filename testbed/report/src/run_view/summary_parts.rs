//! What summaries of runs of any work have in common.

use dormouse_analysis::RunRecord;
use serde_json::{Value, json};

/// Leaves out those of these keys that the run has nothing for.
pub(super) fn leave_out(summary: &mut Value, keys: &[&str]) {
    if let Some(summary) = summary.as_object_mut() {
        summary.retain(|key, value| !value.is_null() || !keys.contains(&key.as_str()));
    }
}

/// Why checkpoints failed, the most frequent reason first; `None` where none did.
pub(super) fn checkpoint_failures(record: &RunRecord) -> Option<Value> {
    let failures = by_count(record).into_iter();
    let values = failures.map(|(why, count)| json!({"why": why, "count": count}));
    (!record.checkpoint_failures.is_empty()).then(|| values.collect())
}

/// The reasons for which checkpoints failed, the most frequent first.
pub(super) fn by_count(record: &RunRecord) -> Vec<(&str, u32)> {
    let reasons = record.checkpoint_failures.iter();
    let mut reasons: Vec<_> = reasons.map(|(why, count)| (why.as_str(), *count)).collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons
}
