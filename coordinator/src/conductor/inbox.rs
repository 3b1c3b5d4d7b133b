//! Reports that have come and wait for their turn.
//!
//! What happens on two VMs at the same instant is heard of within some milliseconds, in whatever
//! order threads, timers and networks make of it, and a scheduler that heard of it in that order
//! would decide by chance what it decides by rule beside modelled machines. So the conductor
//! listens a moment behind the clock, and gives every report the time of what it reports: a task
//! ends when its VM should have had it done, a VM freezes, thaws or stops a task when that is
//! decided. What is of one instant is heard of in the order of the VMs, as in virtual time.

use std::collections::BTreeMap;

use dormouse_model::{Command, Report};
use dormouse_units::{Attempt, HostId, TaskId, Time, VmId};

use crate::protocol::wire::Due;

/// A report of a worker.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arrived {
    pub(super) host: HostId,
    /// The report's number among those of its host.
    pub(super) number: u64,
    pub(super) report: Report,
    /// The account of an attempt that is over, heard of before the report.
    pub(super) ledger: Option<Report>,
}

/// The attempt that a report is about.
const fn attempt_of(report: &Report) -> Option<(TaskId, Attempt)> {
    match *report {
        Report::TaskStarted { task, attempt, .. }
        | Report::TaskFinished { task, attempt, .. }
        | Report::TaskFailed { task, attempt, .. }
        | Report::TaskStopped { task, attempt, .. }
        | Report::CheckpointTaken { task, attempt, .. }
        | Report::CheckpointFailed { task, attempt, .. } => Some((task, attempt)),
        _ => None,
    }
}

/// Whether the attempt that a report is about is over with it.
const fn ends(report: &Report) -> bool {
    use Report::{TaskFailed, TaskFinished, TaskStopped};
    matches!(report, TaskFinished { .. } | TaskFailed { .. } | TaskStopped { .. })
}

#[derive(Debug)]
struct Started {
    decided: Time,
    /// The last report of it is of this instant: what comes later is not of an earlier one.
    heard: Time,
}

/// What a worker does as soon as it is told to, and then reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Freeze(VmId),
    Thaw(VmId),
    Stop(TaskId, Attempt),
}

impl Act {
    /// The act whose end a report tells; `None`: of none.
    const fn from_report(report: &Report) -> Option<Self> {
        match *report {
            Report::VmFrozen { vm, .. } => Some(Self::Freeze(vm)),
            Report::VmThawed { vm, .. } => Some(Self::Thaw(vm)),
            Report::TaskStopped { task, attempt, .. } => Some(Self::Stop(task, attempt)),
            _ => None,
        }
    }
}

/// The place of a report among those of one VM and instant: parallel jobs that end are heard of in
/// their order, all else as it came.
type Rank = (Option<TaskId>, u64);

/// Reports in the order in which they will be heard.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: BTreeMap<(Time, VmId, Rank), Arrived>,
    arrivals: u64,
    started: BTreeMap<(TaskId, Attempt), Started>,
    /// What is under way, on which VM and since when.
    acts: BTreeMap<Act, (VmId, Time)>,
    /// The last balance of a VM's credits is heard of at this instant: one that came after it is not heard of before.
    balances: BTreeMap<VmId, Time>,
}

impl Inbox {
    /// A command was decided on at `at`.
    pub(super) fn decided(&mut self, command: &Command, at: Time) {
        let (act, vm) = match *command {
            Command::StartTask(ref start) => {
                let started = Started { decided: at, heard: at };
                self.started.insert((start.task, start.attempt), started);
                return;
            }
            Command::DestroyVm { vm, .. } => {
                self.acts.retain(|_, (on, _)| *on != vm);
                self.balances.remove(&vm);
                return;
            }
            Command::FreezeVm { vm, .. } => (Act::Freeze(vm), vm),
            Command::ThawVm { vm, .. } => (Act::Thaw(vm), vm),
            // To keep its work takes time.
            Command::StopTask { vm, task, attempt, keep: false, .. } => {
                (Act::Stop(task, attempt), vm)
            }
            _ => return,
        };
        self.acts.insert(act, (vm, at));
    }

    /// A report has come at `now`, with what it says of its time. What was due before `earliest`
    /// happened when it came; what is yet to come is heard of by `latest`.
    pub(super) fn put(
        &mut self,
        (earliest, now, latest): (Time, Time, Time),
        said: Option<Due>,
        mut arrived: Arrived,
    ) {
        let vm = arrived.report.vm();
        let act = Act::from_report(&arrived.report).and_then(|act| self.acts.remove(&act));
        let mut due = match (act, said) {
            (Some((_, at)), _) | (None, Some(Due::At(at))) => at.min(now),
            (None, Some(Due::Ahead(at))) => at.min(latest),
            _ => now,
        };
        let in_order = match (said, attempt_of(&arrived.report)) {
            (Some(Due::Ahead(_)), Some((task, _))) => Some(task),
            _ => None,
        };
        if let Some(of) = attempt_of(&arrived.report)
            && let Some(started) = self.started.get_mut(&of)
        {
            if let Some(Due::After(after)) = said {
                due = started.decided + after;
            }
            // A job's end is due by itself, whenever its beginning was heard of.
            if in_order.is_none() {
                due = due.clamp(started.heard.min(now), now);
            }
        }
        let of = due;
        if due < earliest {
            due = now;
        }
        if let Report::Credits { as_of, .. } = &mut arrived.report {
            // The one before it may have been late, and this one not.
            let heard = self.balances.entry(vm).or_insert(due);
            *heard = due.max(*heard);
            due = *heard;
            // What a VM holds is of the time that it says, however late that is heard.
            *as_of = (of < due).then_some(of);
        }
        if let Some(of) = attempt_of(&arrived.report) {
            if ends(&arrived.report) {
                self.started.remove(&of);
            } else if let Some(started) = self.started.get_mut(&of) {
                started.heard = due;
            }
        }
        if matches!(arrived.report, Report::VmFrozen { .. } | Report::VmThawed { .. }) {
            self.bring_forward(vm, due);
        }
        self.arrivals += 1;
        self.waiting.insert((due, vm, (in_order, self.arrivals)), arrived);
    }

    /// What a VM has said by now is not heard of later than `due`: it froze, or thawed, after it.
    fn bring_forward(&mut self, vm: VmId, due: Time) {
        let keys = self.waiting.keys().copied();
        let later: Vec<_> = keys.filter(|&(at, on, _)| on == vm && at > due).collect();
        for key in later {
            if let Some(arrived) = self.waiting.remove(&key) {
                self.waiting.insert((due, vm, key.2), arrived);
            }
        }
    }

    /// A host is lost: what it has said is heard of now, though it be of a time to come.
    pub(super) fn boost(&mut self, host: HostId, now: Time) {
        let ahead = self.waiting.iter().filter(|(key, it)| it.host == host && key.0 > now);
        let ahead: Vec<_> = ahead.map(|(key, _)| *key).collect();
        for key in ahead {
            if let Some(arrived) = self.waiting.remove(&key) {
                self.waiting.insert((now, key.1, key.2), arrived);
            }
        }
    }

    /// What is not heard of is as of this instant or later: something that was decided on then is
    /// still under way. What is older than `earliest` is not waited for.
    pub(super) fn under_way_since(&mut self, earliest: Time) -> Option<Time> {
        self.acts.retain(|_, (_, at)| *at >= earliest);
        self.acts.values().map(|(_, at)| *at).min()
    }

    /// When the next is due.
    pub(super) fn first_due(&self) -> Option<Time> {
        self.waiting.first_key_value().map(|(&(due, ..), _)| due)
    }

    /// The next that was due by `until`, and when it was.
    pub(super) fn pop_due(&mut self, until: Time) -> Option<(Time, Arrived)> {
        self.first_due().filter(|due| *due <= until)?;
        self.waiting.pop_first().map(|((due, ..), arrived)| (due, arrived))
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::Span;

    use super::*;

    fn s(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    /// What comes then, however late it is.
    fn at(secs: u64) -> (Time, Time, Time) {
        (Time::ZERO, s(secs), s(secs + 1))
    }

    fn finished(vm: u32, task: u32) -> Arrived {
        let (task, attempt) = (TaskId::new(task), Attempt::new(1));
        let report = Report::TaskFinished {
            vm: VmId::new(vm),
            task,
            attempt,
            verified: true,
            reported: false,
            program_failed: false,
            result: None,
            real_cpu_us: 0,
        };
        Arrived { host: HostId::new(0), number: 0, report, ledger: None }
    }

    fn start(task: u32) -> Command {
        let (task, attempt) = (TaskId::new(task), Attempt::new(1));
        Command::StartTask(dormouse_model::StartTask {
            host: HostId::new(0),
            seats: dormouse_units::Seats::first_free(VmId::new(1)),
            task,
            attempt,
            memory: dormouse_units::Bytes::ZERO,
            runtime: Span::from_secs(1),
            from: None,
            from_attempt: attempt,
            checkpoints: Vec::new(),
            checkpoint_cost: Span::ZERO,
            mode: dormouse_units::Mode::Burst,
            job: None,
        })
    }

    fn started(vm: u32, task: u32) -> Arrived {
        let (task, attempt, done) = (TaskId::new(task), Attempt::new(1), dormouse_units::Ppm::ZERO);
        let report =
            Report::TaskStarted { vm: VmId::new(vm), task, attempt, done, real_took_us: 1 };
        Arrived { report, ..finished(vm, 0) }
    }

    fn order(inbox: &mut Inbox) -> Vec<(u64, u32)> {
        let secs = |due: Time| due.as_micros() / 1_000_000;
        let next = || inbox.pop_due(s(32)).map(|(due, a)| (secs(due), a.report.vm().get()));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn what_should_have_ended_together_is_heard_in_the_order_of_the_vms() {
        let mut inbox = Inbox::default();
        for task in [1, 2, 3] {
            inbox.decided(&start(task), s(10));
        }
        let after = Some(Due::After(Span::from_secs(20)));
        inbox.put(at(31), after, finished(8, 1));
        inbox.put(at(32), after, finished(7, 2));
        inbox.put(at(32), None, started(1, 9));
        // Of a task whose start is not known, and of one that should not be over yet.
        inbox.put(at(33), after, finished(2, 77));
        inbox.put(at(29), after, finished(9, 3));
        assert_eq!(order(&mut inbox), [(29, 9), (30, 7), (30, 8), (32, 1)]);
        assert_eq!(inbox.first_due(), Some(s(33)));
    }

    #[test]
    fn jobs_that_are_said_to_end_ahead_are_heard_of_when_they_do_in_their_order() {
        let mut inbox = Inbox::default();
        let ahead = |secs| Some(Due::Ahead(s(secs)));
        inbox.put((s(8), s(9), s(12)), ahead(10), finished(1, 7));
        inbox.put((s(8), s(9), s(12)), ahead(10), finished(1, 3));
        inbox.put((s(8), s(9), s(12)), ahead(30), finished(1, 4));
        // Long ago: it ended when it came.
        inbox.put((s(8), s(9), s(12)), ahead(2), finished(1, 5));
        let of = |(due, arrived): (Time, Arrived)| (due, attempt_of(&arrived.report).map(|a| a.0));
        let heard: Vec<_> = std::iter::from_fn(|| inbox.pop_due(s(40))).map(of).collect();
        let expected = [(9, 5), (10, 3), (10, 7), (12, 4)];
        assert_eq!(heard, expected.map(|(due, task)| (s(due), Some(TaskId::new(task)))));
    }

    #[test]
    fn a_balance_that_comes_late_keeps_its_time() {
        let mut inbox = Inbox::default();
        let credits = |vm| {
            let (vm, balance) = (VmId::new(vm), dormouse_units::Credits::ONE);
            Arrived { report: Report::Credits { vm, balance, as_of: None }, ..finished(1, 0) }
        };
        // The coordinator stood still from 10 s to 30 s, and looks back for one.
        let late = (s(29), s(30), s(31));
        inbox.put(late, Some(Due::At(s(11))), credits(1));
        inbox.put(late, Some(Due::At(s(29))), credits(2));
        inbox.put(late, None, credits(3));
        let of = |(due, arrived): (Time, Arrived)| match arrived.report {
            Report::Credits { vm, as_of, .. } => (vm.get(), due, as_of),
            other => panic!("{other:?}"),
        };
        let heard: Vec<_> = std::iter::from_fn(|| inbox.pop_due(s(30))).map(of).collect();
        assert_eq!(heard, [(2, s(29), None), (1, s(30), Some(s(11))), (3, s(30), None)]);
    }

    #[test]
    fn balances_of_a_vm_are_heard_of_in_their_order() {
        let mut inbox = Inbox::default();
        let credits = |vm, minutes| {
            let (vm, balance) = (VmId::new(vm), dormouse_units::Credits::whole(minutes));
            Arrived { report: Report::Credits { vm, balance, as_of: None }, ..finished(1, 0) }
        };
        // The coordinator was away: the first is too old to be heard of at its time, the next is not.
        let late = (s(29), s(30), s(31));
        inbox.put(late, Some(Due::At(s(11))), credits(1, 5));
        inbox.put(late, Some(Due::At(s(29))), credits(1, 4));
        inbox.put(late, Some(Due::At(s(29))), credits(2, 7));
        inbox.put((s(30), s(31), s(32)), Some(Due::At(s(31))), credits(1, 3));
        let of = |(due, arrived): (Time, Arrived)| match arrived.report {
            Report::Credits { vm, as_of, balance } => {
                (vm.get(), due, as_of, balance.as_vcpu_micros() / 60_000_000)
            }
            other => panic!("{other:?}"),
        };
        let heard: Vec<_> = std::iter::from_fn(|| inbox.pop_due(s(40))).map(of).collect();
        let (first, second) = ((1, s(30), Some(s(11)), 5), (1, s(30), Some(s(29)), 4));
        assert_eq!(heard, [(2, s(29), None, 7), first, second, (1, s(31), None, 3)]);
    }

    #[test]
    fn an_attempt_does_not_end_before_it_has_begun() {
        let mut inbox = Inbox::default();
        inbox.decided(&start(1), s(10));
        inbox.put(at(14), None, started(8, 1));
        inbox.put(at(15), Some(Due::After(Span::from_secs(1))), finished(8, 1));
        assert_eq!(inbox.first_due(), Some(s(14)));
        let ends: Vec<bool> =
            std::iter::from_fn(|| inbox.pop_due(s(15))).map(|(_, a)| ends(&a.report)).collect();
        assert_eq!(ends, [false, true]);
    }

    #[test]
    fn what_a_vm_said_before_it_froze_is_heard_of_before() {
        let (mut inbox, host, vm) = (Inbox::default(), HostId::new(0), VmId::new(3));
        inbox.decided(&Command::FreezeVm { host, vm }, s(10));
        inbox.put(at(11), None, started(3, 1));
        inbox.put(at(12), None, started(2, 2));
        let report = Report::VmFrozen { vm, real_took_us: 1 };
        inbox.put(at(13), None, Arrived { report, ..finished(3, 9) });
        inbox.put(at(14), None, finished(3, 1));
        let of = |(due, arrived): (Time, Arrived)| (due, arrived.report.vm(), arrived.report);
        let heard: Vec<_> = std::iter::from_fn(|| inbox.pop_due(s(20))).map(of).collect();
        let is_frozen = |report: &Report| matches!(report, Report::VmFrozen { .. });
        assert!(!is_frozen(&heard[0].2) && is_frozen(&heard[1].2), "{heard:?}");
        let order: Vec<_> = heard.iter().map(|(due, vm, _)| (*due, vm.get())).collect();
        assert_eq!(order, [(s(10), 3), (s(10), 3), (s(12), 2), (s(14), 3)]);
    }

    #[test]
    fn what_was_decided_together_is_heard_of_together() {
        let (mut inbox, host) = (Inbox::default(), HostId::new(0));
        let freeze = |vm| Command::FreezeVm { host, vm: VmId::new(vm) };
        for vm in [3, 4, 7] {
            inbox.decided(&freeze(vm), s(10));
        }
        let frozen = |vm| {
            let report = Report::VmFrozen { vm: VmId::new(vm), real_took_us: 1 };
            Arrived { report, ..finished(vm, 0) }
        };
        inbox.put(at(12), None, frozen(7));
        inbox.put(at(13), None, frozen(3));
        assert_eq!(inbox.under_way_since(s(9)), Some(s(10)));
        inbox.put(at(14), None, frozen(4));
        assert_eq!(inbox.under_way_since(s(9)), None);
        // One that nobody has asked for.
        inbox.put(at(14), None, frozen(5));
        assert_eq!(order(&mut inbox), [(10, 3), (10, 4), (10, 7), (14, 5)]);
        // One that comes later than that happened then.
        inbox.decided(&freeze(6), s(10));
        inbox.put((s(12), s(16), s(16)), None, frozen(6));
        assert_eq!(order(&mut inbox), [(16, 6)]);
        // It is not waited for after it has been destroyed, nor for ever.
        inbox.decided(&freeze(3), s(20));
        inbox.decided(&freeze(4), s(21));
        inbox.decided(&Command::DestroyVm { host, vm: VmId::new(3) }, s(22));
        assert_eq!(inbox.under_way_since(s(15)), Some(s(21)));
        assert_eq!(inbox.under_way_since(s(22)), None);
    }
}
