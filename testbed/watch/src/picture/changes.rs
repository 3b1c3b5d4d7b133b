//! Changes of a picture, as lines of JSON.

use dormouse_units::Time;
use serde::Serialize;

/// Changes, each a JSON array whose first element is its name and whose second is the emulated time in
/// seconds. The page knows them by their places:
///
/// - `["host", t, host, name, vcpus, memory_bytes]`, each null where it has no limit; `["host-lost", t, host, why]`
/// - `["vm", t, vm, type, market, vcpus, host, usd_per_hour, bid, tenant]`: it boots
/// - `["vm-state", t, vm, state]`: `running`, `hibernating`, `hibernated`, `resuming` or `notice`
/// - `["vm-end", t, vm, why]`
/// - `["price", t, type, usd_per_hour]`, `["credits", t, vm, balance]`, `["available", t, type, n]`
/// - `["submit", t, task, number, processes, name]`: it is there, and waits
/// - `["start", t, task, attempt, vm, [vcpu, …], tier, reason, part, mode]`
/// - `["mode", t, task, mode]`
/// - `["stop", t, task, attempt, how]`: `done`, `failed`, `stopped`, `dropped`, `vm-gone` or `moved`
/// - `["checkpoint", t, task, vm, bytes, real_held_s, part]`
/// - `["act", t, action, target, [vm, …], by]`
/// - `["fidelity", t, task, promised_s, took_s]`
/// - `["sample", t, waiting, running, done, spot, on_demand, cost_usd, usd_per_hour, failed]`
/// - `["over", t, complete, cancelled]`
#[derive(Clone, Debug, Default)]
pub struct PictureChanges {
    /// All changes one after the other, each followed by a comma.
    text: Vec<u8>,
    /// End of each change in the text.
    ends: Vec<usize>,
}

impl PictureChanges {
    /// Number of changes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no changes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a change, given as a tuple.
    pub(crate) fn say(&mut self, change: impl Serialize) {
        // Tuples of numbers and texts can always be written to memory.
        if serde_json::to_writer(&mut self.text, &change).is_ok() {
            self.text.push(b',');
            self.ends.push(self.text.len());
        } else {
            let whole = self.ends.last().copied().unwrap_or_default();
            self.text.truncate(whole);
        }
    }

    /// At most `at_most` changes from index `from` on as a JSON array, with the index after the
    /// last.
    #[must_use]
    pub fn batch(&self, from: usize, at_most: usize) -> (String, usize) {
        let until = from.saturating_add(at_most).min(self.len());
        let Some(last) = until.checked_sub(1).filter(|_| from < until) else {
            return ("[]".to_owned(), from.min(self.len()));
        };
        let begin = from.checked_sub(1).map_or(0, |before| self.ends[before]);
        let inner = &self.text[begin..self.ends[last] - 1];
        (format!("[{}]", String::from_utf8_lossy(inner)), until)
    }
}

/// A time in seconds.
pub(crate) fn seconds(at: Time) -> f64 {
    at.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_arrays_of_the_changes_between_two_indices() {
        let mut changes = PictureChanges::default();
        assert_eq!(changes.batch(0, 10), ("[]".to_owned(), 0));
        changes.say(("price", 1.5, "c3", 0.1));
        changes.say(("vm-end", 2.0, 3, "a, \"b\""));
        changes.say(("over", 3.0, true, None::<&str>));
        let all = r#"[["price",1.5,"c3",0.1],["vm-end",2.0,3,"a, \"b\""],["over",3.0,true,null]]"#;
        assert_eq!(changes.batch(0, 10), (all.to_owned(), 3));
        assert_eq!(changes.batch(1, 1), (r#"[["vm-end",2.0,3,"a, \"b\""]]"#.to_owned(), 2));
        assert_eq!(changes.batch(3, 1), ("[]".to_owned(), 3));
        assert_eq!(changes.batch(99, 1), ("[]".to_owned(), 3));
    }
}
