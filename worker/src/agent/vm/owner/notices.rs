//! Programs that save their work at a notice, and how they are notified beside the metadata endpoint.

use dormouse_proto::v1::{SavesAtNotice, StartTask, own_program::Saves};

use super::VmOwner;
use crate::agent::machine::ProgramNotice;

/// Returns how the program of an order is notified, if it saves its work at a notice.
pub(super) fn at_notice(order: &StartTask) -> Option<&SavesAtNotice> {
    match order.own.as_ref()?.saves.as_ref()? {
        Saves::AtNotice(how) => Some(how),
        Saves::ByCriu(_) | Saves::ByItself(_) | Saves::ByNothing(_) => None,
    }
}

impl VmOwner {
    /// Notifies programs that save their work at a notice: first creates the file that a program asks for, then sends
    /// the program its signal.
    pub(super) fn tell_programs(&self, notice: &str) {
        for attempt in &self.attempts {
            let Some(how) = at_notice(&attempt.order) else { continue };
            // One that has ended saves no more, and its check is not to be told.
            if !self.lives.is_running(attempt.key) || attempt.own_end.is_some() {
                continue;
            }
            let parent = attempt.process.as_ref().map(|process| process.pid());
            let (name, seats) = (&attempt.name, &self.seats_of(attempt.key)[..]);
            self.machine.notify_program(&ProgramNotice { name, how, notice, seats, parent });
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
