//! Pending and current spot checks of a run: one at a time on each host.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use dormouse_model::{Effect, Event, ProgramAttemptEnd, Report, Step, Submission};
use dormouse_units::{Attempt, Bytes, HostId, TaskId, VmId};

use super::check_work::{CheckWork, CheckedAnswer};

/// A spot check: a task, or a part of one, that another host computes again.
#[derive(Clone, Debug)]
pub(super) struct OpenCheck {
    /// VM that is created for the check.
    pub(super) vm: VmId,
    pub(super) task: TaskId,
    pub(super) attempt: Attempt,
    /// Host that reported the answer, and host that computes it again.
    pub(super) of: HostId,
    pub(super) by: HostId,
    pub(super) work: CheckWork,
    /// Memory of the task; zero: it isn't specified.
    pub(super) memory: Bytes,
    /// Expected CPU time of the check.
    pub(super) takes: Duration,
    /// Real time in which the check is expected to compute nothing.
    pub(super) waits: Duration,
}

/// An answer reported in the run, with its origin.
#[derive(Clone, Debug)]
pub(super) struct SeenAnswer {
    pub(super) task: TaskId,
    pub(super) attempt: Attempt,
    /// Host that reported the answer.
    pub(super) host: HostId,
    /// Submission of the parallel job that gave the answer, since the run forgets a job after its end; `None` for a
    /// task.
    pub(super) job: Option<Arc<Submission>>,
    pub(super) answer: CheckedAnswer,
}

/// Spot checks of one host.
#[derive(Debug, Default)]
struct HostChecks {
    /// Check under way until its VM has been removed, and true once the check has been answered; `None`: no check is under way.
    now: Option<(OpenCheck, bool)>,
    queued: VecDeque<OpenCheck>,
}

/// Queue of a run's spot checks.
///
/// Use: `take_step` for every step of the run; at its end `consider_answer`, `allow_time` and `begin_checks`, then
/// `take_answered` and `next_of` for each finished check.
#[derive(Debug, Default)]
pub(super) struct CheckQueue {
    /// Answers that may be checked; `None`: no checks are made.
    answers: Option<BTreeMap<TaskId, SeenAnswer>>,
    /// Answers to be checked, in random order: by a drawn number, each answer with the host that may check it and the
    /// part of the work to compute again.
    considered: BTreeMap<u64, (SeenAnswer, HostId, u64)>,
    vms: u32,
    hosts: BTreeMap<HostId, HostChecks>,
    /// CPU time that further checks may take; a check that is expected to take more does not begin.
    left: Duration,
    /// Longest CPU time that a check has taken.
    longest_yet: Duration,
    /// CPU time of all attempts that have ended.
    computed: Duration,
}

impl CheckQueue {
    /// Makes the queue of a run; no checks are made if `are_wanted` is false.
    pub(super) fn new(are_wanted: bool) -> Self {
        Self { answers: are_wanted.then(BTreeMap::new), ..Self::default() }
    }

    /// Returns the CPU time of all attempts that ended while this coordinator conducted the run.
    pub(super) const fn computed_time(&self) -> Duration {
        self.computed
    }

    /// Keeps the answers of a step; `end` is the end of a user's own program in it, and `job` the parallel job that
    /// ended.
    pub(super) fn take_step(
        &mut self,
        step: &Step,
        end: Option<&ProgramAttemptEnd>,
        job: Option<Arc<Submission>>,
    ) {
        let Some(answers) = &mut self.answers else { return };
        let Event::Machine { host, report, .. } = &step.event else { return };
        if step.effects.contains(&Effect::Stale) {
            return;
        }
        if let Report::TaskFinished { real_cpu_us, .. }
        | Report::TaskFailed { real_cpu_us, .. }
        | Report::TaskStopped { real_cpu_us, .. } = report
        {
            self.computed = self.computed.saturating_add(Duration::from_micros(*real_cpu_us));
        }
        let &Report::TaskFinished { task, attempt, verified: true, ref result, .. } = report else {
            return;
        };
        let answer = match (end, result) {
            (Some(end), _) => CheckedAnswer::Own(Arc::clone(&end.end)),
            (None, Some(text)) => CheckedAnswer::Text(Arc::clone(text)),
            (None, None) => return,
        };
        answers.insert(task, SeenAnswer { task, attempt, host: *host, job, answer });
    }

    /// Returns whether no check has begun yet.
    pub(super) const fn is_waiting(&self) -> bool {
        self.answers.is_some()
    }

    /// Drops all checks.
    pub(super) fn skip_checks(&mut self) {
        self.answers = None;
    }

    pub(super) fn take_answers(&mut self) -> Vec<SeenAnswer> {
        self.answers.take().unwrap_or_default().into_values().collect()
    }

    /// Adds an answer to those that may be checked, at the place `drawn` of the random order: host `by` computes the
    /// part `part` again.
    pub(super) fn consider_answer(
        &mut self,
        drawn: u64,
        answer: SeenAnswer,
        by: HostId,
        part: u64,
    ) {
        self.considered.insert(drawn, (answer, by, part));
    }

    pub(super) fn take_considered(&mut self) -> Vec<(SeenAnswer, HostId, u64)> {
        std::mem::take(&mut self.considered).into_values().collect()
    }

    /// Returns an id for a check's VM, counted down from the largest id so that no VM of the run has it.
    pub(super) const fn next_vm(&mut self) -> VmId {
        self.vms += 1;
        VmId::new(u32::MAX - self.vms)
    }

    pub(super) fn add_check(&mut self, check: OpenCheck) {
        self.hosts.entry(check.by).or_default().queued.push_back(check);
    }

    /// Limits the CPU time of all checks. Each host makes one check in any case.
    pub(super) const fn allow_time(&mut self, left: Duration) {
        self.left = left;
    }

    /// Counts CPU time that a check has taken.
    pub(super) fn spend_time(&mut self, spent: Duration) {
        self.left = self.left.saturating_sub(spent);
        self.longest_yet = self.longest_yet.max(spent);
    }

    /// Begins the first check of each host; returns the VMs to be created.
    pub(super) fn begin_checks(&mut self) -> Vec<(HostId, VmId)> {
        let hosts: Vec<HostId> = self.hosts.keys().copied().collect();
        hosts.into_iter().filter_map(|host| Some((host, self.begin_next(host)?))).collect()
    }

    /// Begins the next check of a host whose last one is over; returns the VM to be created, or `None` if the host has no more
    /// checks.
    pub(super) fn next_of(&mut self, host: HostId) -> Option<VmId> {
        let under_way = |(other, of): (&HostId, &HostChecks)| {
            *other != host && of.now.as_ref().is_some_and(|(_, is_answered)| !is_answered)
        };
        let others = self.hosts.iter().filter(|of| under_way(*of)).count();
        let others = u32::try_from(others).unwrap_or(u32::MAX);
        let (left, longest_yet) = (self.left, self.longest_yet);
        let of_host = self.hosts.get_mut(&host)?;
        // Those under way on other hosts are not counted yet.
        let fits = |check: &OpenCheck| {
            check.takes.max(longest_yet).saturating_mul(others.saturating_add(1)) <= left
        };
        of_host.queued.retain(fits);
        self.begin_next(host)
    }

    fn begin_next(&mut self, host: HostId) -> Option<VmId> {
        let of_host = self.hosts.get_mut(&host)?;
        of_host.now = of_host.queued.pop_front().map(|check| (check, false));
        let vm = of_host.now.as_ref().map(|(check, _)| check.vm);
        if vm.is_none() {
            self.hosts.remove(&host);
        }
        vm
    }

    /// Returns the longest time that the checks of any one host are expected to take.
    pub(super) fn longest_host(&self) -> Duration {
        let takes = |of: &HostChecks| {
            let all = of.now.iter().map(|(check, _)| check).chain(&of.queued);
            all.fold(Duration::ZERO, |sum, check| {
                sum.saturating_add(check.takes).saturating_add(check.waits)
            })
        };
        self.hosts.values().map(takes).max().unwrap_or_default()
    }

    pub(super) fn are_open(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Returns whether a VM belongs to a check, including one that was given up.
    pub(super) const fn is_check_vm(&self, vm: VmId) -> bool {
        self.vms > 0 && vm.get() >= u32::MAX - self.vms
    }

    /// Returns the check under way on this VM; `None`: there is none.
    pub(super) fn get(&self, host: HostId, vm: VmId) -> Option<&OpenCheck> {
        let (check, _) = self.hosts.get(&host)?.now.as_ref()?;
        (check.vm == vm).then_some(check)
    }

    /// Takes the check under way on this VM; `None` if it was answered before.
    pub(super) fn take_answered(&mut self, host: HostId, vm: VmId) -> Option<OpenCheck> {
        let (check, is_answered) = self.hosts.get_mut(&host)?.now.as_mut()?;
        let is_first = check.vm == vm && !std::mem::replace(is_answered, true);
        is_first.then(|| check.clone())
    }

    /// Takes the unanswered checks of a lost host, which makes none from now on.
    pub(super) fn lose_host(&mut self, host: HostId) -> Vec<OpenCheck> {
        let Some(HostChecks { now, queued }) = self.hosts.remove(&host) else { return Vec::new() };
        let now = now.filter(|(_, is_answered)| !is_answered).map(|(check, _)| check);
        now.into_iter().chain(queued).collect()
    }

    /// Takes all unanswered checks, so that none are made from now on.
    pub(super) fn give_up(&mut self) -> Vec<OpenCheck> {
        let hosts: Vec<HostId> = self.hosts.keys().copied().collect();
        hosts.into_iter().flat_map(|host| self.lose_host(host)).collect()
    }
}

#[cfg(test)]
mod tests {
    use dormouse_tasks::spot_check::CheckOrder;
    use dormouse_tasks::trail::WorkTrail;

    use super::*;

    const ONE: HostId = HostId::new(1);
    const TWO: HostId = HostId::new(2);

    /// Makes a queue with three checks of the first host and one of the second, of 10 ms each.
    fn queue() -> CheckQueue {
        let mut queue = CheckQueue::new(true);
        queue.allow_time(Duration::from_millis(35));
        let arguments: Vec<String> = ["ed", "--id", "7", "--nonce", "1"].map(str::to_owned).into();
        let mut answer = dormouse_tasks::answer::reckoned(&arguments, 3).expect("it is published");
        answer.trail = Some(WorkTrail { every: 1, points: vec![1, 2, 3] });
        let order = CheckOrder::draw(&arguments[..3], 1, &answer, 0);
        let order = order.expect("it is right").expect("a kernel");
        for (task, by) in [(0, ONE), (1, TWO), (2, ONE), (3, ONE)] {
            let (vm, task, of) = (queue.next_vm(), TaskId::new(task), HostId::new(9));
            let takes = Duration::from_millis(10);
            let (answer, order) = (answer.clone(), order.clone());
            let attempt = Attempt::new(2);
            let (answer, ordered) = (Box::new(answer), Duration::from_secs(1));
            let work = CheckWork::Part { order, answer, ordered };
            let (memory, waits) = (Bytes::ZERO, Duration::ZERO);
            queue.add_check(OpenCheck { vm, task, attempt, of, by, work, memory, takes, waits });
        }
        queue
    }

    #[test]
    fn a_host_has_one_after_the_other_and_answers_each_once() {
        let mut queue = queue();
        assert_eq!(queue.longest_host(), Duration::from_millis(30));
        let [(ONE, first), (TWO, second)] = queue.begin_checks()[..] else { panic!("{queue:?}") };
        assert!(queue.is_check_vm(first) && !queue.is_check_vm(VmId::new(7)));
        assert!(queue.get(TWO, first).is_none(), "it is another host's");
        assert!(
            queue.take_answered(ONE, second).is_none() && queue.take_answered(TWO, first).is_none()
        );
        assert!(queue.take_answered(ONE, first).is_some());
        assert!(queue.take_answered(ONE, first).is_none(), "it has been answered");
        queue.spend_time(Duration::from_millis(10));
        let next = queue.next_of(ONE).expect("there is time left");
        assert_ne!(next, first);
        // What is left is no more than the one under way on the other host may take: the third is not begun.
        queue.spend_time(Duration::from_millis(10));
        assert_eq!(queue.next_of(ONE), None);
        assert!(queue.are_open(), "the second host's");
        let late: Vec<TaskId> = queue.give_up().into_iter().map(|check| check.task).collect();
        assert_eq!((late, queue.are_open()), (vec![TaskId::new(1)], false));
        assert!(
            queue.is_check_vm(first) && queue.get(ONE, first).is_none(),
            "late words are no report"
        );
    }

    #[test]
    fn what_a_lost_host_had_to_do_is_left() {
        let mut queue = queue();
        let begun = queue.begin_checks();
        assert!(queue.take_answered(ONE, begun[0].1).is_some());
        let left: Vec<TaskId> = queue.lose_host(ONE).into_iter().map(|check| check.task).collect();
        assert_eq!(left, [TaskId::new(2), TaskId::new(3)]);
        assert!(queue.lose_host(ONE).is_empty() && queue.are_open());
        assert!(queue.is_waiting());
        queue.skip_checks();
        assert!(!queue.is_waiting());
    }
}
