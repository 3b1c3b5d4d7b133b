//! Experiment files as strangers write them.

use dormouse_experiment::{Experiment, of_text};

/// An experiment that is accepted reads the same from the log's header, where it is written in resolved form.
pub(crate) fn experiment(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let read = match of_text("/nowhere/fuzz.toml", text) {
        Ok(read) => read,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let header = serde_json::to_string(&read).expect("an experiment is written");
    let again: Experiment = serde_json::from_str(&header).expect("an experiment reads back");
    assert_eq!(again, read);
    let _ = (read.whole_setup(), read.scheduler_name(), read.tenants());
}
