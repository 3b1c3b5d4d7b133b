//! The name of a task, safe to be part of a path.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{Result, WorkspaceError};

/// Names of a task and of its run. Both come over the network, so they are checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "UncheckedName")]
pub struct TaskName {
    run: String,
    task: String,
}

#[derive(Deserialize)]
struct UncheckedName {
    run: String,
    task: String,
}

impl TaskName {
    /// Makes the name of the task `task` of the run `run`.
    ///
    /// # Errors
    ///
    /// One of the names can't be the name of a directory.
    pub fn new(run: impl Into<String>, task: impl Into<String>) -> Result<Self> {
        Ok(Self { run: check_name("run", run.into())?, task: check_name("task", task.into())? })
    }

    /// Returns the name of the run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns the name of the task.
    #[must_use]
    pub fn task(&self) -> &str {
        &self.task
    }

    /// Returns the relative path `<run>/<task>`.
    pub(crate) fn relative_path(&self) -> PathBuf {
        PathBuf::from(&self.run).join(&self.task)
    }
}

impl TryFrom<UncheckedName> for TaskName {
    type Error = WorkspaceError;

    fn try_from(unchecked: UncheckedName) -> Result<Self> {
        Self::new(unchecked.run, unchecked.task)
    }
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.run, self.task)
    }
}

fn check_name(what: &'static str, name: String) -> Result<String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=100).contains(&name.len()) && !name.starts_with('.') && name.chars().all(fine) {
        Ok(name)
    } else {
        Err(WorkspaceError::Name { what, name })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_their_place_are_refused() {
        assert_eq!(TaskName::new("j60-1", "t_7.a").unwrap().to_string(), "j60-1/t_7.a");
        for bad in ["", "..", ".x", "a/b", "a b", "ä", &"x".repeat(101)] {
            assert!(TaskName::new("run", bad).is_err(), "{bad}");
            assert!(TaskName::new(bad, "task").is_err(), "{bad}");
        }
        let json = r#"{"run":"r","task":"../x"}"#;
        assert!(serde_json::from_str::<TaskName>(json).is_err());
    }
}
