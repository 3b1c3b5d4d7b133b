//! Checks that a finished run leaves nothing behind.

use std::fs;
use std::io;
use std::path::Path;

use super::Broken;
use crate::invariant::Invariant;

/// Names of the files that a finished run may leave in its folder.
const MAY_STAY: &[&str] = &["events.jsonl", "seal.json"];

/// Checks the folder of a finished run.
///
/// # Errors
///
/// The folder holds something else.
pub fn leftovers(folder: &Path) -> Result<(), Broken> {
    let broken = |why: String| (Invariant::NothingLeft, why);
    let entries = fs::read_dir(folder).map_err(|error| broken(error.to_string()))?;
    let names: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
    let mut names = names.map_err(|error| broken(error.to_string()))?;
    names.retain(|name| !MAY_STAY.iter().any(|may| name == may));
    names.sort();
    if names.is_empty() {
        return Ok(());
    }
    Err(broken(format!("in the run's folder: {names:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_may_stay_and_a_checkpoint_may_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("events.jsonl"), "").expect("room");
        assert_eq!(leftovers(folder.path()), Ok(()));
        fs::create_dir(folder.path().join("checkpoints")).expect("room");
        let (invariant, why) = leftovers(folder.path()).expect_err("it is left");
        assert_eq!(invariant, Invariant::NothingLeft);
        assert!(why.contains("checkpoints"), "{why}");
    }
}
