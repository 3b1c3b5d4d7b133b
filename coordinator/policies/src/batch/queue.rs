//! Jobs without a foreground and jobs with one, each in the order in which a pass needs them.

use std::collections::BTreeSet;

use dormouse_units::{Span, Time};

use dormouse_units::TaskId;

/// A job that has no foreground: waiting or in the background.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: TaskId,
    pub(crate) processes: u32,
    pub(crate) estimate: Span,
}

/// Waiting jobs by estimate, then order of submission: the order of SJF.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shortest(BTreeSet<(Span, TaskId, u32)>);

impl Shortest {
    pub(crate) fn add(&mut self, c: &Candidate) {
        self.0.insert((c.estimate, c.id, c.processes));
    }

    pub(crate) fn remove(&mut self, c: &Candidate) {
        self.0.remove(&(c.estimate, c.id, c.processes));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All jobs that fit into `room` processors, shortest first, each using up its part of the
    /// room.
    pub(crate) fn fitting(&self, mut room: usize) -> Vec<(TaskId, u32)> {
        let mut chosen = Vec::new();
        for &(_, id, processes) in &self.0 {
            if room == 0 {
                break;
            }
            if processes as usize <= room {
                room -= processes as usize;
                chosen.push((id, processes));
            }
        }
        chosen
    }
}

impl<'a> FromIterator<&'a Candidate> for Shortest {
    fn from_iter<I: IntoIterator<Item = &'a Candidate>>(candidates: I) -> Self {
        Self(candidates.into_iter().map(|c| (c.estimate, c.id, c.processes)).collect())
    }
}

/// A job in the foreground, and when it is expected to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ending {
    pub(crate) at: Time,
    pub(crate) id: TaskId,
    pub(crate) processes: u32,
}

/// Foreground jobs in the order in which they are expected to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Endings(Vec<Ending>);

impl Endings {
    pub(crate) fn add(&mut self, ending: Ending) {
        let at = self.0.partition_point(|e| *e < ending);
        self.0.insert(at, ending);
    }

    pub(crate) fn remove(&mut self, ending: Ending) {
        if let Ok(at) = self.0.binary_search(&ending) {
            self.0.remove(at);
        }
    }

    pub(crate) fn in_order(&self) -> &[Ending] {
        &self.0
    }
}
