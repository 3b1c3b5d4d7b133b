//! What workers were told to do and have not answered: one that beats but answers nothing would
//! keep its tasks for good. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dormouse_model::{Command, Report};
use dormouse_units::{Attempt, Bytes, Cpus, HostId, Seats, TaskId, Tier, VmId};

/// How long a worker may take to answer a command, real time, if it has no tasks. By itself it
/// gives up a program's birth, a kill and a freeze after 10 s each, and waits for a checkpoint's
/// turn at the coordinator for 5 minutes.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(600);
/// How much longer it may take for each of its tasks, whose turn at CRIU may come before: it gives
/// up a dump and a restore after 30 s each.
const EACH_TASK: Duration = Duration::from_secs(60);
/// And for each byte of their memory, which is copied, or comes over a slow network: bytes a second.
const SLOWEST: u64 = 1 << 20;

/// A command that has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Create,
    Freeze,
    Thaw,
    Destroy,
    Start(TaskId, Attempt),
    Stop(TaskId, Attempt),
    Promote(TaskId, Attempt),
    Move(TaskId, Attempt),
}

impl Asked {
    /// Whether it waits for as long as its VM is frozen.
    const fn rests(self) -> bool {
        matches!(self, Self::Start(..) | Self::Stop(..))
    }

    fn words(self, vm: VmId) -> String {
        match self {
            Self::Create => format!("make {vm}"),
            Self::Freeze => format!("freeze {vm}"),
            Self::Thaw => format!("thaw {vm}"),
            Self::Destroy => format!("destroy {vm}"),
            Self::Start(task, attempt) => format!("start {task} ({attempt}) on {vm}"),
            Self::Stop(task, attempt) => format!("stop {task} ({attempt}) on {vm}"),
            Self::Promote(task, attempt) => format!("promote {task} ({attempt}) on {vm}"),
            Self::Move(task, attempt) => format!("move {task} ({attempt}) on {vm}"),
        }
    }
}

/// What is owed.
#[derive(Debug)]
struct Owed {
    /// The command's number among those that its worker was told.
    number: u64,
    /// For how long it has had no answer.
    waited: Duration,
    /// The vCPUs that a task is moved to; `None` for every other command.
    to: Option<Cpus>,
}

/// Commands, attempts and frozen VMs of one worker.
#[derive(Debug, Default)]
struct Worker {
    owed: BTreeMap<(VmId, Asked), Owed>,
    /// How many commands it was told.
    told: u64,
    /// The memory of each attempt that is there, or is to come.
    attempts: BTreeMap<(VmId, TaskId, Attempt), Bytes>,
    frozen: BTreeSet<VmId>,
}

impl Worker {
    fn forget(&mut self, vm: VmId) {
        self.owed.retain(|(on, _), _| *on != vm);
        self.attempts.retain(|(on, ..), _| *on != vm);
        self.frozen.remove(&vm);
    }

    fn ended(&mut self, vm: VmId, task: TaskId, attempt: Attempt) {
        for asked in [Asked::Start, Asked::Stop, Asked::Promote, Asked::Move] {
            self.owed.remove(&(vm, asked(task, attempt)));
        }
        self.attempts.remove(&(vm, task, attempt));
    }

    /// An attempt that was promoted, or moved, before it began has begun there. One that has begun
    /// elsewhere owes it yet.
    fn began(&mut self, vm: VmId, (task, attempt): (TaskId, Attempt), at: Option<&Seats>) {
        let is_up = at.is_none_or(|at| at.tier == Tier::Foreground);
        let (promoted, moved) = (Asked::Promote(task, attempt), Asked::Move(task, attempt));
        if is_up {
            self.owed.remove(&(vm, promoted));
        }
        let to = self.owed.get(&(vm, moved)).and_then(|owed| owed.to.as_ref());
        if is_up && at.is_none_or(|at| Some(&at.cpus) == to) {
            self.owed.remove(&(vm, moved));
        }
    }

    /// How long it may take.
    fn patience(&self, within: Duration) -> Duration {
        let memory: u64 = self.attempts.values().map(|memory| memory.get() / SLOWEST).sum();
        let tasks = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
        within + EACH_TASK.saturating_mul(tasks) + Duration::from_secs(memory)
    }
}

/// What all workers owe.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    workers: BTreeMap<HostId, Worker>,
}

impl Answers {
    /// A worker is told this.
    pub(crate) fn told(&mut self, command: &Command) {
        let worker = self.workers.entry(command.host()).or_default();
        worker.told += 1;
        let asked = match *command {
            Command::CreateVm { vm, .. } => (vm, Asked::Create),
            Command::FreezeVm { vm, .. } => {
                worker.frozen.insert(vm);
                (vm, Asked::Freeze)
            }
            Command::ThawVm { vm, .. } => {
                worker.frozen.remove(&vm);
                (vm, Asked::Thaw)
            }
            Command::DestroyVm { vm, .. } => {
                // Of all that is there nothing more need be said.
                worker.forget(vm);
                (vm, Asked::Destroy)
            }
            Command::StartTask(ref start) => {
                let vm = start.seats.vm;
                worker.attempts.insert((vm, start.task, start.attempt), start.memory);
                (vm, Asked::Start(start.task, start.attempt))
            }
            // Of one that has said its last word nothing more need be said.
            Command::StopTask { vm, task, attempt, .. }
                if worker.attempts.contains_key(&(vm, task, attempt)) =>
            {
                (vm, Asked::Stop(task, attempt))
            }
            Command::PromoteTask { vm, task, attempt, .. }
                if worker.attempts.contains_key(&(vm, task, attempt)) =>
            {
                (vm, Asked::Promote(task, attempt))
            }
            Command::MoveTask { vm, task, attempt, .. }
                if worker.attempts.contains_key(&(vm, task, attempt)) =>
            {
                (vm, Asked::Move(task, attempt))
            }
            Command::StopTask { .. } | Command::PromoteTask { .. } | Command::MoveTask { .. } => {
                return;
            }
            // One that can't be taken costs nothing: the task runs on.
            Command::SetMode { .. } | Command::CheckpointNow { .. } | Command::SetSupply { .. } => {
                return;
            }
            // A worker that can't have it says so; one that is killed by it can't. To what was
            // announced nothing is answered.
            Command::Fault { .. } | Command::Announce { .. } => return,
        };
        let to = match command {
            Command::MoveTask { on, .. } => Some(on.clone()),
            _ => None,
        };
        worker.owed.insert(asked, Owed { number: worker.told, waited: Duration::ZERO, to });
    }

    /// A worker has said this; of an attempt that has begun, where, if it says so.
    pub(crate) fn heard(&mut self, host: HostId, report: &Report, began: Option<&Seats>) {
        let Some(worker) = self.workers.get_mut(&host) else { return };
        let answered = match *report {
            Report::VmCreated { vm } => (vm, Asked::Create),
            Report::VmFrozen { vm, .. } => (vm, Asked::Freeze),
            Report::VmThawed { vm, .. } => (vm, Asked::Thaw),
            Report::TaskStarted { vm, task, attempt, .. } => {
                worker.began(vm, (task, attempt), began);
                (vm, Asked::Start(task, attempt))
            }
            Report::TaskPromoted { vm, task, attempt, .. } => (vm, Asked::Promote(task, attempt)),
            Report::TaskMoved { vm, task, attempt, .. } => (vm, Asked::Move(task, attempt)),
            Report::TaskFinished { vm, task, attempt, .. }
            | Report::TaskFailed { vm, task, attempt, .. }
            | Report::TaskStopped { vm, task, attempt, .. } => {
                return worker.ended(vm, task, attempt);
            }
            Report::VmDestroyed { vm } | Report::VmFailed { vm, .. } => return worker.forget(vm),
            Report::CheckpointTaken { .. }
            | Report::CheckpointFailed { .. }
            | Report::Credits { .. }
            | Report::Share { .. }
            | Report::JobAccount { .. }
            | Report::Ledger { .. } => return,
        };
        worker.owed.remove(&answered);
    }

    /// A worker does not know the command of this number: what was asked has failed, as its VM or
    /// task would report it. `None` where nothing hangs on it.
    ///
    /// # Errors
    ///
    /// A worker that can't even give back a VM has to be given up: why.
    pub(crate) fn unsupported(
        &self,
        host: HostId,
        number: u64,
        what: &str,
    ) -> Option<Result<Report, String>> {
        let mut owed = self.workers.get(&host)?.owed.iter();
        let (&(vm, asked), _) = owed.find(|(_, owed)| owed.number == number)?;
        let why = format!("its worker can't {}: {what}", asked.words(vm));
        Some(match asked {
            Asked::Start(task, attempt) => Ok(Report::TaskFailed {
                vm,
                task,
                attempt,
                why,
                real_cpu_us: 0,
                could_not_restore: false,
            }),
            Asked::Destroy => Err(why),
            // A VM that does not do as it is told is of no use.
            Asked::Create
            | Asked::Freeze
            | Asked::Thaw
            | Asked::Stop(..)
            | Asked::Promote(..)
            | Asked::Move(..) => Ok(Report::VmFailed { vm, why }),
        })
    }

    /// A worker is gone.
    pub(crate) fn forget(&mut self, host: HostId) {
        self.workers.remove(&host);
    }

    /// Looks at all that is owed, as is done every so often: who has not answered for too long, and
    /// what. Time is counted in these looks, not read off a clock: a coordinator that was starved
    /// itself has missed as many of them.
    pub(crate) fn look(&mut self, every: Duration, within: Duration) -> Vec<(HostId, String)> {
        let mut late = Vec::new();
        for (&host, worker) in &mut self.workers {
            let patience = worker.patience(within);
            for ((vm, asked), owed) in &mut worker.owed {
                if !(asked.rests() && worker.frozen.contains(vm)) {
                    owed.waited += every;
                }
            }
            let longest = worker.owed.iter().max_by_key(|(_, owed)| owed.waited);
            let Some((&(vm, asked), _)) = longest.filter(|(_, owed)| owed.waited > patience) else {
                continue;
            };
            let (what, s) = (asked.words(vm), patience.as_secs());
            late.push((host, format!("it was told to {what} and has not answered for {s} s")));
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Mode, Ppm, Span};

    use super::*;

    const HOST: HostId = HostId::new(3);
    const VM: VmId = VmId::new(7);
    const WITHIN: Duration = Duration::from_secs(10);

    fn start(task: u32, memory: u64) -> Command {
        Command::StartTask(dormouse_model::StartTask {
            host: HOST,
            seats: Seats::first_free(VM),
            task: TaskId::new(task),
            attempt: Attempt::new(1),
            memory: Bytes::new(memory),
            runtime: Span::from_secs(1),
            from: None,
            from_attempt: Attempt::new(1),
            checkpoints: Vec::new(),
            checkpoint_cost: Span::ZERO,
            mode: Mode::Burst,
            job: None,
        })
    }

    fn started(task: u32) -> Report {
        let (task, attempt, done) = (TaskId::new(task), Attempt::new(1), Ppm::ZERO);
        Report::TaskStarted { vm: VM, task, attempt, done, real_took_us: 1 }
    }

    fn failed(task: u32) -> Report {
        let (task, attempt, why) = (TaskId::new(task), Attempt::new(1), String::new());
        Report::TaskFailed { vm: VM, task, attempt, why, real_cpu_us: 0, could_not_restore: false }
    }

    /// After how many looks, a second each, it is given up, and why.
    fn given_up(answers: &mut Answers, most: u32) -> Option<(u32, String)> {
        (1..=most).find_map(|n| {
            let (host, why) = answers.look(Duration::from_secs(1), WITHIN).pop()?;
            assert_eq!(host, HOST);
            Some((n, why))
        })
    }

    #[test]
    fn a_command_without_an_answer_is_noticed_in_time() {
        for command in [
            Command::FreezeVm { host: HOST, vm: VM },
            Command::ThawVm { host: HOST, vm: VM },
            Command::DestroyVm { host: HOST, vm: VM },
        ] {
            let mut answers = Answers::default();
            answers.told(&command);
            let (after, why) = given_up(&mut answers, 99).expect("nobody answers");
            assert_eq!(after, 11, "{command:?}");
            assert!(why.contains("vm7 and has not answered for 10 s"), "{why}");
        }
    }

    #[test]
    fn an_answered_command_is_no_longer_waited_for() {
        let freeze = Command::FreezeVm { host: HOST, vm: VM };
        let mut answers = Answers::default();
        answers.told(&freeze);
        assert_eq!(given_up(&mut answers, 8), None);
        answers.heard(HOST, &Report::VmFrozen { vm: VM, real_took_us: 1 }, None);
        assert_eq!(given_up(&mut answers, 99), None);
        // Nor what a host that is gone was told.
        answers.told(&freeze);
        answers.forget(HOST);
        assert_eq!(given_up(&mut answers, 99), None);
    }

    #[test]
    fn a_start_may_take_as_long_as_all_tasks_of_its_worker_take_at_criu() {
        let mut answers = Answers::default();
        answers.told(&start(1, 0));
        answers.heard(HOST, &started(1), None);
        answers.told(&start(2, 100 << 20));
        // Ten seconds, a minute for either task, a second for each of 100 MiB.
        let (after, why) = given_up(&mut answers, 999).expect("it never starts");
        assert_eq!(after, 231);
        assert!(why.contains("start task2"), "{why}");
        // What comes to an end unasked is an answer, too, and takes no turn any more.
        answers.heard(HOST, &failed(2), None);
        assert_eq!(given_up(&mut answers, 999), None);
        answers.heard(HOST, &failed(1), None);
        answers.told(&Command::FreezeVm { host: HOST, vm: VM });
        assert_eq!(given_up(&mut answers, 99).map(|(after, _)| after), Some(11));
    }

    #[test]
    fn what_is_to_happen_on_a_frozen_vm_waits_for_its_thaw() {
        let mut answers = Answers::default();
        answers.told(&start(1, 0));
        answers.told(&Command::FreezeVm { host: HOST, vm: VM });
        answers.heard(HOST, &Report::VmFrozen { vm: VM, real_took_us: 1 }, None);
        assert_eq!(given_up(&mut answers, 9_999), None);
        answers.told(&Command::ThawVm { host: HOST, vm: VM });
        answers.heard(HOST, &Report::VmThawed { vm: VM, real_took_us: 1 }, None);
        assert_eq!(given_up(&mut answers, 999).map(|(after, _)| after), Some(71));
    }

    #[test]
    fn a_stop_is_answered_by_any_end_of_the_attempt() {
        let stop = Command::StopTask {
            host: HOST,
            vm: VM,
            task: TaskId::new(1),
            attempt: Attempt::new(1),
            keep: true,
        };
        let mut answers = Answers::default();
        answers.told(&start(1, 0));
        answers.heard(HOST, &started(1), None);
        answers.told(&stop);
        let (after, why) = given_up(&mut answers, 999).expect("it never stops");
        assert!(after == 71 && why.contains("stop task1"), "{after}: {why}");
        answers.heard(HOST, &failed(1), None);
        assert_eq!(given_up(&mut answers, 999), None);
        // It crossed with that.
        answers.told(&stop);
        assert_eq!(given_up(&mut answers, 999), None);
    }

    #[test]
    fn a_move_that_overtakes_a_start_is_owed_until_it_is_done() {
        let (task, attempt) = (TaskId::new(1), Attempt::new(1));
        let to: Cpus = [2, 3].into_iter().collect();
        let seats = |tier, cpus: [u32; 2]| Seats { vm: VM, tier, cpus: cpus.into_iter().collect() };
        let orders = [
            Command::MoveTask { host: HOST, vm: VM, task, attempt, on: to },
            Command::PromoteTask { host: HOST, vm: VM, task, attempt },
        ];
        // Where it has begun, and whether that is where it was told to go.
        for (began, order, is_done) in [
            (None, 0, true),
            (Some(seats(Tier::Foreground, [2, 3])), 0, true),
            (Some(seats(Tier::Foreground, [0, 1])), 0, false),
            (Some(seats(Tier::Background, [2, 3])), 0, false),
            (Some(seats(Tier::Foreground, [0, 1])), 1, true),
            (Some(seats(Tier::Background, [0, 1])), 1, false),
        ] {
            let mut answers = Answers::default();
            answers.told(&start(1, 0));
            answers.told(&orders[order]);
            answers.heard(HOST, &started(1), began.as_ref());
            assert_eq!(given_up(&mut answers, 999).is_none(), is_done, "{began:?} {order}");
        }
    }

    #[test]
    fn of_a_vm_that_is_destroyed_only_that_is_waited_for() {
        let mut answers = Answers::default();
        answers.told(&start(1, 0));
        answers.told(&Command::DestroyVm { host: HOST, vm: VM });
        answers.heard(HOST, &Report::VmDestroyed { vm: VM }, None);
        assert_eq!(given_up(&mut answers, 999), None);
    }
}
