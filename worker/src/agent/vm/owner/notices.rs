//! Programs that save their work at a notice, and how they hear of it beside the metadata.

use std::{collections::BTreeSet, path::Path};

use dormouse_proto::v1::{SavesAtNotice, StartTask, own_program::Saves};
use dormouse_tasks::supervisor::WORK;
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::Owner;
use crate::{agent::report::explain, metadata::leave_notice};

/// How the program of an order hears of a notice, if it saves its work then.
pub(super) fn at_notice(order: &StartTask) -> Option<&SavesAtNotice> {
    match order.own.as_ref()?.saves.as_ref()? {
        Saves::AtNotice(how) => Some(how),
        Saves::ByCriu(_) | Saves::ByItself(_) | Saves::ByNothing(_) => None,
    }
}

impl Owner {
    /// Tells the programs that save their work at a notice of it: first the file that they want is made, then they have
    /// their signal, so that whoever has that finds the file.
    pub(super) fn tell_programs(&self, notice: &str) {
        for attempt in &self.attempts {
            let Some(how) = at_notice(&attempt.order) else { continue };
            // One that has ended saves no more, and its check is not to be told.
            if !self.lives.is_running(attempt.key) || attempt.own_end.is_some() {
                continue;
            }
            if !how.file.is_empty() {
                let directory = self.host.workspace().task(&attempt.name);
                make_file(&directory.join(WORK), &how.file, notice);
            }
            if let (Ok(signal), Some(parent)) = (Signal::try_from(how.signal), &attempt.process) {
                let parent = parent.pid();
                let seats = self.seats_of(attempt.key);
                let pids = seats.iter().map(|seat| self.groups.slot_pids(seat.vcpu, seat.slot));
                let pids: BTreeSet<i32> = pids.flat_map(Result::unwrap_or_default).collect();
                // The parent is the worker's own: it would end by it.
                pids.into_iter().filter(|pid| *pid != parent).for_each(|pid| send(pid, signal));
            }
        }
    }
}

fn make_file(directory: &Path, file: &str, notice: &str) {
    if let Err(error) = leave_notice(directory, file, notice) {
        tracing::warn!(
            file,
            why = explain(&error),
            "a program is not told of a notice by its file"
        );
    }
}

fn send(pid: i32, signal: Signal) {
    match kill(Pid::from_raw(pid), signal) {
        // It has ended since it was listed.
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => {
            tracing::warn!(pid, %error, "a program is not told of a notice by its signal");
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_proto::v1::{Nothing, OwnProgram};

    use super::*;

    #[test]
    fn only_who_saves_at_a_notice_is_told() {
        let order = |saves| {
            let own = Some(OwnProgram { saves, ..OwnProgram::default() });
            StartTask { own, ..StartTask::default() }
        };
        let how = SavesAtNotice { signal: 10, file: "notice".to_owned() };
        assert_eq!(at_notice(&order(Some(Saves::AtNotice(how.clone())))), Some(&how));
        assert_eq!(at_notice(&order(Some(Saves::ByItself(Nothing {})))), None);
        assert_eq!(at_notice(&order(None)), None);
        assert_eq!(at_notice(&StartTask::default()), None);
    }
}
