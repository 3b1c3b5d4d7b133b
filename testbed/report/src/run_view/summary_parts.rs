//! Parts that the summaries of all kinds of runs share.

use dormouse_analysis::RunRecord;
use serde_json::{Value, json};

/// Removes each of the given keys whose value is null.
pub(super) fn leave_out(summary: &mut Value, keys: &[&str]) {
    if let Some(summary) = summary.as_object_mut() {
        summary.retain(|key, value| !value.is_null() || !keys.contains(&key.as_str()));
    }
}

/// Reasons for failed checkpoints, the most frequent first, as JSON; `None` if no checkpoint
/// failed.
pub(super) fn checkpoint_failures(record: &RunRecord) -> Option<Value> {
    let failures = by_count(record).into_iter();
    let values = failures.map(|(why, count)| json!({"why": why, "count": count}));
    (!record.checkpoint_failures.is_empty()).then(|| values.collect())
}

/// Reasons for failed checkpoints with their counts, the most frequent first.
pub(super) fn by_count(record: &RunRecord) -> Vec<(&str, u32)> {
    let reasons = record.checkpoint_failures.iter();
    let mut reasons: Vec<_> = reasons.map(|(why, count)| (why.as_str(), *count)).collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    reasons
}
