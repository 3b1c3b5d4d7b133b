use dormouse_model::{StartReason, VmEnd};
use dormouse_units::{HostId, Time};

use super::*;

const VM: VmId = VmId::new(3);
const OTHER: VmId = VmId::new(4);

const fn attempt(number: u32) -> Attempt {
    Attempt::new(number)
}

const fn task(number: u32) -> TaskId {
    TaskId::new(number)
}

/// The attempts of a log under test, and the number of its next step.
#[derive(Default)]
struct Log(Attempts, u64);

impl Log {
    fn new(tasks: u32) -> Self {
        Self(Attempts::new(tasks), 0)
    }

    fn see(&mut self, change: impl FnOnce(&mut Step)) -> Result<(), Broken> {
        let mut step = Step::blank();
        step.begin_step(self.1, Time::ZERO, Event::Tick);
        change(&mut step);
        self.1 += 1;
        self.0.see(&step)
    }

    fn sends(&mut self, of: TaskId, as_attempt: u32, vm: VmId) -> Result<(), Broken> {
        self.see(|step| send(step, of, as_attempt, vm))
    }

    fn hears(&mut self, report: Report) -> Result<(), Broken> {
        self.see(|step| hear(step, report))
    }

    fn finishes(&mut self, of: TaskId, as_attempt: u32) -> Result<(), Broken> {
        self.see(|step| {
            hear(step, finished(of, as_attempt));
            step.notices.push(Notice::TaskFinished { task: of, vm: VM });
        })
    }

    fn ends(&mut self, complete: bool) -> Result<(), Broken> {
        self.see(|step| step.effects.push(Effect::Over { complete }))?;
        self.0.finish(false)
    }
}

fn send(step: &mut Step, of: TaskId, as_attempt: u32, vm: VmId) {
    let on = dormouse_units::Seats::first_free(vm);
    let (mode, reason) = (dormouse_units::Mode::Burst, StartReason::Planned);
    step.decisions.push(Decision::Start { task: of, on, mode, reason });
    let attempt = attempt(as_attempt);
    let sent = Effect::TaskSent { task: of, attempt, vm, reason, from: None, vcpu: None };
    step.effects.push(sent);
}

fn hear(step: &mut Step, report: Report) {
    step.event = Event::Machine { host: HostId::new(1), number: 1, report };
}

fn finished(of: TaskId, as_attempt: u32) -> Report {
    Report::TaskFinished {
        vm: VM,
        task: of,
        attempt: attempt(as_attempt),
        verified: true,
        reported: false,
        program_failed: false,
        result: None,
        real_cpu_us: 0,
    }
}

fn failed(of: TaskId, as_attempt: u32) -> Report {
    let (why, attempt) = (String::new(), attempt(as_attempt));
    Report::TaskFailed { vm: VM, task: of, attempt, why, real_cpu_us: 0, could_not_restore: false }
}

fn breaks(looked: Result<(), Broken>, invariant: Invariant, part: &str) {
    let (broken, why) = looked.expect_err(part);
    assert_eq!(broken, invariant, "{why}");
    assert!(why.contains(part), "{why}");
}

#[test]
fn a_task_is_sent_again_only_once_its_attempt_is_over() {
    let sent = || {
        let mut log = Log::new(1);
        log.sends(task(0), 1, VM).expect("the first");
        log
    };
    breaks(sent().sends(task(0), 2, OTHER), Invariant::OneAttempt, "attempt1 is on vm3");
    // An end in each way that there is.
    let mut log = sent();
    log.hears(failed(task(0), 1)).expect("it runs");
    log.sends(task(0), 2, OTHER).expect("it failed");
    let mut log = sent();
    let cost = dormouse_units::Money::ZERO;
    let ended = Effect::VmEnded { vm: VM, why: VmEnd::HostLost, cost };
    log.see(|step| step.effects.push(ended)).expect("it runs");
    log.sends(task(0), 2, OTHER).expect("its VM is gone");
    breaks(log.hears(finished(task(0), 1)), Invariant::OneAttempt, "attempt1 on vm3 is heard");
    let mut log = sent();
    log.hears(failed(task(0), 1)).expect("it runs");
    breaks(log.sends(task(0), 1, OTHER), Invariant::OneAttempt, "sent again as attempt1");
}

#[test]
fn a_stop_with_a_checkpoint_waits_for_its_machine() {
    for (runs, keep, is_over) in
        [(true, true, false), (true, false, true), (false, true, true), (false, false, true)]
    {
        let mut log = Log::new(1);
        if runs {
            log.see(|step| step.effects.push(Effect::VmReady { vm: VM })).expect("it boots");
        }
        log.sends(task(0), 1, VM).expect("the first");
        let again = log.see(|step| {
            step.decisions.push(Decision::Stop { task: task(0), vm: VM, keep });
            send(step, task(0), 2, OTHER);
        });
        assert_eq!(again.is_ok(), is_over, "runs: {runs}, keep: {keep}: {again:?}");
    }
    // A stop may take back the start of its own step.
    let mut log = Log::new(1);
    log.see(|step| {
        send(step, task(0), 1, VM);
        step.decisions.push(Decision::Stop { task: task(0), vm: VM, keep: false });
        send(step, task(0), 2, OTHER);
    })
    .expect("in order");
}

#[test]
fn every_task_of_a_complete_run_has_one_end() {
    let mut log = Log::new(2);
    log.sends(task(0), 1, VM).expect("the first");
    log.finishes(task(0), 1).expect("it runs");
    breaks(log.sends(task(0), 2, VM), Invariant::FinishedOnce, "is finished");
    breaks(log.ends(true), Invariant::FinishedOnce, "task1 has no end");
    let mut log = Log::new(1);
    log.sends(task(0), 1, VM).expect("the first");
    log.hears(finished(task(0), 1)).expect("it runs");
    breaks(log.ends(true), Invariant::FinishedOnce, "never heard of it");
    let mut log = Log::new(1);
    log.sends(task(0), 1, VM).expect("the first");
    log.finishes(task(0), 1).expect("it runs");
    breaks(log.ends(false), Invariant::FinishedOnce, "the run is not complete");
    breaks(log.ends(true), Invariant::FinishedOnce, "as 2 did");
    let mut log = Log::new(1);
    let heard = |step: &mut Step| step.notices.push(Notice::TaskFinished { task: task(0), vm: VM });
    breaks(log.see(heard), Invariant::FinishedOnce, "has no end and is told");
}

#[test]
fn an_attempt_is_born_once_and_after_it_was_sent() {
    let began = |number| Deed::Began {
        worker: "w".to_owned(),
        incarnation: 1,
        vm: VM,
        task: task(0),
        attempt: attempt(number),
        from: None,
    };
    let mut log = Log::new(1);
    breaks(log.0.did(&began(1)), Invariant::OneAttempt, "which no step sends");
    log.sends(task(0), 1, VM).expect("the first");
    log.0.did(&began(1)).expect("it was sent");
    breaks(log.0.did(&began(1)), Invariant::OneAttempt, "two processes");
    log.0.did(&Deed::Gone { task: task(0), attempt: attempt(1) }).expect("it ends");
    breaks(log.0.did(&began(1)), Invariant::OneAttempt, "begins again");
}
