//! Why a task of a bag ran where and when it did, and what became of a VM: from the log alone.

use std::fmt::Write as _;

use dormouse_engine::{Step, VmEnd};
use dormouse_policies::{Decision, StartReason};
use dormouse_units::Mode;
use dormouse_units::{Span, TaskId, Time, VmId};

use crate::output::Header;
use crate::twin::event_in_words;
use dormouse_tell::{
    AttemptEnd, AttemptHistory, FallBack, Hibernation, Record, TaskHistory, VmHistory,
};

/// A recorded run to ask about.
#[derive(Debug)]
pub struct Explainer<'a> {
    header: &'a Header,
    steps: &'a [Step],
    record: Record,
}

fn s(at: Time) -> String {
    format!("{:9.1} s", at.as_secs_f64())
}

fn span(span: Span) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

impl<'a> Explainer<'a> {
    /// Reads a run.
    #[must_use]
    pub fn new(header: &'a Header, steps: &'a [Step]) -> Self {
        let mut record = header.record();
        for step in steps {
            record.see(step);
        }
        Self { header, steps, record }
    }

    /// What there is to say of `task7`, `vm3`, a task by its name, or, where there are no parallel jobs,
    /// by its number alone; `None` if there is no such.
    #[must_use]
    pub fn explain(&self, what: &str) -> Option<String> {
        let tasks = &self.header.experiment.setup.bag.tasks;
        let number = |prefix: &str| what.strip_prefix(prefix)?.parse::<u32>().ok();
        if let Some(vm) = number("vm").and_then(|n| self.record.vms.get(&VmId::new(n))) {
            return Some(self.vm(vm));
        }
        let by_name =
            || tasks.iter().position(|t| t.name == what).and_then(|n| u32::try_from(n).ok());
        // Beside a bag a number is a job's.
        let is_alone = self.header.experiment.jobs.is_none();
        let by_number = || number("").filter(|_| is_alone);
        let id = TaskId::new(number("task").or_else(by_name).or_else(by_number)?);
        let task = self.record.tasks.get(id.get() as usize)?;
        Some(self.task(id, task))
    }

    fn task(&self, id: TaskId, task: &TaskHistory) -> String {
        let spec = self.header.experiment.setup.bag.tasks.get(id.get() as usize);
        let (name, memory) = spec.map(|t| (t.name.as_str(), t.memory)).unwrap_or_default();
        let mut text = format!("{id} ({name}, {memory})\n");
        if task.attempts.is_empty() {
            text += "  It was never started: no decision of the scheduler names it.\n";
        }
        for (n, attempt) in task.attempts.iter().enumerate() {
            let before = n.checked_sub(1).and_then(|n| task.attempts.get(n));
            self.attempt(&mut text, id, attempt, before);
        }
        let lost: Span = task.attempts.iter().map(|a| self.lost(a)).sum();
        let done = task.finished.map_or("It was never completed.".to_owned(), |at| {
            format!("It was {} at {:.1} s.", self.header.mode.completed(), at.as_secs_f64())
        });
        let _ = write!(text, "  {done} Work lost: {}.", span(lost));
        text
    }

    fn lost(&self, attempt: &AttemptHistory) -> Span {
        self.record.vms.get(&attempt.vm).map(|vm| attempt.lost(vm)).unwrap_or_default()
    }

    fn attempt(
        &self,
        text: &mut String,
        id: TaskId,
        attempt: &AttemptHistory,
        before: Option<&AttemptHistory>,
    ) {
        let kind = self.record.vms.get(&attempt.vm).map(|vm| format!("{} {}", vm.market, vm.kind));
        let _ = writeln!(
            text,
            "  {}  sent to {} ({}): {}",
            s(attempt.sent),
            attempt.vm,
            kind.unwrap_or_default(),
            self.why(attempt, before)
        );
        if let Some(step) = self.decided(id, attempt) {
            let _ = writeln!(text, "  {:11}  decided in step {} on: {}", "", step.seq, cause(step));
        }
        if let Some(at) = attempt.started {
            let from = attempt.from.map_or("from the beginning".to_owned(), |(seq, done)| {
                format!("from checkpoint {} with {done} done", seq.get())
            });
            let mode = match attempt.first_mode() {
                Mode::Burst => "",
                Mode::Baseline => ", in baseline mode",
            };
            let _ = writeln!(text, "  {}  ran {from}{mode}", s(at));
        }
        let asked = attempt.asked.iter().map(|&(at, decided)| (at, self.asked(at, decided, id)));
        let kept = attempt
            .checkpoints
            .iter()
            .map(|mark| (mark.at, format!("checkpoint {}: {} kept", mark.seq.get(), mark.done)));
        let mut lines: Vec<_> = asked.chain(kept).collect();
        lines.sort_by_key(|(at, _)| *at);
        for (at, line) in lines {
            let _ = writeln!(text, "  {}  {line}", s(at));
        }
        let (before, after): (Vec<_>, Vec<_>) = attempt
            .fell_back
            .iter()
            .partition(|it| attempt.ended.as_ref().is_none_or(|e| it.at < e.0));
        before.iter().for_each(|it| fell_back(text, it));
        let Some((at, end)) = &attempt.ended else { return };
        let end = match end {
            AttemptEnd::Finished => self.header.mode.completed().to_owned(),
            AttemptEnd::Failed(why) => format!("failed: {why}"),
            AttemptEnd::Stopped(done) => format!("stopped with {done} kept"),
            AttemptEnd::Dropped => "given up there, to go on elsewhere".to_owned(),
            AttemptEnd::VmGone(why) => format!("its VM was gone: {}", because(*why)),
        };
        let lost = self.lost(attempt);
        let cost = if lost == Span::ZERO {
            String::new()
        } else {
            format!("; {} of work lost", span(lost))
        };
        let _ = writeln!(text, "  {}  {end}{cost}", s(*at));
        after.iter().for_each(|it| fell_back(text, it));
    }

    /// Who wanted a checkpoint of a task while it ran.
    fn asked(&self, at: Time, decided: bool, task: TaskId) -> String {
        let is_it = |d: &Decision| matches!(d, Decision::Checkpoint { task: t, .. } if *t == task);
        let step = self.steps.iter().find(|s| s.at == at && s.decisions.iter().any(is_it));
        match step.filter(|_| decided) {
            Some(step) => format!(
                "a checkpoint was asked for; decided in step {} on: {}",
                step.seq,
                cause(step)
            ),
            None => "a checkpoint was asked for, by its checkpointing scheme".to_owned(),
        }
    }

    /// Why an attempt was made there.
    fn why(&self, attempt: &AttemptHistory, before: Option<&AttemptHistory>) -> String {
        match (attempt.reason, before) {
            (StartReason::Planned, _) => {
                let ready = self.record.vms.get(&attempt.vm).and_then(|vm| vm.ready);
                if ready == Some(attempt.sent) {
                    "the plan has it there, first on a vCPU that had just booted".to_owned()
                } else {
                    "the plan has it there, and a vCPU had become free".to_owned()
                }
            }
            (StartReason::Stolen, _) => {
                "that VM was idle and took it over from another's queue".to_owned()
            }
            (StartReason::Migrated, Some(before)) => format!("it had to leave {}", before.vm),
            (StartReason::Migrated, None) => "the VM it was planned on was taken away".to_owned(),
            (StartReason::Retried, _) => "the attempt before had failed".to_owned(),
            (
                StartReason::FirstInLine
                | StartReason::EndsBeforeShadow { .. }
                | StartReason::OnExtra { .. }
                | StartReason::ShortestWaiting,
                _,
            ) => "its queue had it next".to_owned(),
        }
    }

    /// The step whose decision sent it.
    fn decided(&self, id: TaskId, attempt: &AttemptHistory) -> Option<&Step> {
        self.steps.iter().filter(|step| step.at == attempt.sent).find(|step| {
            step.decisions.iter().any(|d| {
                matches!(d, Decision::Start { task, on, .. } if *task == id && on.vm == attempt.vm)
            })
        })
    }

    fn vm(&self, vm: &VmHistory) -> String {
        let mut text =
            format!("{} ({} {} at {}, on {})\n", vm.id, vm.market, vm.kind, vm.price, vm.host);
        let decided = |at: Time, find: &dyn Fn(&Decision) -> bool| {
            self.steps
                .iter()
                .filter(|s| s.at == at)
                .find(|s| s.decisions.iter().any(find))
                .map(cause)
        };
        let on = |cause: Option<String>| cause.map(|c| format!(" on: {c}")).unwrap_or_default();
        let launched =
            decided(vm.launched, &|d| matches!(d, Decision::Launch { vm: v, .. } if *v == vm.id));
        let _ = writeln!(text, "  {}  launched{}", s(vm.launched), on(launched));
        if let Some(at) = vm.ready {
            let _ = writeln!(text, "  {}  booted; charged from here", s(at));
        }
        for hibernation in &vm.hibernations {
            self.hibernation(&mut text, vm, hibernation);
        }
        supplies(&mut text, vm);
        if let Some((at, why, _)) = vm.ended {
            let ended = decided(at, &|d| matches!(d, Decision::Terminate { vm: v } if *v == vm.id));
            let _ = writeln!(text, "  {}  ended: {}{}", s(at), because(why), on(ended));
        }
        let finished = self.record.finished_on(vm.id);
        let charged: Span = vm.charges().iter().map(dormouse_cloud::Charge::duration).sum();
        let _ = write!(
            text,
            "  Charged {}, {}; {finished} tasks finished on it.",
            span(charged),
            vm.cost()
        );
        let (there, had) = vm.supplied(self.record.end());
        if vm.is_background && there > Span::ZERO {
            let _ = write!(
                text,
                " Of the {} for which its vCPUs were there, the VMs in the foreground left them {:.1} %.",
                span(there),
                had.fraction_of(there).as_f64() * 100.0
            );
        }
        text
    }

    /// What a hibernation cost.
    fn hibernation(&self, text: &mut String, vm: &VmHistory, h: &Hibernation) {
        let late = h.frozen.since(h.asked);
        let _ =
            writeln!(text, "  {}  hibernated, {} after it was asked for", s(h.frozen), span(late));
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
                    lost += self.lost(attempt);
                    let again = task.attempts.get(n + 1).and_then(|a| a.started);
                    late += again.map(|again| again.since(h.frozen)).unwrap_or_default();
                }
            }
        }
        if left > 0 {
            let _ = writeln!(
                text,
                "  {:11}  cost: {left} running tasks left it, {} of work lost, {} until they ran again",
                "",
                span(lost),
                span(late)
            );
        }
        match h.resumed {
            Some((_, at)) => {
                let _ = writeln!(text, "  {}  resumed", s(at));
            }
            None => {
                let _ = writeln!(text, "  {:11}  never resumed", "");
            }
        }
    }
}

/// What a VM in the background was left of its processors, whenever that changed.
fn supplies(text: &mut String, vm: &VmHistory) {
    for together in vm.supplies.chunk_by(|(at, ..), (next, ..)| at == next) {
        let shares = together.iter().map(|(_, vcpu, share)| format!("{share} of vCPU {vcpu}"));
        let shares: Vec<_> = shares.collect();
        let at = together.first().map_or(vm.launched, |(at, ..)| *at);
        let _ = writeln!(text, "  {}  left {} by the foreground", s(at), shares.join(", "));
    }
}

/// What is tried instead of a checkpoint that could not be restored.
fn fell_back(text: &mut String, it: &FallBack) {
    let (at, number) = (it.at, it.from.0.get());
    let instead = match (it.to, it.not_on) {
        (Some(_), Some(host)) => {
            format!("it is tried once more on any other host; on {host} the task would begin anew")
        }
        (Some((older, done)), None) => {
            format!("checkpoint {}, with {done} done, is tried instead", older.get())
        }
        (None, _) => "the task begins anew".to_owned(),
    };
    let _ = writeln!(text, "  {}  checkpoint {number} could not be restored: {instead}", s(at));
}

/// What a step answered to, in words.
fn cause(step: &Step) -> String {
    if let Some(notice) = step.notices.first() {
        return serde_json::to_value(notice).map(|v| words(&v)).unwrap_or_default();
    }
    event_in_words(&step.event).to_owned()
}

/// Why a VM ended.
const fn because(why: VmEnd) -> &'static str {
    match why {
        VmEnd::Terminated => "its scheduler gave it back",
        VmEnd::Preempted => "the provider took it back",
        VmEnd::HostLost => "its host was lost",
        VmEnd::Failed => "its host could not make or keep it",
        VmEnd::WorkDone => "all work that it was there for was done",
        VmEnd::RunOver => "the run was over",
    }
}

/// A notice as text: `task-finished task 3 vm 1`.
fn words(notice: &serde_json::Value) -> String {
    let Some(fields) = notice.as_object() else { return notice.to_string() };
    let word = |(key, value): (&String, &serde_json::Value)| match (key.as_str(), value) {
        ("notice", serde_json::Value::String(name)) => name.clone(),
        (key, value) => format!("{key} {value}"),
    };
    fields.iter().map(word).collect::<Vec<_>>().join(" ")
}
