//! Reports that have arrived and wait to be fed to the run. The conductor runs a moment behind the clock, so that
//! reports of one instant ([`Outstanding::date`](super::outstanding::Outstanding::date)) are fed in the order of their
//! VMs, as in virtual time.

use std::collections::BTreeMap;

use dormouse_model::Report;
use dormouse_units::{HostId, TaskId, Time, VmId};

/// A report of a worker that has arrived.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArrivedReport {
    pub(super) host: HostId,
    /// Number of the report among the reports of its host.
    pub(super) number: u64,
    pub(super) report: Report,
    /// Account of an attempt that has ended, to be fed before the report; `None`: the report has none.
    pub(super) ledger: Option<Report>,
}

/// Order of reports of one VM at one instant: ends of parallel jobs by job, then all other reports in order of
/// arrival.
type Rank = (Option<TaskId>, u64);

/// Arrived reports in the order in which they will be fed.
#[derive(Debug, Default)]
pub(super) struct ReportInbox {
    waiting: BTreeMap<(Time, VmId, Rank), ArrivedReport>,
    arrivals: u64,
}

impl ReportInbox {
    /// Adds a report of the instant `due`; `job` is the parallel job whose end it reports.
    pub(super) fn put_report(&mut self, due: Time, job: Option<TaskId>, arrived: ArrivedReport) {
        let vm = arrived.report.vm();
        if matches!(arrived.report, Report::VmFrozen { .. } | Report::VmThawed { .. }) {
            self.bring_forward(vm, due);
        }
        self.arrivals += 1;
        self.waiting.insert((due, vm, (job, self.arrivals)), arrived);
    }

    /// Moves earlier reports of a VM that freezes or thaws at `due` to that instant at the latest.
    fn bring_forward(&mut self, vm: VmId, due: Time) {
        let keys = self.waiting.keys().copied();
        let later: Vec<_> = keys.filter(|&(at, on, _)| on == vm && at > due).collect();
        for key in later {
            if let Some(arrived) = self.waiting.remove(&key) {
                self.waiting.insert((due, vm, key.2), arrived);
            }
        }
    }

    /// Moves the reports of a lost host to now, including those of later instants.
    pub(super) fn advance_host(&mut self, host: HostId, now: Time) {
        let ahead = self.waiting.iter().filter(|(key, it)| it.host == host && key.0 > now);
        let ahead: Vec<_> = ahead.map(|(key, _)| *key).collect();
        for key in ahead {
            if let Some(arrived) = self.waiting.remove(&key) {
                self.waiting.insert((now, key.1, key.2), arrived);
            }
        }
    }

    /// Returns the instant of the next report; `None`: no report is left.
    pub(super) fn first_due(&self) -> Option<Time> {
        self.waiting.first_key_value().map(|(&(due, ..), _)| due)
    }

    /// Takes the next report that was due by `until`, with its instant; `None`: no such report is left.
    pub(super) fn pop_due(&mut self, until: Time) -> Option<(Time, ArrivedReport)> {
        self.first_due().filter(|due| *due <= until)?;
        self.waiting.pop_first().map(|((due, ..), arrived)| (due, arrived))
    }
}

#[cfg(test)]
mod tests {
    use dormouse_model::Command;
    use dormouse_units::{Attempt, Seats, Span};

    use super::*;
    use crate::conductor::outstanding::{Outstanding, Window, attempt_of};
    use crate::protocol::wire::ReportTime;

    /// Decided commands, and the reports about them, for tests of the order.
    #[derive(Default)]
    struct Heard {
        all: Outstanding,
        inbox: ReportInbox,
    }

    impl Heard {
        fn decided(&mut self, command: &Command, at: Time) {
            self.all.order(command, at);
        }

        fn put(
            &mut self,
            (earliest, now, latest): (Time, Time, Time),
            said: Option<ReportTime>,
            mut arrived: ArrivedReport,
        ) {
            let (host, window) = (arrived.host, Window { earliest, now, latest });
            let due = self.all.date(host, &mut arrived.report, said, window);
            self.all.heard(host, &arrived.report, None, due);
            let job =
                attempt_of(&arrived.report).filter(|_| matches!(said, Some(ReportTime::Ahead(_))));
            self.inbox.put_report(due, job.map(|(task, _)| task), arrived);
        }

        fn pop_due(&mut self, until: Time) -> Option<(Time, ArrivedReport)> {
            self.inbox.pop_due(until)
        }
    }

    fn s(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    /// Returns the window of instants for a report that arrives after `secs` seconds, however late.
    fn at(secs: u64) -> (Time, Time, Time) {
        (Time::ZERO, s(secs), s(secs + 1))
    }

    fn finished(vm: u32, task: u32) -> ArrivedReport {
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
        ArrivedReport { host: HostId::new(0), number: 0, report, ledger: None }
    }

    fn start(vm: u32, task: u32) -> Command {
        let (task, attempt) = (TaskId::new(task), Attempt::new(1));
        Command::StartTask(dormouse_model::TaskStart {
            host: HostId::new(0),
            seats: Seats::first_free(VmId::new(vm)),
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

    fn started(vm: u32, task: u32) -> ArrivedReport {
        let (task, attempt, done) = (TaskId::new(task), Attempt::new(1), dormouse_units::Ppm::ZERO);
        let report = Report::TaskStarted {
            vm: VmId::new(vm),
            task,
            attempt,
            done,
            real_took_us: 1,
            real_inputs_us: 0,
        };
        ArrivedReport { report, ..finished(vm, 0) }
    }

    /// Makes the command to create a VM that has burst credits.
    fn create(vm: u32) -> Command {
        Command::CreateVm {
            host: HostId::new(0),
            vm: VmId::new(vm),
            kind: "a".into(),
            market: dormouse_cloud::Market::Spot,
            vcpus: 2,
            memory: dormouse_units::Bytes::ZERO,
            burstable: None,
            two_tier: false,
        }
    }

    fn is_end(report: &Report) -> bool {
        matches!(report, Report::TaskFinished { .. })
    }

    fn order(heard: &mut Heard) -> Vec<(u64, u32)> {
        let secs = |due: Time| due.as_micros() / 1_000_000;
        let next = || heard.pop_due(s(32)).map(|(due, a)| (secs(due), a.report.vm().get()));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn what_should_have_ended_together_is_heard_in_the_order_of_the_vms() {
        let mut heard = Heard::default();
        for (vm, task) in [(8, 1), (7, 2), (9, 3)] {
            heard.decided(&start(vm, task), s(10));
        }
        let after = Some(ReportTime::After(Span::from_secs(20)));
        heard.put(at(31), after, finished(8, 1));
        heard.put(at(32), after, finished(7, 2));
        heard.put(at(32), None, started(1, 9));
        // Of a task whose start is not known, and of one that should not be over yet.
        heard.put(at(33), after, finished(2, 77));
        heard.put(at(29), after, finished(9, 3));
        assert_eq!(order(&mut heard), [(29, 9), (30, 7), (30, 8), (32, 1)]);
        assert_eq!(heard.inbox.first_due(), Some(s(33)));
    }

    #[test]
    fn jobs_that_are_said_to_end_ahead_are_heard_of_when_they_do_in_their_order() {
        let mut heard = Heard::default();
        let ahead = |secs| Some(ReportTime::Ahead(s(secs)));
        heard.put((s(8), s(9), s(12)), ahead(10), finished(1, 7));
        heard.put((s(8), s(9), s(12)), ahead(10), finished(1, 3));
        heard.put((s(8), s(9), s(12)), ahead(30), finished(1, 4));
        // Long ago: it ended when it came.
        heard.put((s(8), s(9), s(12)), ahead(2), finished(1, 5));
        let of =
            |(due, arrived): (Time, ArrivedReport)| (due, attempt_of(&arrived.report).map(|a| a.0));
        let all: Vec<_> = std::iter::from_fn(|| heard.pop_due(s(40))).map(of).collect();
        let expected = [(9, 5), (10, 3), (10, 7), (12, 4)];
        assert_eq!(all, expected.map(|(due, task)| (s(due), Some(TaskId::new(task)))));
    }

    #[test]
    fn a_balance_that_comes_late_keeps_its_time() {
        let mut heard = Heard::default();
        [1, 2, 3].iter().for_each(|vm| heard.decided(&create(*vm), s(1)));
        let credits = |vm| {
            let (vm, balance) = (VmId::new(vm), dormouse_units::Credits::ONE);
            ArrivedReport { report: Report::Credits { vm, balance, as_of: None }, ..finished(1, 0) }
        };
        // The coordinator stood still from 10 s to 30 s, and looks back for one.
        let late = (s(29), s(30), s(31));
        heard.put(late, Some(ReportTime::At(s(11))), credits(1));
        heard.put(late, Some(ReportTime::At(s(29))), credits(2));
        heard.put(late, None, credits(3));
        let of = |(due, arrived): (Time, ArrivedReport)| match arrived.report {
            Report::Credits { vm, as_of, .. } => (vm.get(), due, as_of),
            other => panic!("{other:?}"),
        };
        let all: Vec<_> = std::iter::from_fn(|| heard.pop_due(s(30))).map(of).collect();
        assert_eq!(all, [(2, s(29), None), (1, s(30), Some(s(11))), (3, s(30), None)]);
    }

    #[test]
    fn balances_of_a_vm_are_heard_of_in_their_order() {
        let mut heard = Heard::default();
        [1, 2].iter().for_each(|vm| heard.decided(&create(*vm), s(1)));
        let credits = |vm, minutes| {
            let (vm, balance) = (VmId::new(vm), dormouse_units::Credits::whole_credits(minutes));
            ArrivedReport { report: Report::Credits { vm, balance, as_of: None }, ..finished(1, 0) }
        };
        // The coordinator was away: the first is too old to be heard of at its time, the next is not.
        let late = (s(29), s(30), s(31));
        heard.put(late, Some(ReportTime::At(s(11))), credits(1, 5));
        heard.put(late, Some(ReportTime::At(s(29))), credits(1, 4));
        heard.put(late, Some(ReportTime::At(s(29))), credits(2, 7));
        heard.put((s(30), s(31), s(32)), Some(ReportTime::At(s(31))), credits(1, 3));
        let of = |(due, arrived): (Time, ArrivedReport)| match arrived.report {
            Report::Credits { vm, as_of, balance } => {
                (vm.get(), due, as_of, balance.as_vcpu_micros() / 60_000_000)
            }
            other => panic!("{other:?}"),
        };
        let all: Vec<_> = std::iter::from_fn(|| heard.pop_due(s(40))).map(of).collect();
        let (first, second) = ((1, s(30), Some(s(11)), 5), (1, s(30), Some(s(29)), 4));
        assert_eq!(all, [(2, s(29), None, 7), first, second, (1, s(31), None, 3)]);
    }

    #[test]
    fn an_attempt_does_not_end_before_it_has_begun() {
        let mut heard = Heard::default();
        heard.decided(&start(8, 1), s(10));
        heard.put(at(14), None, started(8, 1));
        heard.put(at(15), Some(ReportTime::After(Span::from_secs(1))), finished(8, 1));
        assert_eq!(heard.inbox.first_due(), Some(s(14)));
        let ends: Vec<bool> =
            std::iter::from_fn(|| heard.pop_due(s(15))).map(|(_, a)| is_end(&a.report)).collect();
        assert_eq!(ends, [false, true]);
    }

    #[test]
    fn what_a_vm_said_before_it_froze_is_heard_of_before() {
        let (mut heard, host, vm) = (Heard::default(), HostId::new(0), VmId::new(3));
        heard.decided(&Command::FreezeVm { host, vm }, s(10));
        heard.put(at(11), None, started(3, 1));
        heard.put(at(12), None, started(2, 2));
        let report = Report::VmFrozen { vm, real_took_us: 1 };
        heard.put(at(13), None, ArrivedReport { report, ..finished(3, 9) });
        heard.put(at(14), None, finished(3, 1));
        let of = |(due, arrived): (Time, ArrivedReport)| (due, arrived.report.vm(), arrived.report);
        let all: Vec<_> = std::iter::from_fn(|| heard.pop_due(s(20))).map(of).collect();
        let is_frozen = |report: &Report| matches!(report, Report::VmFrozen { .. });
        assert!(!is_frozen(&all[0].2) && is_frozen(&all[1].2), "{all:?}");
        let order: Vec<_> = all.iter().map(|(due, vm, _)| (*due, vm.get())).collect();
        assert_eq!(order, [(s(10), 3), (s(10), 3), (s(12), 2), (s(14), 3)]);
    }

    #[test]
    fn what_was_decided_together_is_heard_of_together() {
        let (mut heard, host) = (Heard::default(), HostId::new(0));
        let freeze = |vm| Command::FreezeVm { host, vm: VmId::new(vm) };
        for vm in [3, 4, 7] {
            heard.decided(&freeze(vm), s(10));
        }
        let frozen = |vm| {
            let report = Report::VmFrozen { vm: VmId::new(vm), real_took_us: 1 };
            ArrivedReport { report, ..finished(vm, 0) }
        };
        heard.put(at(12), None, frozen(7));
        heard.put(at(13), None, frozen(3));
        assert_eq!(heard.all.under_way_since(s(9)), Some(s(10)));
        heard.put(at(14), None, frozen(4));
        assert_eq!(heard.all.under_way_since(s(9)), None);
        // One that nobody has asked for.
        heard.put(at(14), None, frozen(5));
        assert_eq!(order(&mut heard), [(10, 3), (10, 4), (10, 7), (14, 5)]);
        // One that comes later than that happened then.
        heard.decided(&freeze(6), s(10));
        heard.put((s(12), s(16), s(16)), None, frozen(6));
        assert_eq!(order(&mut heard), [(16, 6)]);
        // It is not waited for after it has been destroyed, nor for ever.
        heard.decided(&freeze(3), s(20));
        heard.decided(&freeze(4), s(21));
        heard.decided(&Command::DestroyVm { host, vm: VmId::new(3) }, s(22));
        assert_eq!(heard.all.under_way_since(s(15)), Some(s(21)));
        assert_eq!(heard.all.under_way_since(s(22)), None);
    }
}
