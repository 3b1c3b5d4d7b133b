//! Assignments of attempts to hosts: whose checkpoints and contents are accepted, and which hosts may fetch them.
//!
//! A worker restores what it fetches, as root. So a checkpoint is stored only if it comes from the host and the attempt
//! that run its task, and is sent only to a host that was told to begin with it. A caller's certificate says which host
//! it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blake3::Hash;
use dormouse_model::TaskStart;
use dormouse_tasks::limits::largest_checkpoint;
use dormouse_tasks::own::{FileRef, OwnProgram};
use dormouse_units::{Attempt, Bytes, CheckpointSeq, HostId, TaskId};

use crate::protocol::handed::{CompleteProgram, HandedOutputs};

/// Attempts that hosts were told to run and that haven't ended: what a host may store and fetch depends on them.
#[derive(Debug, Default)]
pub(crate) struct AttemptAssignments {
    table: Mutex<BTreeMap<TaskId, AssignedAttempt>>,
    /// Users' own programs by task.
    programs: BTreeMap<TaskId, Arc<OwnProgram>>,
    /// Outputs of tasks that are inputs of other tasks.
    handed: Arc<HandedOutputs>,
}

#[derive(Clone, Debug)]
struct AssignedAttempt {
    host: HostId,
    attempt: Attempt,
    /// Numbers of the checkpoint with which the attempt begins and of older ones that it may use if that is damaged;
    /// empty: it begins from scratch.
    from: BTreeSet<u32>,
    /// Largest size of the task's checkpoints.
    most: Bytes,
    /// Bytes of contents that were sent since the task's last checkpoint.
    sent: u64,
}

/// Reasons why a host isn't sent a checkpoint.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotGiven {
    /// The host wasn't told to begin a task with this checkpoint.
    #[error("{host} may not have checkpoint {number} of {task}: {why}")]
    Refused { host: HostId, task: TaskId, number: u32, why: String },
    /// No worker has reported that the checkpoint of this number is complete, whatever is stored.
    #[error("the log has no checkpoint {number} of {task}")]
    NotLogged { task: TaskId, number: u32 },
}

impl AttemptAssignments {
    /// Makes the table without attempts; `programs` are users' own programs by task.
    pub(crate) fn new(programs: BTreeMap<TaskId, Arc<OwnProgram>>) -> Self {
        let handed = Arc::new(HandedOutputs::new(programs.values()));
        Self { table: Mutex::default(), programs, handed }
    }

    /// Returns the outputs of tasks that are inputs of other tasks.
    pub(crate) const fn handed(&self) -> &Arc<HandedOutputs> {
        &self.handed
    }

    /// Returns a task's own program, with the files that other tasks hand to it; `None` if the task runs a program of
    /// `dormouse-task`.
    pub(crate) fn program_of(&self, task: TaskId) -> Option<CompleteProgram> {
        self.programs.get(&task).map(|program| self.handed.complete(program))
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<TaskId, AssignedAttempt>> {
        // Every change of it is whole, whoever panicked with it.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a host is told to run an attempt, which replaces an earlier one; `logged` are the task's
    /// checkpoints in the log.
    pub(crate) fn assign_attempt(
        &self,
        start: &TaskStart,
        logged: impl Iterator<Item = CheckpointSeq>,
    ) {
        let &TaskStart { host, attempt, from, memory, .. } = start;
        let newest = from.map_or(0, |(seq, _)| seq.get());
        let from = logged.map(CheckpointSeq::get).filter(|&number| number <= newest).collect();
        let processes = start.seats.cpus.len() as u64;
        let directory = self.programs.get(&start.task).map(|program| program.quota);
        let most = largest_checkpoint(memory, processes, directory.unwrap_or_default());
        let assigned = AssignedAttempt { host, attempt, from, most, sent: 0 };
        let mut table = self.table();
        if table.get(&start.task).is_none_or(|known| known.attempt < attempt) {
            table.insert(start.task, assigned);
        }
    }

    /// Records that a host is told to run a task again for a check: it may fetch the inputs and send outputs of at
    /// most `most` bytes, but no checkpoint.
    pub(crate) fn told_check(&self, host: HostId, (task, attempt): (TaskId, Attempt), most: Bytes) {
        let assigned = AssignedAttempt { host, attempt, from: BTreeSet::new(), most, sent: 0 };
        self.table().insert(task, assigned);
    }

    /// Removes the attempts of the given tasks, except the given attempt of each that continues.
    pub(crate) fn drop_attempts(&self, tasks: impl Iterator<Item = (TaskId, Option<Attempt>)>) {
        let mut tasks = tasks.peekable();
        if tasks.peek().is_none() {
            return;
        }
        let mut table = self.table();
        for (task, goes_on) in tasks {
            if table.get(&task).is_some_and(|at| Some(at.attempt) != goes_on) {
                table.remove(&task);
            }
        }
    }

    /// Checks that this host may store a checkpoint of this attempt; returns its largest size.
    ///
    /// # Errors
    ///
    /// Another host or attempt runs the task, or none does.
    pub(crate) fn may_store(
        &self,
        host: HostId,
        (task, attempt): (TaskId, Attempt),
    ) -> Result<Bytes, String> {
        match self.table().get(&task) {
            Some(at) if at.host == host && at.attempt == attempt => Ok(at.most),
            other => Err(format!(
                "{host} may not store a checkpoint of attempt {} of {task}: {}",
                attempt.get(),
                describe_assigned(other)
            )),
        }
    }

    /// Counts a content that a host wants to send for this attempt. It may send as much as its next checkpoint can
    /// hold, and the same again for its outputs.
    ///
    /// # Errors
    ///
    /// Another host or attempt runs the task, or none does; or it has sent too much.
    pub(crate) fn may_send(
        &self,
        host: HostId,
        (task, attempt): (TaskId, Attempt),
        bytes: u64,
    ) -> Result<(), String> {
        self.may_store(host, (task, attempt))?;
        let mut table = self.table();
        let Some(at) = table.get_mut(&task) else {
            return Err("no host runs that attempt".to_owned());
        };
        let most = at.most.get().saturating_mul(2);
        let sent = at.sent.saturating_add(bytes);
        if sent > most {
            return Err(format!(
                "attempt {} of {task} has sent {sent} bytes of contents since its last checkpoint, and {most} are \
                 twice what its memory and its directory hold",
                attempt.get()
            ));
        }
        at.sent = sent;
        Ok(())
    }

    /// Resets the count of sent contents of a task, whose checkpoint is stored.
    pub(crate) fn checkpoint_stored(&self, task: TaskId) {
        if let Some(at) = self.table().get_mut(&task) {
            at.sent = 0;
        }
    }

    /// Returns whether a content is an input of a task that this host runs.
    ///
    /// # Errors
    ///
    /// Another host runs the task, or none does.
    pub(crate) fn is_input(
        &self,
        host: HostId,
        task: TaskId,
        digest: &str,
    ) -> Result<bool, String> {
        self.may_have(host, task)?;
        let program = self.program_of(task);
        Ok(program.is_some_and(|it| it.program.inputs.iter().any(|input| input.digest == digest)))
    }

    /// Returns the digests and lengths in bytes of these inputs of a task that this host runs.
    ///
    /// # Errors
    ///
    /// Another host runs the task, or none does; or one of them isn't its input.
    pub(crate) fn find_inputs(
        &self,
        host: HostId,
        task: TaskId,
        asked: &[Hash],
    ) -> Result<Vec<(Hash, u64)>, String> {
        self.may_have(host, task)?;
        let whole = self.program_of(task);
        let inputs = whole.as_ref().map_or(&[][..], |whole| &whole.program.inputs);
        let length = |input: &FileRef| Some((Hash::from_hex(&input.digest).ok()?, input.bytes));
        let known: HashMap<_, _> = inputs.iter().filter_map(length).collect();
        let found = asked.iter().map(|digest| {
            let bytes = known.get(digest).copied();
            bytes.map(|bytes| (*digest, bytes)).ok_or_else(|| {
                format!("{host} may not have the content {digest}: it is not an input of {task}")
            })
        });
        found.collect()
    }

    /// Checks that this host may fetch contents of a task.
    fn may_have(&self, host: HostId, task: TaskId) -> Result<(), String> {
        match self.table().get(&task) {
            Some(at) if at.host == host => Ok(()),
            other => {
                let who = describe_assigned(other);
                Err(format!("{host} may not have contents of {task}: {who}"))
            }
        }
    }

    /// Checks that this host may fetch a checkpoint of a task: the one with which it begins, or an older one if that
    /// is damaged. The log must have an older one: a worker may have stored a checkpoint without reporting it, and a
    /// task restored from it would be in a state that no log explains.
    ///
    /// # Errors
    ///
    /// The host doesn't run the task, or begins it with an older checkpoint or none; or the log has no such
    /// checkpoint.
    pub(crate) fn may_fetch(
        &self,
        host: HostId,
        task: TaskId,
        number: u32,
    ) -> Result<(), NotGiven> {
        let table = self.table();
        let at = table.get(&task);
        let newest = at.and_then(|at| at.from.last());
        match at {
            Some(at) if at.host == host && at.from.contains(&number) => Ok(()),
            Some(at) if at.host == host && newest.is_some_and(|&newest| number < newest) => {
                Err(NotGiven::NotLogged { task, number })
            }
            _ => {
                let from = match (at, newest) {
                    (Some(_), Some(newest)) => format!(" from checkpoint {newest}"),
                    (Some(_), None) => " from scratch".to_owned(),
                    (None, _) => String::new(),
                };
                let why = format!("{}{from}", describe_assigned(at));
                Err(NotGiven::Refused { host, task, number, why })
            }
        }
    }
}

fn describe_assigned(assigned: Option<&AssignedAttempt>) -> String {
    match assigned {
        Some(AssignedAttempt { host, attempt, .. }) => {
            format!("{host} runs attempt {}", attempt.get())
        }
        None => "no host runs that attempt".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Mode, Ppm, Seats, Span, VmId};

    use super::*;

    fn start(host: u32, task: u32, attempt: Attempt, from: Option<u32>) -> TaskStart {
        TaskStart {
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

    /// Assigns an attempt, where the log has the first checkpoint and the one with which the attempt begins.
    fn told(all: &AttemptAssignments, start: &TaskStart) {
        let newest = start.from.map(|(seq, _)| seq);
        all.assign_attempt(start, newest.into_iter().chain([CheckpointSeq::new(1)]));
    }

    #[test]
    fn only_who_runs_an_attempt_stores_and_only_who_begins_with_it_fetches() {
        let (all, task) = (AttemptAssignments::default(), TaskId::new(7));
        let (one, two) = (HostId::new(1), HostId::new(2));
        let first = Attempt::default().next();
        let second = first.next();
        assert!(all.may_store(one, (task, first)).is_err());
        told(&all, &start(1, 7, first, None));
        assert_eq!(
            all.may_store(one, (task, first)),
            Ok(largest_checkpoint(Bytes::ZERO, 1, Bytes::ZERO))
        );
        let no = all.may_store(two, (task, first)).expect_err("another host");
        assert!(no.contains("runs attempt 1"), "{no}");
        assert!(all.may_store(one, (task, second)).is_err());
        assert!(all.may_store(one, (TaskId::new(8), first)).is_err());
        let no = all.may_fetch(one, task, 1).expect_err("it begins from scratch");
        assert!(no.to_string().contains("from scratch"), "{no}");
        told(&all, &start(2, 7, second, Some(2)));
        // What a host that comes back was told once does not bring a former attempt back.
        told(&all, &start(1, 7, first, None));
        assert!(all.may_store(one, (task, first)).is_err());
        assert!(all.may_store(two, (task, second)).is_ok());
        assert_eq!((all.may_fetch(two, task, 2), all.may_fetch(two, task, 1)), (Ok(()), Ok(())));
        assert!(all.may_fetch(two, task, 3).is_err() && all.may_fetch(one, task, 2).is_err());
        assert_eq!(all.is_input(two, task, "aa"), Ok(false));
        assert!(all.is_input(one, task, "aa").is_err());
        all.drop_attempts([(task, Some(second)), (TaskId::new(8), None)].into_iter());
        assert!(all.may_store(two, (task, second)).is_ok(), "it goes on");
        all.drop_attempts([(task, Some(second.next()))].into_iter());
        assert!(all.may_store(two, (task, second)).is_err(), "another one does");
        told(&all, &start(2, 7, second, Some(2)));
        all.drop_attempts([(task, None)].into_iter());
        assert!(
            all.may_store(two, (task, second)).is_err() && all.may_fetch(two, task, 2).is_err(),
            "none does"
        );
    }

    #[test]
    fn what_a_worker_has_stored_and_never_said_is_given_to_nobody() {
        let (all, task, host) = (AttemptAssignments::default(), TaskId::new(7), HostId::new(1));
        let attempt = Attempt::default().next();
        told(&all, &start(1, 7, attempt, Some(3)));
        let may = |number| all.may_fetch(host, task, number);
        assert_eq!((may(3), may(1)), (Ok(()), Ok(())));
        assert_eq!(may(2), Err(NotGiven::NotLogged { task, number: 2 }));
        let newer = may(4).expect_err("it begins with an older one").to_string();
        assert!(newer.contains("from checkpoint 3"), "{newer}");
        assert!(matches!(all.may_fetch(HostId::new(2), task, 2), Err(NotGiven::Refused { .. })));
    }

    #[test]
    fn what_an_attempt_sends_is_bounded_by_what_it_may_hold() {
        let input = |digest: &str| dormouse_tasks::own::FileRef {
            path: "a".to_owned(),
            digest: digest.to_owned(),
            bytes: 1,
            executable: false,
        };
        let program = OwnProgram {
            argv: vec!["./a".to_owned()],
            env: BTreeMap::new(),
            inputs: vec![input("aa")],
            handed: Vec::new(),
            outputs: Vec::new(),
            mounts: Vec::new(),
            quota: Bytes::new(50),
            processes: 1,
            saves: dormouse_tasks::own::Saves::Criu,
            verify: None,
            deterministic: false,
        };
        let (task, one) = (TaskId::new(7), HostId::new(1));
        let all = AttemptAssignments::new(BTreeMap::from([(task, Arc::new(program))]));
        let attempt = Attempt::default().next();
        told(&all, &start(1, 7, attempt, None));
        let most = largest_checkpoint(Bytes::ZERO, 1, Bytes::new(50)).get();
        assert_eq!(all.may_store(one, (task, attempt)), Ok(Bytes::new(most)));
        assert_eq!(all.may_send(one, (task, attempt), 2 * most), Ok(()));
        let no = all.may_send(one, (task, attempt), 1).expect_err("too much");
        assert!(no.contains("since its last checkpoint"), "{no}");
        all.checkpoint_stored(task);
        assert_eq!(all.may_send(one, (task, attempt), 1), Ok(()));
        assert!(all.may_send(HostId::new(2), (task, attempt), 1).is_err());
        let input = |digest| all.is_input(one, task, digest);
        assert_eq!([input("aa"), input("bb")], [Ok(true), Ok(false)]);
    }
}
