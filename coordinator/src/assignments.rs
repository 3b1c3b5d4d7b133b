//! Who was told to run what: whose checkpoints are taken in, and who may have them.
//!
//! A worker restores what it fetches, as root. So a checkpoint is stored only if it comes from the
//! host and the attempt that run its task, and given only to a host that was told to begin with it.
//! The secret says that a caller is a worker of the run; which of them, it says itself.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dormouse_model::StartTask;
use dormouse_units::{Attempt, HostId, TaskId};

/// The attempts that hosts were told to run and that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Assignments(Mutex<BTreeMap<TaskId, Assigned>>);

#[derive(Clone, Copy, Debug)]
struct Assigned {
    host: HostId,
    attempt: Attempt,
    /// The number of the checkpoint that it begins with; zero: from scratch.
    from: u32,
}

impl Assignments {
    fn table(&self) -> MutexGuard<'_, BTreeMap<TaskId, Assigned>> {
        // Every change of it is whole, whoever panicked with it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A host is told to run an attempt. An earlier one of the task is over.
    pub(crate) fn told(&self, start: &StartTask) {
        let &StartTask { host, attempt, from, .. } = start;
        let assigned = Assigned { host, attempt, from: from.map_or(0, |(seq, _)| seq.get()) };
        let mut table = self.table();
        let known = table.entry(start.task).or_insert(assigned);
        if known.attempt < attempt {
            *known = assigned;
        }
    }

    /// Drops the attempts that have ended.
    pub(crate) fn keep(&self, goes_on: impl Fn(TaskId, Attempt) -> bool) {
        self.table().retain(|&task, assigned| goes_on(task, assigned.attempt));
    }

    /// Whether a checkpoint of this attempt may come from this host.
    ///
    /// # Errors
    ///
    /// In words: another host or attempt runs the task, or nobody does.
    pub(crate) fn may_store(
        &self,
        host: HostId,
        (task, attempt): (TaskId, Attempt),
    ) -> Result<(), String> {
        match self.table().get(&task) {
            Some(at) if at.host == host && at.attempt == attempt => Ok(()),
            other => Err(format!(
                "{host} may not store a checkpoint of attempt {} of {task}: {}",
                attempt.get(),
                who(other)
            )),
        }
    }

    /// Whether this host may have this checkpoint of a task: the one that it begins with, or, if
    /// that is damaged, an older one.
    ///
    /// # Errors
    ///
    /// In words: the host does not run the task, or begins it with an older checkpoint or none.
    pub(crate) fn may_fetch(&self, host: HostId, task: TaskId, number: u32) -> Result<(), String> {
        match self.table().get(&task) {
            Some(at) if at.host == host && number <= at.from => Ok(()),
            other => {
                let from = match other {
                    Some(Assigned { from: 0, .. }) => " from scratch".to_owned(),
                    Some(Assigned { from, .. }) => format!(" from checkpoint {from}"),
                    None => String::new(),
                };
                let who = who(other);
                Err(format!("{host} may not have checkpoint {number} of {task}: {who}{from}"))
            }
        }
    }
}

fn who(assigned: Option<&Assigned>) -> String {
    match assigned {
        Some(Assigned { host, attempt, .. }) => format!("{host} runs attempt {}", attempt.get()),
        None => "no host runs it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Bytes, CheckpointSeq, Mode, Ppm, Seats, Span, VmId};

    use super::*;

    fn start(host: u32, task: u32, attempt: Attempt, from: Option<u32>) -> StartTask {
        StartTask {
            host: HostId::new(host),
            seats: Seats::first_free(VmId::new(1)),
            task: TaskId::new(task),
            attempt,
            memory: Bytes::ZERO,
            runtime: Span::ZERO,
            from: from.map(|seq| (CheckpointSeq::new(seq), Ppm::ZERO)),
            from_attempt: Attempt::default(),
            checkpoints: Vec::new(),
            checkpoint_cost: Span::ZERO,
            job: None,
            mode: Mode::Burst,
        }
    }

    #[test]
    fn only_who_runs_an_attempt_stores_and_only_who_begins_with_it_fetches() {
        let (all, task) = (Assignments::default(), TaskId::new(7));
        let (one, two) = (HostId::new(1), HostId::new(2));
        let first = Attempt::default().next();
        let second = first.next();
        assert!(all.may_store(one, (task, first)).is_err());
        all.told(&start(1, 7, first, None));
        assert_eq!(all.may_store(one, (task, first)), Ok(()));
        let no = all.may_store(two, (task, first)).expect_err("another host");
        assert!(no.contains("runs attempt 1"), "{no}");
        assert!(all.may_store(one, (task, second)).is_err());
        assert!(all.may_store(one, (TaskId::new(8), first)).is_err());
        let no = all.may_fetch(one, task, 1).expect_err("it begins from scratch");
        assert!(no.contains("from scratch"), "{no}");
        all.told(&start(2, 7, second, Some(2)));
        // What a host that comes back was told once does not bring a former attempt back.
        all.told(&start(1, 7, first, None));
        assert!(all.may_store(one, (task, first)).is_err());
        assert_eq!(all.may_store(two, (task, second)), Ok(()));
        assert_eq!((all.may_fetch(two, task, 2), all.may_fetch(two, task, 1)), (Ok(()), Ok(())));
        assert!(all.may_fetch(two, task, 3).is_err() && all.may_fetch(one, task, 2).is_err());
        all.keep(|_, attempt| attempt != second);
        assert!(
            all.may_store(two, (task, second)).is_err() && all.may_fetch(two, task, 2).is_err()
        );
    }
}
