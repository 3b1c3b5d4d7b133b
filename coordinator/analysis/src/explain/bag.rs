//! Explains from the log alone why a task of a bag ran where and when it did, and what became of a
//! VM.

use std::time::Duration;

use dormouse_cloud::InterruptionAction;
use dormouse_model::{Decision, Effect, EndReason, Notice, Setup, StartReason, Step, Task, VmEnd};
use dormouse_units::{Money, Span, TaskId, Time, VmId};

use super::explanation::{Explanation, charged_from, seconds};
use crate::outcome::WorkOutcome;
use crate::words::{event, heard, why_ended};
use crate::{
    AttemptEnd, AttemptHistory, RestoreFallback, RunRecord, TaskHistory, VmDisplacement,
    VmHibernation, VmHistory,
};

/// Explains the tasks and VMs of a recorded run.
#[derive(Debug)]
pub struct BagExplainer<'a> {
    setup: &'a Setup,
    has_plan: bool,
    is_alone: bool,
    steps: &'a [Step],
    record: RunRecord,
}

impl<'a> BagExplainer<'a> {
    /// Reads `steps` into `record`, which must be empty. `has_plan`: the scheduler began with a
    /// plan. `is_alone`: no parallel jobs share the run.
    #[must_use]
    pub fn new(
        (setup, has_plan, is_alone): (&'a Setup, bool, bool),
        mut record: RunRecord,
        steps: &'a [Step],
    ) -> Self {
        steps.iter().for_each(|step| record.see(step));
        Self { setup, has_plan, is_alone, steps, record }
    }

    /// Explains `task7`, `vm3`, a task by its name, or, where there are no parallel jobs, a task by
    /// its number; `None` if the run has no such thing.
    #[must_use]
    pub fn explain(&self, what: &str) -> Option<Explanation> {
        let tasks = &self.setup.bag.tasks;
        let number = |prefix: &str| what.strip_prefix(prefix)?.parse::<u32>().ok();
        if let Some(vm) = number("vm").and_then(|n| self.record.vms.get(&VmId::new(n))) {
            return Some(self.explain_vm(vm));
        }
        let by_name =
            || tasks.iter().position(|t| t.name == what).and_then(|n| u32::try_from(n).ok());
        // Beside a bag, a bare number is a parallel job's.
        let by_number = || number("").filter(|_| self.is_alone);
        let id = TaskId::new(number("task").or_else(by_name).or_else(by_number)?);
        let task = self.record.tasks.get(id.get() as usize)?;
        Some(self.explain_task(id, task))
    }

    fn explain_task(&self, id: TaskId, task: &TaskHistory) -> Explanation {
        let spec = self.setup.bag.tasks.get(id.get() as usize);
        let (name, memory) = spec.map(|t| (t.name.as_str(), t.memory)).unwrap_or_default();
        let mut told = Explanation::about(format!("{id} ({name}, {memory})"));
        if task.attempts.is_empty() {
            let is_over = self.record.over.is_some();
            let when = if is_over { "was never started" } else { "has not been started yet" };
            told.came_to.push(format!("It {when}: no decision of the scheduler names it."));
        }
        self.tell_followed(&mut told, spec);
        for n in 0..task.attempts.len() {
            self.tell_attempt(&mut told, id, task, n);
        }
        let lost: Span = task.attempts.iter().map(|a| self.lost_work(a)).sum();
        told.came_to.push(format!("{} Work lost: {}.", self.came_of(task), seconds(lost)));
        told
    }

    /// The outcome of a task as a sentence.
    fn came_of(&self, task: &TaskHistory) -> String {
        let at = task.finished.unwrap_or_default().as_secs_f64();
        match (self.record.outcome(task), task.last()) {
            (Some(WorkOutcome::Failed(how)), _) => {
                format!("It failed at {at:.1} s: its program {how}.")
            }
            (Some(WorkOutcome::GivenUp), _) => match &self.record.cancelled {
                Some(why) => format!("It failed: it was given up as the run ended, {why}."),
                None => "It failed: it was given up.".to_owned(),
            },
            (Some(outcome), _) => format!("It was {outcome} at {at:.1} s."),
            (None, Some(attempt)) if attempt.ended.is_none() && attempt.started.is_some() => {
                format!("It is running on {}.", attempt.vm)
            }
            (None, Some(attempt)) if attempt.ended.is_none() => {
                format!("It is about to run on {}.", attempt.vm)
            }
            (None, _) => "It is waiting.".to_owned(),
        }
    }

    /// Adds to the explanation of a task the tasks that it follows: when the last of them finished,
    /// or which are still open.
    fn tell_followed(&self, told: &mut Explanation, spec: Option<&Task>) {
        let after = spec.map(|spec| spec.after.as_slice()).unwrap_or_default();
        let Some(submitted) = spec.map(|spec| spec.submitted).filter(|_| !after.is_empty()) else {
            return;
        };
        let name = |task: &TaskId| {
            let spec = self.setup.bag.tasks.get(task.get() as usize);
            spec.map_or_else(|| task.to_string(), |spec| spec.name.clone())
        };
        let names = |tasks: &mut dyn Iterator<Item = &TaskId>| {
            tasks.map(name).collect::<Vec<_>>().join(", ")
        };
        let end = |task: &TaskId| self.record.tasks.get(task.get() as usize)?.finished;
        let open = names(&mut after.iter().filter(|task| end(task).is_none()));
        let follows = names(&mut after.iter());
        let last = after.iter().filter_map(end).max().unwrap_or_default();
        match open.as_str() {
            "" => {
                let due = last.max(Time::ZERO + submitted);
                told.say(due, format!("came due: it follows {follows}"));
            }
            open => {
                told.came_to.push(format!("It follows {follows}. Not done of these: {open}."));
            }
        }
    }

    fn lost_work(&self, attempt: &AttemptHistory) -> Span {
        self.record.vms.get(&attempt.vm).map(|vm| attempt.lost(vm)).unwrap_or_default()
    }

    fn tell_attempt(&self, told: &mut Explanation, id: TaskId, task: &TaskHistory, n: usize) {
        let Some(attempt) = task.attempts.get(n) else { return };
        let before = n.checked_sub(1).and_then(|n| task.attempts.get(n));
        let kind = self.record.vms.get(&attempt.vm).map(|vm| format!("{} {}", vm.market, vm.kind));
        let (vm, kind, why) =
            (attempt.vm, kind.unwrap_or_default(), self.start_reason(attempt, before));
        told.say(attempt.sent, format!("sent to {vm} ({kind}): {why}"));
        let sent = |d: &Decision| matches!(d, Decision::Start { task, on, .. } if *task == id && on.vm == vm);
        if let Some(step) = self.step_deciding(attempt.sent, sent) {
            told.add(format!("decided because {}", cause(step, vm, Some(id))));
        }
        if let Some(at) = attempt.started {
            let from = attempt.from.map_or("from the beginning".to_owned(), |(seq, done)| {
                format!("from checkpoint {} with {done} done", seq.get())
            });
            let mode = match attempt.first_mode() {
                dormouse_units::Mode::Burst => "",
                dormouse_units::Mode::Baseline => ", in baseline mode",
            };
            told.say(at, format!("ran {from}{mode}{}", inputs_came(attempt)));
        }
        let asked = attempt
            .asked
            .iter()
            .map(|&(at, decided)| (at, self.checkpoint_reason(at, decided, id, vm)));
        let kept = attempt
            .checkpoints
            .iter()
            .map(|mark| (mark.at, format!("checkpoint {}: {} kept", mark.seq.get(), mark.done)));
        let stops = self.undone_stops(id, attempt);
        let stopped = stops.iter().map(|step| {
            let why = cause(step, vm, Some(id));
            (step.at, format!("a stop was asked for that keeps its work, decided because {why}"))
        });
        let idle = attempt.idle_words().map(|(at, what)| (at, format!("it {what}")));
        let changed = attempt.changed_words().map(|(at, what)| (at, format!("it {what}")));
        let said = idle.into_iter().chain(changed);
        let mut lines: Vec<_> = asked.chain(kept).chain(stopped).chain(said).collect();
        lines.sort_by_key(|(at, _)| *at);
        lines.into_iter().for_each(|(at, line)| told.say(at, line));
        let (before, after): (Vec<_>, Vec<_>) = attempt
            .fell_back
            .iter()
            .partition(|it| attempt.ended.as_ref().is_none_or(|e| it.at < e.0));
        before.iter().for_each(|it| fell_back(told, it));
        let Some((at, end)) = &attempt.ended else { return };
        let end = match end {
            AttemptEnd::Finished => match self.record.outcome(task) {
                Some(outcome) => outcome.to_string(),
                None => "ended".to_owned(),
            },
            AttemptEnd::Failed(why) => format!("failed: {why}"),
            AttemptEnd::Stopped(done) => format!("stopped with {done} kept"),
            AttemptEnd::Dropped => "given up there, to go on elsewhere".to_owned(),
            AttemptEnd::VmGone(why) => {
                let gone = format!("its VM was gone: {}", end_reason(*why));
                match stops.last() {
                    Some(step) => format!(
                        "{gone}; the stop that was asked for at {:.1} s was not done by then",
                        step.at.as_secs_f64()
                    ),
                    None => gone,
                }
            }
        };
        let lost = self.lost_work(attempt);
        let cost = if lost == Span::ZERO {
            String::new()
        } else {
            format!("; {} of work lost", seconds(lost))
        };
        told.say(*at, format!("{end}{cost}"));
        if let Some(why) = &attempt.unsaved {
            told.add(why.clone());
        }
        after.iter().for_each(|it| fell_back(told, it));
    }

    /// Steps in which the scheduler decided to stop the attempt with a checkpoint, but the attempt's VM was gone before the stop
    /// was done.
    fn undone_stops(&self, task: TaskId, attempt: &AttemptHistory) -> Vec<&Step> {
        let Some((until, AttemptEnd::VmGone(_))) = attempt.ended else { return Vec::new() };
        let is_it = |d: &Decision| matches!(d, Decision::Stop { task: t, vm, keep: true } if *t == task && *vm == attempt.vm);
        let steps = self.steps.iter().skip_while(|step| step.at < attempt.sent);
        let there = steps.take_while(|step| step.at <= until);
        there.filter(|step| step.decisions.iter().any(is_it)).collect()
    }

    /// Sentence on who requested a checkpoint of a task while the task ran.
    fn checkpoint_reason(&self, at: Time, decided: bool, task: TaskId, vm: VmId) -> String {
        let is_it = |d: &Decision| matches!(d, Decision::Checkpoint { task: t, .. } if *t == task);
        let why = match self.step_deciding(at, is_it).filter(|_| decided) {
            Some(step) => format!("decided because {}", cause(step, vm, Some(task))),
            None => self.wanted_by(at, task, vm).to_owned(),
        };
        format!("a checkpoint was asked for, {why}")
    }

    /// Cause of a checkpoint that no scheduler decided: the notice or hibernation of its VM, or its
    /// checkpointing scheme.
    fn wanted_by(&self, at: Time, task: TaskId, vm: VmId) -> &'static str {
        let is_it = |effect: &Effect| matches!(effect, Effect::CheckpointAsked { task: t, .. } if *t == task);
        let step = self.steps.iter().find(|step| step.at == at && step.effects.iter().any(is_it));
        let notices = || step.into_iter().flat_map(|step| &step.notices);
        let leaves = |it: &Notice| matches!(it, Notice::VmPreempting { vm: v, .. } if *v == vm);
        let freezes = |it: &Notice| matches!(it, Notice::VmHibernating { vm: v } if *v == vm);
        if notices().any(leaves) {
            "as its VM was given notice"
        } else if notices().any(freezes) {
            "as its VM was told to hibernate"
        } else {
            "by its checkpointing scheme"
        }
    }

    /// The scheduler's reason for the VM of an attempt, as a clause.
    fn start_reason(&self, attempt: &AttemptHistory, before: Option<&AttemptHistory>) -> String {
        match (attempt.reason, before) {
            (StartReason::Chosen, _) => {
                "its scheduler is a program of its own, which gave no reason".to_owned()
            }
            (StartReason::Planned, _) => {
                let ready = self.record.vms.get(&attempt.vm).and_then(|vm| vm.ready);
                let is_new = ready == Some(attempt.sent);
                match (self.has_plan, is_new) {
                    (true, true) => "the plan has it there, first on a vCPU that had just booted",
                    (true, false) => "the plan has it there, and a vCPU had become free",
                    (false, true) => "it was the next in order, and a vCPU had just booted",
                    (false, false) => "it was the next in order, and a vCPU was free",
                }
                .to_owned()
            }
            (StartReason::Stolen, _) => {
                "that VM was idle and took it over from another's queue".to_owned()
            }
            (StartReason::Migrated, Some(before)) => format!("it had to leave {}", before.vm),
            (StartReason::Migrated, None) => {
                "the VM that it was meant for was taken away".to_owned()
            }
            (StartReason::Retried, _) => "the attempt before had failed".to_owned(),
            (StartReason::Due, _) => "all that it follows was done, and a vCPU was free".to_owned(),
            (StartReason::Reused { job, age, expected }, _) => {
                let age = seconds(age);
                let why = match expected {
                    Some(span) => format!(
                        "for {} of work one of this age is at least as good as a new one",
                        seconds(span)
                    ),
                    None => "how long jobs take was not known yet".to_owned(),
                };
                format!("job {job} reuses that VM, usable for {age}: {why}")
            }
            (StartReason::NewVm { job, declined, expected }, _) => {
                let why = match (declined, expected) {
                    (n, Some(span)) if n > 0 => format!(
                        "{n} idle VMs were given back, for {} of work worse than new ones by their age",
                        seconds(span)
                    ),
                    (0, _) => "too few were idle".to_owned(),
                    (n, _) => format!("{n} idle VMs had run jobs, and none is reused"),
                };
                format!("job {job} has that VM new: {why}")
            }
            (
                StartReason::FirstInLine
                | StartReason::EndsBeforeShadow { .. }
                | StartReason::OnExtra { .. }
                | StartReason::ShortestWaiting,
                _,
            ) => "its queue had it next".to_owned(),
        }
    }

    /// The step at time `at` with a decision that `find` accepts; `None` if there is none.
    fn step_deciding(&self, at: Time, find: impl Fn(&Decision) -> bool) -> Option<&Step> {
        self.steps.iter().find(|step| step.at == at && step.decisions.iter().any(&find))
    }

    fn explain_vm(&self, vm: &VmHistory) -> Explanation {
        let VmHistory { id, market, kind, price, host, .. } = vm;
        let mut told = Explanation::about(format!("{id} ({market} {kind} at {price}, on {host})"));
        let because_of = |step: Option<&Step>| {
            step.map(|step| format!(", because {}", cause(step, *id, None))).unwrap_or_default()
        };
        let is_launch = |d: &Decision| matches!(d, Decision::Launch { vm, .. } if vm == id);
        let launched = self.step_deciding(vm.launched, is_launch);
        let launch = format!("launched{}{}", because_of(launched), charged_from(vm, vm.launched));
        told.say(vm.launched, launch);
        self.tell_wait(&mut told, vm);
        if let Some(at) = vm.ready {
            told.say(at, format!("booted{}", charged_from(vm, at)));
        }
        let mut recommended = self.recommendations(vm).into_iter().peekable();
        let mut displaced = vm.displaced.iter().peekable();
        for hibernation in &vm.hibernations {
            while let Some((at, words)) = recommended.next_if(|(at, _)| *at <= hibernation.asked) {
                told.say(at, words);
            }
            while let Some(it) = displaced.next_if(|it| it.at <= hibernation.asked) {
                self.tell_displacement(&mut told, vm, it);
            }
            self.tell_hibernation(&mut told, vm, hibernation);
        }
        recommended.for_each(|(at, words)| told.say(at, words));
        displaced.for_each(|it| self.tell_displacement(&mut told, vm, it));
        tell_supplies(&mut told, vm);
        if let Some((at, why, _)) = vm.ended {
            let is_end = |d: &Decision| matches!(d, Decision::Terminate { vm, .. } if vm == id);
            let ended = self.step_deciding(at, is_end);
            let reason = ended.and_then(|step| step.decisions.iter().find_map(reason_of(*id)));
            told.say(at, format!("ended: {}{}", end_reason(why), because_of(ended)));
            reason.into_iter().for_each(|reason| told.add(why_ended(reason)));
        }
        let finished = self.record.finished_on(*id);
        let charged: Span =
            vm.charges().iter().map(dormouse_cloud::ChargedInterval::duration).sum();
        let (charged, cost) = (seconds(charged), vm.cost());
        let disk = match vm.meter().disk_cost() {
            Money::ZERO => String::new(),
            disk => format!(", {disk} of it for its disk while it was hibernated"),
        };
        let surplus = match vm.surcharge {
            Money::ZERO => String::new(),
            surplus => format!(", {surplus} of it for surplus credits"),
        };
        let mut came_to =
            format!("Charged {charged}, {cost}{disk}{surplus}; {finished} tasks finished on it.");
        let (there, had) = vm.supplied(self.record.end());
        if vm.is_background && there > Span::ZERO {
            came_to += &format!(
                " Of the {} for which its vCPUs were there, the VMs in the foreground left them {:.1} %.",
                seconds(there),
                had.fraction_of(there).as_f64() * 100.0
            );
        }
        told.came_to.push(came_to);
        told
    }

    /// Times at which the provider recommended to replace a VM, each with a sentence on what happened next.
    fn recommendations(&self, vm: &VmHistory) -> Vec<(Time, String)> {
        let acts = self.record.interruptions.iter();
        let recommended = acts
            .filter(|act| act.action == InterruptionAction::Rebalance && act.vms.contains(&vm.id))
            .map(|act| act.at);
        let in_words = |at: Time| {
            let hibernated =
                vm.hibernations.iter().map(|it| it.frozen).find(|frozen| *frozen >= at);
            let taken = vm.ended.as_ref().filter(|(_, why, _)| *why == VmEnd::Preempted);
            match (hibernated, taken) {
                (Some(frozen), _) => {
                    let lead = seconds(frozen.since(at));
                    format!("recommended to be replaced, {lead} before it hibernated")
                }
                (None, Some((end, ..))) => {
                    let lead = seconds(end.since(at));
                    format!("recommended to be replaced, {lead} before the provider took it back")
                }
                (None, None) => "recommended to be replaced; no interruption followed".to_owned(),
            }
        };
        recommended.map(|at| (at, in_words(at))).collect()
    }

    /// Adds the VMs whose room this VM waited for, and how long it waited.
    fn tell_wait(&self, told: &mut Explanation, vm: &VmHistory) {
        if vm.waited_for.is_empty() {
            return;
        }
        let names: Vec<_> = vm.waited_for.iter().map(VmId::to_string).collect();
        told.add(format!("waits for room that {} leaves", names.join(", ")));
        if let Some(span) = self.wait_of(vm) {
            told.say(vm.launched + span, format!("has its room, after {}", seconds(span)));
        }
    }

    /// How long a VM waited for other VMs' room; `None` if the VM never was ready.
    fn wait_of(&self, vm: &VmHistory) -> Option<Span> {
        Some(vm.ready?.since(vm.launched).saturating_sub(self.setup.catalogue.boot))
    }

    /// Adds which VM got the room of `vm`, how `vm` ended or resumed, and how long the other VM waited.
    fn tell_displacement(&self, told: &mut Explanation, vm: &VmHistory, it: &VmDisplacement) {
        let by = self.record.vms.get(&it.by);
        let whose = by.map_or_else(
            || "another tenant's".to_owned(),
            |by| format!("{} {}", by.market, by.kind),
        );
        let boots = vm.ready.is_none_or(|ready| it.at < ready);
        let how = match it.action {
            InterruptionAction::Hibernate => "it hibernates",
            _ if boots => "it still boots, and ends at once",
            _ => "it is given notice",
        };
        told.say(it.at, format!("{} ({whose}) gets its room: {how}", it.by));
        let Some(by) = by else { return };
        told.add(match (self.wait_of(by), by.ready, by.ended) {
            (Some(span), Some(at), _) => {
                let at = at.as_secs_f64();
                format!("{} waited {} for room, and was ready at {at:.1} s", it.by, seconds(span))
            }
            (_, _, Some((at, why, _))) => {
                let (at, why) = (at.as_secs_f64(), end_reason(why));
                format!("{} was never ready: at {at:.1} s {why}", it.by)
            }
            _ => format!("{} is not ready yet", it.by),
        });
    }

    /// Adds a hibernation, and the work and time that it cost.
    fn tell_hibernation(&self, told: &mut Explanation, vm: &VmHistory, h: &VmHibernation) {
        let late = seconds(h.frozen.since(h.asked));
        told.say(h.frozen, format!("hibernated, {late} after it was asked for"));
        let until = h.resumed.map_or(vm.end_or(self.record.end()), |(_, at)| at);
        let mut left = 0;
        let mut lost = Span::ZERO;
        let mut late = Span::ZERO;
        for task in &self.record.tasks {
            for (n, attempt) in task.attempts.iter().enumerate() {
                let Some((at, _)) = &attempt.ended else { continue };
                if attempt.vm == vm.id
                    && (h.frozen..=until).contains(at)
                    && attempt.sent <= h.frozen
                {
                    left += 1;
                    lost += self.lost_work(attempt);
                    let again = task.attempts.get(n + 1).and_then(|a| a.started);
                    late += again.map(|again| again.since(h.frozen)).unwrap_or_default();
                }
            }
        }
        if left > 0 {
            let (lost, late) = (seconds(lost), seconds(late));
            told.add(format!(
                "cost: {left} running tasks left it, {lost} of work lost, {late} until they ran again"
            ));
        }
        match h.resumed {
            Some((asked, at)) => {
                if vm.displaced.iter().any(|it| it.given_back == Some(asked)) {
                    told.say(asked, "its host has room for it again");
                }
                told.say(at, "resumed");
            }
            None => told.add("never resumed"),
        }
    }
}

/// Adds to the explanation each change of the processor shares that the foreground left to a background VM.
fn tell_supplies(told: &mut Explanation, vm: &VmHistory) {
    for together in vm.supplies.chunk_by(|(at, ..), (next, ..)| at == next) {
        let shares = together.iter().map(|(_, vcpu, share)| format!("{share} of vCPU {vcpu}"));
        let shares: Vec<_> = shares.collect();
        let at = together.first().map_or(vm.launched, |(at, ..)| *at);
        told.say(at, format!("left {} by the foreground", shares.join(", ")));
    }
}

/// Clause on the time that the inputs of an attempt's program took to arrive; empty if that was
/// less than a tenth of a second.
fn inputs_came(attempt: &AttemptHistory) -> String {
    const WORTH_TELLING_US: u64 = 100_000;
    match attempt.real_inputs_us {
        us if us < WORTH_TELLING_US => String::new(),
        us => {
            let real_s = Duration::from_micros(us).as_secs_f64();
            format!(
                ", once its inputs had come: {real_s:.1} s of real time, which are no work of it"
            )
        }
    }
}

/// Adds what the task begins with instead of a checkpoint that could not be restored.
fn fell_back(told: &mut Explanation, it: &RestoreFallback) {
    let number = it.from.0.get();
    let instead = match (it.to, it.not_on) {
        (Some(_), Some(host)) => {
            format!("it is tried once more on any other host; on {host} the task would begin anew")
        }
        (Some((older, done)), None) => {
            format!("checkpoint {}, with {done} done, is tried instead", older.get())
        }
        (None, _) => "the task begins anew".to_owned(),
    };
    let what = if it.given_up { "was given up by the scheduler" } else { "could not be restored" };
    told.say(it.at, format!("checkpoint {number} {what}: {instead}"));
}

/// Returns a function that reads, from a decision to give this VM back, the scheduler's reason;
/// `None` for other decisions.
fn reason_of(id: VmId) -> impl Fn(&Decision) -> Option<EndReason> {
    move |decision| match decision {
        Decision::Terminate { vm, reason } if *vm == id => *reason,
        _ => None,
    }
}

/// The notice that the scheduler answered to in this step, in words: preferably a notice about the
/// task, else about the VM, else any other. Notices of prices and credits come last, since prices
/// and credits are no causes by themselves.
fn cause(step: &Step, vm: VmId, task: Option<TaskId>) -> String {
    let rank = |notice: &&Notice| match notice {
        Notice::Price { .. } | Notice::Credits { .. } => 3,
        notice if task.is_some() && task_of(notice) == task => 0,
        notice if (*notice).clone().vm_mut().is_some_and(|it| *it == vm) => 1,
        _ => 2,
    };
    step.notices.iter().min_by_key(rank).map_or_else(|| event(&step.event).to_owned(), heard)
}

/// The task that a notice is about; `None` if the notice is not about a task.
const fn task_of(notice: &Notice) -> Option<TaskId> {
    match notice {
        Notice::TaskDue { task }
        | Notice::TaskStarted { task, .. }
        | Notice::TaskFinished { task, .. }
        | Notice::TaskFailed { task, .. }
        | Notice::TaskStopped { task, .. }
        | Notice::Checkpointed { task, .. } => Some(*task),
        _ => None,
    }
}

/// The reason for the end of a VM, as a clause.
const fn end_reason(why: VmEnd) -> &'static str {
    match why {
        VmEnd::Terminated => "its scheduler gave it back",
        VmEnd::Preempted => "the provider took it back",
        VmEnd::HostLost => "its host was lost",
        VmEnd::Failed => "its host could not make or keep it",
        VmEnd::WorkDone => "all work that it was there for was done",
        VmEnd::RunOver => "the run was over",
    }
}
