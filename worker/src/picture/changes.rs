//! Facts about a process that differ after a restore, in words, with the remedy.

use std::fmt;

use super::process::{IO_PRIORITY, STOP_TOLD, TIMER_SLACK};

/// A fact about a process that differs after a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureChange {
    /// The number of the process in its task's PID namespace.
    pub process: u32,
    /// The name of the process.
    pub name: String,
    /// Name of the fact about the process, such as that of a descriptor.
    pub about: String,
    /// The text of the fact when the checkpoint began; `None`: the fact did not exist.
    pub before: Option<String>,
    /// The text of the fact after the restore; `None`: the fact no longer exists.
    pub after: Option<String>,
}

/// Name of the fact for a process that no longer exists after a restore.
const GONE: &str = "the process itself";

impl PictureChange {
    pub(super) fn new(
        (process, name): (u32, &str),
        about: &str,
        (before, after): (Option<&str>, Option<&str>),
    ) -> Self {
        Self {
            process,
            name: name.to_owned(),
            about: about.to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        }
    }

    /// Makes the change for a process that no longer exists after a restore.
    pub(super) fn process_gone(process: u32, name: &str) -> Self {
        Self::new((process, name), GONE, (Some(name), None))
    }

    /// Returns, in words, what a program can do about this difference that a restore has made.
    fn remedy(&self) -> &'static str {
        let about = self.about.rsplit(": ").next().unwrap_or(&self.about);
        let is_of_descriptor = self.about.starts_with("descriptor ");
        match about {
            STOP_TOLD => {
                "have the parent take a second report of a stop for the first, or send SIGCONT before it waits again"
            }
            IO_PRIORITY | TIMER_SLACK | "nice" | "scheduling policy" | "real-time priority"
            | "cores" => "have it set that again from time to time, or do without",
            "locks" => {
                "have it not map a file into memory that it locks by fcntl(2), or lock it anew"
            }
            "extended attributes" => "keep in a file what the attributes say",
            "timer" | "period" | "clock" => {
                "have it wait with a limit of time, and set the timer again"
            }
            _ if about.starts_with("POSIX timer") => {
                "have it wait with a limit of time, and set the timer again"
            }
            _ if is_of_descriptor
                && about.starts_with(|letter: char| letter.is_ascii_uppercase()) =>
            {
                "have it set the option again from time to time, or open the connection anew"
            }
            _ if is_of_descriptor => "have it open that anew where it fails",
            _ => "have it not rely on that",
        }
    }
}

impl fmt::Display for PictureChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, name, about, before, after } = self;
        write!(f, "process {process} ({name}): ")?;
        let none = "not there";
        let (before, after) = (before.as_deref().unwrap_or(none), after.as_deref().unwrap_or(none));
        if about == GONE {
            write!(f, "is not there any more")?;
        } else if about == STOP_TOLD {
            write!(
                f,
                "a signal has stopped it and waitpid(2) has told its parent, and will tell it once more"
            )?;
        } else {
            write!(f, "{about} was {before}, and is {after}")?;
        }
        write!(f, "; {}", self.remedy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_with_its_remedy() {
        let change = |about, both| PictureChange::new((7, "a"), about, both).to_string();
        let said =
            change("input/output priority", (Some("class 2, level 7"), Some("class 0, level 0")));
        assert_eq!(
            said,
            "process 7 (a): input/output priority was class 2, level 7, and is class 0, level 0; have it set that again from \
             time to time, or do without"
        );
        let said = change("descriptor 5: TCP_USER_TIMEOUT", (Some("9"), Some("0")));
        assert!(
            said.contains(
                "descriptor 5: TCP_USER_TIMEOUT was 9, and is 0; have it set the option again"
            ),
            "{said}"
        );
        let said = change("descriptor 5", (Some("pipe 1"), None));
        assert!(said.contains("was pipe 1, and is not there; have it open that anew"), "{said}");
        let said = change(STOP_TOLD, (Some("told"), Some("to be told")));
        assert!(said.contains("will tell it once more"), "{said}");
    }
}
