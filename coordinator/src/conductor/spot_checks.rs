//! Spot checks: once the last task has ended, a few tasks are computed again on a different host, most of them in part.
//!
//! A check is a task like any other, on a VM of its own that isn't part of the run: it affects no decision, bill or
//! figure, and no worker is told that it is a check. Which tasks are checked, and which parts of them, is drawn when
//! all answers are there.

use std::sync::Arc;
use std::time::Duration;

use dormouse_model::{CheckFinding, Event, ProgramEnd, Report, Submission};
use dormouse_proto::v1;
use dormouse_tasks::answer;
use dormouse_tasks::limits::largest_checkpoint;
use dormouse_tasks::own::TaskProgram;
use dormouse_tasks::result::TaskResult;
use dormouse_tasks::spot_check::{CheckAmount, CheckOrder};
use dormouse_units::{Bytes, HostId, TypeName, VmId};
use ractor::ActorRef;
use tokio::time::Instant;

use super::ConductorState;
use super::send_later;
use crate::conductor::check_queue::{OpenCheck, SeenAnswer};
use crate::conductor::check_work::{CheckWork, CheckedAnswer, is_deterministic};
use crate::conductor::roster::{HostStanding, RosterLife};
use crate::log::journal::JournalMsg;
use crate::messages::message::ConductorMsg;
use crate::protocol::link::{DecisionInstant, QueuedCommand};
use crate::sessions::session::DurableRelease;
use crate::time::outage::to_micros;

/// Greatest number of spot checks in a run, whatever the run's CPU time.
const MOST_CHECKS: usize = 64;
/// Time that a host has for its checks, beside four times the expected time.
const PATIENCE: Duration = Duration::from_secs(10);
/// Least CPU time of a check.
const LEAST_CPU: Duration = Duration::from_millis(2);
/// Largest ratio of the speeds of two hosts that checks allow for.
const MOST_TIMES: u32 = 20;
/// CPU time that the process of a check takes to start, to end, and to get its memory.
const BIRTH: Duration = Duration::from_millis(20);

impl ConductorState {
    /// Returns whether spot checks are under way; begins them if the run needs some.
    pub(super) fn spot_checks_go_on(&mut self, myself: &ActorRef<ConductorMsg>) -> bool {
        if self.checks.is_waiting() && self.run.cancel_reason().is_none() && !self.plan.noop {
            let longest = self.begin_checks();
            if self.checks.are_open() {
                send_later(PATIENCE + longest * 4, myself, ConductorMsg::ChecksLate);
            }
            self.hand_over();
        }
        self.checks.are_open()
    }

    /// Gives up the checks whose time is over.
    pub(super) fn checks_are_late(&mut self) {
        let late = self.checks.give_up();
        self.leave_unanswered(late, "it did not answer in time");
    }

    /// Drops the spot checks of a lost host.
    pub(super) fn lose_checks(&mut self, host: HostId) {
        let lost = self.checks.lose_host(host);
        self.leave_unanswered(lost, "its worker is gone");
    }

    fn leave_unanswered(&mut self, checks: Vec<OpenCheck>, why: &str) {
        for check in checks {
            self.log_finding(&check, CheckFinding::Unanswered { why: why.to_owned() }, 0);
        }
    }

    /// Handles a report of a host about a spot check.
    pub(super) fn hear_check(&mut self, host: HostId, report: &Report, account: Option<&Report>) {
        let Some(check) = self.checks.get(host, report.vm()) else { return };
        let vm = check.vm;
        match report {
            Report::VmCreated { .. } => {
                let (task, attempt) = (check.task, check.attempt);
                if let CheckWork::Whole { program, .. } = &check.work {
                    let most = largest_checkpoint(check.memory, 1, program.quota);
                    self.outstanding.assignments().told_check(host, (task, attempt), most);
                }
                let start = self.start_of(check);
                self.send_command(host, v1::command::Command::StartTask(start));
            }
            Report::TaskFinished { result, real_cpu_us, .. } => {
                let finding = check.work.compare_result(result.as_deref(), account);
                self.check_answered(host, vm, finding, *real_cpu_us);
            }
            Report::TaskFailed { why, .. } => self.check_has_failed(host, vm, why.clone()),
            Report::VmFailed { why, .. } => {
                self.check_has_failed(host, vm, why.clone());
                self.next_check(host);
            }
            Report::VmDestroyed { .. } => {
                self.check_has_failed(
                    host,
                    vm,
                    "its VM was gone before it had answered".to_owned(),
                );
                self.next_check(host);
            }
            _ => {}
        }
    }

    fn check_has_failed(&mut self, host: HostId, vm: VmId, why: String) {
        self.check_answered(host, vm, CheckFinding::Unanswered { why }, 0);
    }

    /// Records the first outcome of a check; later ones are ignored.
    fn check_answered(&mut self, host: HostId, vm: VmId, finding: CheckFinding, cpu_us: u64) {
        let Some(check) = self.checks.take_answered(host, vm) else { return };
        self.log_finding(&check, finding, cpu_us);
        self.send_command(host, v1::command::Command::DestroyVm(v1::VmRef { vm: vm.get() }));
    }

    /// Logs the outcome of a check.
    fn log_finding(&mut self, check: &OpenCheck, finding: CheckFinding, real_cpu_us: u64) {
        let (task, of, by, whole) = (check.task, check.of, check.by, check.work.is_whole());
        if let CheckFinding::Differs { why } = &finding {
            tracing::warn!(%task, %of, %by, why, "a task's answer differs from what another host computed");
        }
        if whole {
            self.outstanding.assignments().drop_attempts([(task, None)].into_iter());
        }
        self.checks.spend_time(Duration::from_micros(real_cpu_us));
        self.feed_event(self.last, Event::SpotCheck { task, of, by, whole, real_cpu_us, finding });
    }

    fn next_check(&mut self, host: HostId) {
        if let Some(vm) = self.checks.next_of(host) {
            self.create_for_check(host, vm);
        }
    }

    fn create_for_check(&mut self, host: HostId, vm: VmId) {
        let kind = self.run.setup().catalogue.types.keys().next().map(TypeName::as_str);
        let kind = kind.unwrap_or_default().to_owned();
        let create = v1::CreateVm { vm: vm.get(), kind, vcpus: 1, ..v1::CreateVm::default() };
        self.send_command(host, v1::command::Command::CreateVm(create));
    }

    /// Sends a worker a command that belongs to no step.
    fn send_command(&mut self, host: HostId, command: v1::command::Command) {
        let Some(session) = self.roster.get(host).and_then(|entry| entry.session.clone()) else {
            return;
        };
        let command = v1::Command { command: Some(command), ..v1::Command::default() };
        let commands = vec![QueuedCommand { command, since: DecisionInstant::At(Instant::now()) }];
        self.batch.then.push(Box::new(DurableRelease { session, commands, durable: 0 }));
    }

    /// Hands steps made so far to the journal, so that later commands wait for the steps of their own message only.
    fn hand_over(&mut self) {
        let _ = self.journal.cast(JournalMsg::Append(std::mem::take(&mut self.batch)));
    }

    /// Draws the checks and begins them; returns the longest time that the checks of any one host are expected to take.
    fn begin_checks(&mut self) -> Duration {
        let is_there = |(_, entry): &(HostId, &RosterLife)| {
            entry.standing == HostStanding::Joined && entry.session.is_some()
        };
        let there: Vec<HostId> =
            self.roster.iter().filter(is_there).map(|(host, _)| host).collect();
        if there.len() < 2 {
            return Duration::ZERO;
        }
        let computed = self.run.tasks().iter().map(|task| task.real_cpu_us);
        let computed =
            computed.fold(0_u64, u64::saturating_add).max(to_micros(self.checks.computed_time()));
        let most = u128::from(computed) * u128::from(self.plan.spot_checks.get()) / 1_000_000;
        let mut left = Duration::from_micros(u64::try_from(most).unwrap_or(u64::MAX));
        self.checks.allow_time(left);
        let mut drawn = 0;
        for answer in self.checks.take_answers() {
            // Which are looked at, by which host and where is drawn now.
            let draw = || self.plan.world.chance.draw_number();
            let (Ok(order), Ok(host), Ok(part)) = (draw(), draw(), draw()) else {
                tracing::warn!(
                    "no answer is checked on another host: the host gives no random numbers"
                );
                break;
            };
            let others = self.others_than(answer.host, &there);
            let place = usize::try_from(host % others.len().max(1) as u64).unwrap_or_default();
            if let Some(by) = others.get(place) {
                self.checks.consider_answer(order, answer, *by, part);
            }
        }
        for (answer, by, part) in self.checks.take_considered() {
            if drawn == MOST_CHECKS {
                break;
            }
            let check = match &answer.answer {
                CheckedAnswer::Text(text) => self.order_part(&answer, by, text, part),
                CheckedAnswer::Own(end) => self.order_whole(&answer, by, end),
            };
            let Some(check) = check else { continue };
            // All of a program may be all that the run computed.
            let is_first = drawn == 0 && !check.work.is_whole();
            // What all of a program took has its birth in it.
            let takes = if check.work.is_whole() { check.takes } else { check.takes + BIRTH };
            if takes <= left || is_first {
                left = left.saturating_sub(takes);
                drawn += 1;
                self.checks.add_check(check);
            }
        }
        for (host, vm) in self.checks.begin_checks() {
            self.create_for_check(host, vm);
        }
        self.checks.longest_host()
    }

    /// Returns the hosts that may check a host's reports: those on other machines, if there are any.
    fn others_than(&self, of: HostId, there: &[HostId]) -> Vec<HostId> {
        let machine = |host| self.facts.loads.get(&host).map(|load| &load.machine);
        let others = there.iter().copied().filter(|host| *host != of);
        let apart: Vec<HostId> =
            others.clone().filter(|host| machine(*host) != machine(of)).collect();
        if apart.is_empty() { others.collect() } else { apart }
    }

    /// Makes the check of an answer by computing a part of the work again; `None` if another host can't compute it,
    /// or the answer is known to be wrong already.
    fn order_part(
        &mut self,
        seen: &SeenAnswer,
        by: HostId,
        text: &str,
        part: u64,
    ) -> Option<OpenCheck> {
        let (task, of) = (seen.task, seen.host);
        let index = task.get() as usize;
        let arguments = self.arguments_of(seen);
        if arguments.is_empty() {
            return None;
        }
        let answer: TaskResult = serde_json::from_str(text).ok()?;
        let nonce = answer::nonce(self.plan.answer_seed, task);
        let ordered = self.facts.cpu_us.get(index).copied().unwrap_or_default();
        let ordered = Duration::from_micros(ordered);
        let each = self.roster.get(by).map(|entry| self.plan.per_task(&entry.repetition_us));
        let each = Duration::from_micros(each?.get(index).copied().unwrap_or_default());
        let takes =
            |repetitions: u64| each.saturating_mul(u32::try_from(repetitions).unwrap_or(u32::MAX));
        let drawn = CheckOrder::draw(&arguments, nonce, &answer, part).and_then(|order| {
            let Some(order) = order else { return Ok(None) };
            let takes = match order.amount {
                CheckAmount::CpuTime(takes) => takes,
                // A part of what nobody can have done could keep the other host for ever.
                CheckAmount::Repetitions { all, .. }
                    if all > 1 && takes(all) > ordered.saturating_mul(MOST_TIMES) =>
                {
                    return Err(format!(
                        "it claims {} repetitions, which would take {:.3} s of CPU time on {by}; \
                         {:.3} s were ordered",
                        answer.repetitions,
                        takes(all).as_secs_f64(),
                        ordered.as_secs_f64()
                    ));
                }
                CheckAmount::Repetitions { part, .. } => takes(part),
            };
            Ok(Some((order, takes.max(LEAST_CPU))))
        });
        match drawn {
            Ok(drawn) => {
                let (order, takes) = drawn?;
                let work = CheckWork::Part { order, answer: Box::new(answer), ordered };
                Some(self.open_check(seen, by, work, (takes, Duration::ZERO)))
            }
            Err(why) => {
                let finding = CheckFinding::Differs { why };
                let (whole, real_cpu_us) = (false, 0);
                self.feed_event(
                    self.last,
                    Event::SpotCheck { task, of, by, whole, real_cpu_us, finding },
                );
                None
            }
        }
    }

    /// Makes the check of a user's own program by running it again; `None` if its outputs may differ each time.
    fn order_whole(
        &mut self,
        seen: &SeenAnswer,
        by: HostId,
        end: &Arc<ProgramEnd>,
    ) -> Option<OpenCheck> {
        let task = seen.task;
        let program = self.outstanding.assignments().program_of(task)?.program;
        if !is_deterministic(&program) || !end.not_kept.is_empty() {
            return None;
        }
        let takes = Duration::from_micros(self.run.tasks().get(task)?.real_cpu_us).max(LEAST_CPU);
        let waits = Duration::from_micros(end.real_waited_us);
        let work = CheckWork::Whole { program, end: Arc::clone(end) };
        Some(self.open_check(seen, by, work, (takes, waits)))
    }

    fn open_check(
        &mut self,
        seen: &SeenAnswer,
        by: HostId,
        work: CheckWork,
        (takes, waits): (Duration, Duration),
    ) -> OpenCheck {
        let (task, of, attempt) = (seen.task, seen.host, seen.attempt.next());
        let (vm, memory) = (self.checks.next_vm(), self.memory_of(seen));
        OpenCheck { vm, task, attempt, of, by, work, memory, takes, waits }
    }

    /// Returns the parallel job whose end an event reports; `None`: the event reports none.
    pub(super) fn job_that_ends(&self, event: &Event) -> Option<Arc<Submission>> {
        let Event::Machine { report: Report::TaskFinished { task, .. }, .. } = event else {
            return None;
        };
        self.run.tasks().get(*task)?.job.clone()
    }

    /// Returns the arguments of a task's `dormouse-task` program; empty for a user's own program.
    fn arguments_of(&self, seen: &SeenAnswer) -> Vec<String> {
        match (&seen.job, &self.loads.parallel) {
            (Some(job), Some(programs)) => programs.job_arguments(job),
            _ => {
                let program = self.plan.programs.get(seen.task.get() as usize);
                program.map_or(&[][..], TaskProgram::kernel).to_vec()
            }
        }
    }

    /// Returns the memory of a task or of each process of a parallel job; zero: it isn't specified.
    fn memory_of(&self, seen: &SeenAnswer) -> Bytes {
        let of_bag = self.run.setup().bag.tasks.get(seen.task.get() as usize);
        let of_bag = of_bag.map(|task| task.memory);
        seen.job.as_ref().map(|job| job.memory).or(of_bag).unwrap_or_default()
    }

    /// Makes the command that starts a check.
    fn start_of(&self, check: &OpenCheck) -> v1::StartTask {
        let (program, own) =
            check.work.make_program(answer::nonce(self.plan.answer_seed, check.task));
        let (vm, task, attempt) = (check.vm.get(), check.task.get(), check.attempt.get());
        // Half of a core: that much is there once all else has ended.
        let runtime = self.plan.speedup.to_emulated(check.takes * 2).as_micros().max(1);
        v1::StartTask {
            task: Some(v1::TaskRef { vm, task, attempt }),
            program: Some(program),
            seats: Some(v1::Seats { tier: v1::Tier::Foreground.into(), vcpus: vec![0] }),
            memory_bytes: check.memory.get(),
            emulated_runtime_us: runtime,
            real_cpu_us: to_micros(check.takes),
            own,
            ..v1::StartTask::default()
        }
    }
}
