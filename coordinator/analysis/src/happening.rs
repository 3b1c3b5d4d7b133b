//! One line of words for a step of a run: the event, the provider's acts and the decisions.

use dormouse_cloud::{InterruptionAction, InterruptionTarget};
use dormouse_model::{
    CheckFinding, Decision, Effect, Event, FaultState, Report, StartReason, Step,
};
use dormouse_units::{Ppm, Span};

use crate::words;

/// Number of decisions, and of effects, of one step that are described; further ones are only counted.
const TOLD: usize = 4;

/// A step in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSummary {
    /// Kind of the event, one of [`StepSummary::KINDS`].
    pub kind: &'static str,
    /// The event as one line without its time.
    pub text: String,
    /// Names of the VMs, tasks and hosts concerned, such as `vm3`.
    pub about: Vec<String>,
}

impl StepSummary {
    /// All kinds: events of the run, its hosts, the provider, VMs, tasks, checkpoints, submissions
    /// and requests, and a live run's notes about itself.
    pub const KINDS: [&str; 8] =
        ["run", "host", "provider", "vm", "task", "checkpoint", "submission", "note"];

    /// Puts a step into words.
    #[must_use]
    pub fn from_step(step: &Step) -> Self {
        let (mut kind, what, mut about) = event_words(&step.event);
        let mut line = BoundedLine { parts: what.into_iter().collect(), ..BoundedLine::default() };
        for (of, text, whom) in step.effects.iter().filter_map(effect_words) {
            if of == "provider" || (kind == "note" && line.parts.is_empty()) {
                kind = of;
            }
            about.extend(whom);
            line.add(text);
        }
        line.told = 0;
        let refused = |place| step.effects.iter().any(|effect| effect.refuses_decision(place));
        for (place, decision) in step.decisions.iter().enumerate() {
            let Some(text) = words::decided(decision) else { continue };
            if kind == "note" {
                kind = kind_of(decision);
            }
            about.extend(decision_targets(decision));
            let not = if refused(place) { ", which could not be done" } else { "" };
            line.add(format!("decided: {text}{not}"));
        }
        about.sort_unstable();
        about.dedup();
        Self { kind, text: line.into_text(&step.event), about }
    }
}

/// Parts of a line, and the number of parts that are left out.
#[derive(Debug, Default)]
struct BoundedLine {
    parts: Vec<String>,
    told: usize,
    left: usize,
}

impl BoundedLine {
    /// Adds a part to the line, or only counts the part if the line has too many.
    fn add(&mut self, text: String) {
        if self.told < TOLD {
            self.parts.push(text);
        } else {
            self.left += 1;
        }
        self.told += 1;
    }

    fn into_text(mut self, of: &Event) -> String {
        match self.left {
            0 => {}
            1 => self.parts.push("and one thing more".to_owned()),
            n => self.parts.push(format!("and {n} things more")),
        }
        if self.parts.is_empty() {
            self.parts.push(words::event(of).to_owned());
        }
        self.parts.join("; ")
    }
}

/// The scheduler's reason to start a task or job, in words.
#[must_use]
pub const fn why_started(reason: StartReason) -> &'static str {
    words::why(reason)
}

/// The name of an act of the provider.
#[must_use]
pub const fn act(action: InterruptionAction) -> &'static str {
    match action {
        InterruptionAction::Hibernate => "hibernate",
        InterruptionAction::Resume => "resume",
        InterruptionAction::Preempt => "preempt",
        InterruptionAction::Rebalance => "rebalance",
    }
}

/// The VMs that an act of the provider aims at, in words.
#[must_use]
pub fn meant(target: &InterruptionTarget) -> String {
    match target {
        InterruptionTarget::Type(kind) => format!("all spot {kind}"),
        InterruptionTarget::Vm(vm) => vm.to_string(),
        InterruptionTarget::Zone(zone) => format!("all spot VMs of {zone}"),
        InterruptionTarget::All => "all spot VMs".to_owned(),
    }
}

type Told = (&'static str, Option<String>, Vec<String>);

fn event_words(event: &Event) -> Told {
    match event {
        Event::HostJoined { host, name, offer } => {
            let text = format!("{host} ({name}) joined, with {}", offer.vcpus_in_words());
            ("host", Some(text), vec![host.to_string()])
        }
        Event::HostLost { host, why, .. } => {
            ("host", Some(format!("{host} was lost: {why}")), vec![host.to_string()])
        }
        Event::Begin => ("run", Some("the experiment began".to_owned()), Vec::new()),
        Event::Submitted { task, job, .. } => {
            let processes = match job.processes {
                1 => "one process".to_owned(),
                n => format!("{n} processes"),
            };
            let text = format!("job {} of {processes} was submitted", job.number);
            ("submission", Some(text), vec![task.to_string()])
        }
        Event::Requested { request, asks } => {
            let text = format!("{request}, for one {} {}, came", asks.market, asks.kind);
            ("submission", Some(text), vec![request.to_string()])
        }
        Event::Called { call, .. } => {
            let text = format!("{} called {}", call.account, call.action);
            ("submission", Some(text), Vec::new())
        }
        Event::Closed | Event::AllSubmitted | Event::AllRequested => {
            ("submission", Some(words::event(event).to_owned()), Vec::new())
        }
        Event::Interrupt { target, action, why } => {
            let (act, target) = (act(*action), meant(target));
            let text = format!("an operator asked to {act} {target}: {why}");
            ("provider", Some(text), Vec::new())
        }
        Event::Fault { fault, hosts, lasts, kind } => {
            let whom: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            let on = if whom.is_empty() { "no host".to_owned() } else { whom.join(", ") };
            let text = match *lasts {
                Span::ZERO => format!("{fault}, {}, was asked of {on}", kind.name()),
                lasts => format!("{fault}, {} for {lasts}, was asked of {on}", kind.name()),
            };
            ("host", Some(text), whom)
        }
        Event::FaultFelt { fault, host, felt, .. } => {
            let text = match felt {
                FaultState::Begun => format!("{fault} is in effect on {host}"),
                FaultState::Over => format!("{fault} is over on {host}"),
                FaultState::Refused { why } => format!("{fault} can't be had on {host}: {why}"),
            };
            ("host", Some(text), vec![host.to_string()])
        }
        Event::Cancel { why } => ("run", Some(format!("the run was ended: {why}")), Vec::new()),
        Event::Resumed { outage, .. } => {
            let text = format!("the coordinator came back after {outage}");
            ("run", Some(text), Vec::new())
        }
        Event::Machine { host, report, .. } => report_words(host.to_string(), report),
        Event::Disbelieved { host, why } => {
            let text = format!("{host} is not believed: {why}");
            ("host", Some(text), vec![host.to_string()])
        }
        Event::JailLacking { host, lacks } => {
            let text = format!("{host} runs its tasks without {lacks}");
            ("host", Some(text), vec![host.to_string()])
        }
        Event::SpotCheck { task, of, by, whole, finding, .. } => {
            let what = if *whole { "all" } else { "a part" };
            let text = match finding {
                CheckFinding::Equal => {
                    format!("{by} computed {what} of {task} again, as {of} had")
                }
                CheckFinding::Differs { why } => {
                    format!("{by} computed {what} of {task} again, and not as {of} had: {why}")
                }
                CheckFinding::Unanswered { why } => {
                    format!("{by} did not compute {what} of {task} of {of} again: {why}")
                }
            };
            ("host", Some(text), vec![task.to_string(), of.to_string(), by.to_string()])
        }
        Event::Tick
        | Event::InstantOver
        | Event::Clock { .. }
        | Event::HostLoad { .. }
        | Event::CoordinatorLoad { .. } => ("note", None, Vec::new()),
    }
}

fn percent(done: Ppm) -> String {
    format!("{:.0} %", done.as_f64() * 100.0)
}

fn report_words(host: String, report: &Report) -> Told {
    let vm = report.vm();
    let ms = |us: u64| us as f64 / 1e3;
    let (kind, text, task) = match report {
        Report::VmCreated { .. } => ("vm", format!("{host} has made {vm}"), None),
        Report::VmFrozen { real_took_us, .. } => match real_took_us {
            0 => ("vm", format!("{vm} froze"), None),
            us => ("vm", format!("{vm} froze, which took {:.1} ms", ms(*us)), None),
        },
        Report::VmThawed { real_took_us, .. } => match real_took_us {
            0 => ("vm", format!("{vm} thawed"), None),
            us => ("vm", format!("{vm} thawed, which took {:.1} ms", ms(*us)), None),
        },
        Report::VmDestroyed { .. } => ("vm", format!("{host} has removed {vm}"), None),
        Report::VmFailed { why, .. } => ("vm", format!("{vm} failed: {why}"), None),
        Report::TaskStarted { task, done, .. } => {
            let from = match *done {
                Ppm::ZERO => String::new(),
                done => format!(" from {}", percent(done)),
            };
            ("task", format!("{task} runs on {vm}{from}"), Some(task))
        }
        Report::TaskFinished { task, verified: true, .. } => {
            ("task", format!("{task} finished on {vm}"), Some(task))
        }
        Report::TaskFinished { task, program_failed: true, .. } => {
            ("task", format!("{task} is over on {vm}: its program failed"), Some(task))
        }
        Report::TaskFinished { task, .. } => {
            ("task", format!("{task} ended on {vm} with a wrong answer"), Some(task))
        }
        Report::TaskFailed { task, why, .. } => {
            ("task", format!("{task} failed on {vm}: {why}"), Some(task))
        }
        Report::TaskStopped { task, kept: Some((_, done)), .. } => {
            let kept = percent(*done);
            ("task", format!("{task} was stopped on {vm}; {kept} of its work is kept"), Some(task))
        }
        Report::TaskStopped { task, .. } => {
            ("task", format!("{task} was stopped on {vm}"), Some(task))
        }
        Report::CheckpointTaken { task, checkpoint, done, bytes, .. } => {
            let mib = bytes.get() as f64 / f64::from(1 << 20);
            let text = format!(
                "{task} has checkpoint {} on {vm}: {} of its work, {mib:.1} MiB",
                checkpoint.get(),
                percent(*done)
            );
            ("checkpoint", text, Some(task))
        }
        Report::CheckpointFailed { task, why, .. } => {
            ("checkpoint", format!("a checkpoint of {task} on {vm} failed: {why}"), Some(task))
        }
        Report::TaskIdle { task, real_for_us, .. } => {
            let seconds = ms(*real_for_us) / 1000.0;
            let text = format!(
                "{task} on {vm} has neither computed nor written anything since it was restored, for {seconds:.0} s (real)"
            );
            ("note", text, Some(task))
        }
        Report::TaskCompared { task, changes, .. } => {
            let text = match changes.len() {
                0 => format!("the kernel says the same of {task} on {vm} as before its restore"),
                _ => format!("its restore has changed of {task} on {vm}: {}", changes.join("; ")),
            };
            ("note", text, Some(task))
        }
        Report::Credits { balance, .. } => {
            ("note", format!("{vm} has {:.2} credits", balance.as_f64()), None)
        }
        Report::Share { real_promised_us: promised, real_received_us: received, .. } => {
            let (promised, received) = (ms(*promised), ms(*received));
            let text = format!("{vm} had {received:.0} ms of CPU time, of {promised:.0} promised");
            ("note", text, None)
        }
        Report::TaskPromoted { task, .. } => {
            ("task", format!("{task} is in the foreground of {vm}"), Some(task))
        }
        Report::TaskMoved { task, .. } => {
            ("task", format!("{task} moved to other vCPUs of {vm}"), Some(task))
        }
        Report::JobAccount { task, .. } | Report::Ledger { task, .. } => {
            ("note", format!("{vm} gave its account of {task}"), Some(task))
        }
    };
    let about = [Some(vm.to_string()), task.map(ToString::to_string), Some(host)];
    (kind, Some(text), about.into_iter().flatten().collect())
}

/// Words for an effect that follows neither from a report nor from a decision; `None` for other effects.
fn effect_words(effect: &Effect) -> Option<(&'static str, String, Vec<String>)> {
    let provider =
        |text: String, vm: &dyn std::fmt::Display| Some(("provider", text, vec![vm.to_string()]));
    let vm_alone =
        |text: String, vm: &dyn std::fmt::Display| Some(("vm", text, vec![vm.to_string()]));
    match effect {
        Effect::VmReady { vm } => vm_alone(format!("{vm} has booted"), vm),
        Effect::Interrupted { action, target, vms, .. } => {
            let hit = match vms.as_slice() {
                [] => "which hit none".to_owned(),
                hit => {
                    let hit: Vec<_> = hit.iter().map(ToString::to_string).collect();
                    format!("which hit {}", hit.join(", "))
                }
            };
            let text = format!("the provider: {} {}, {hit}", act(*action), meant(target));
            Some(("provider", text, vms.iter().map(ToString::to_string).collect()))
        }
        Effect::PriceChanged { kind, price } => {
            Some(("provider", format!("spot {kind} costs {price} now"), Vec::new()))
        }
        Effect::AvailabilityChanged { kind, vms } => {
            Some(("provider", format!("{vms} spot {kind} can be had now"), Vec::new()))
        }
        Effect::Reclaimed { vm } => {
            provider(format!("the provider takes {vm} back, as fewer can be had"), vm)
        }
        Effect::Outbid { vm } => {
            provider(format!("the provider takes {vm}, which costs more than its bid"), vm)
        }
        Effect::Displaced { vm, by, .. } => provider(format!("{vm} makes room for {by}"), vm),
        Effect::GivenBack { vm } => provider(format!("{vm} has its room again"), vm),
        Effect::VmHibernated { vm, .. } => vm_alone(format!("{vm} is hibernated"), vm),
        Effect::VmResumed { vm, .. } => vm_alone(format!("{vm} is resumed"), vm),
        Effect::VmEnded { vm, why, cost } => {
            let why = why.one_word().replace('-', " ");
            vm_alone(format!("{vm} ended ({why}), cost ${:.4}", cost.as_usd()), vm)
        }
        Effect::CheckpointAsked { task, vm, .. } => {
            let about = vec![task.to_string(), vm.to_string()];
            Some(("checkpoint", format!("{task} is to be checkpointed on {vm}"), about))
        }
        Effect::RestoreFellBack { task, why, .. } => Some((
            "checkpoint",
            format!("{task} begins from something older: {why}"),
            vec![task.to_string()],
        )),
        Effect::Stale => Some((
            "note",
            "it is a late report of an earlier attempt or session, and ignored".to_owned(),
            Vec::new(),
        )),
        Effect::Answered { .. } => None,
        Effect::Over { complete: true } => {
            Some(("run", "the run is over: no work is left".to_owned(), Vec::new()))
        }
        Effect::Over { complete: false } => {
            Some(("run", "the run is over, with work left".to_owned(), Vec::new()))
        }
        // The decisions tell these.
        Effect::VmLaunched { .. }
        | Effect::TaskSent { .. }
        | Effect::SurplusCharged { .. }
        | Effect::Placed { .. }
        | Effect::Supplied { .. }
        | Effect::Moot { .. }
        | Effect::Rejected { .. } => None,
    }
}

const fn kind_of(decision: &Decision) -> &'static str {
    match decision {
        Decision::Launch { .. }
        | Decision::Terminate { .. }
        | Decision::SetInterruption { .. }
        | Decision::SetVcpuUse { .. }
        | Decision::Resume { .. } => "vm",
        Decision::Checkpoint { .. } | Decision::FallBack { .. } => "checkpoint",
        Decision::Start { .. }
        | Decision::Stop { .. }
        | Decision::Promote { .. }
        | Decision::SetMode { .. } => "task",
        Decision::Wake { .. } => "note",
    }
}

fn decision_targets(decision: &Decision) -> impl Iterator<Item = String> {
    let vm = decision.clone().vm_mut().map(|vm| vm.to_string());
    vm.into_iter().chain(decision.task().map(|task| task.to_string()))
}

#[cfg(test)]
mod tests {
    use dormouse_units::{HostId, TaskId, Time, VmId};

    use super::*;

    fn step(event: Event) -> Step {
        Step { at: Time::from_secs(3), event, ..Step::blank() }
    }

    #[test]
    fn a_step_says_what_happened_what_the_provider_did_and_what_was_decided() {
        let (vm, task) = (VmId::new(3), TaskId::new(5));
        let report = Report::TaskFailed {
            vm,
            task,
            attempt: dormouse_units::Attempt::new(1),
            why: "no memory".to_owned(),
            real_cpu_us: 0,
            could_not_restore: false,
        };
        let mut failed = step(Event::Machine { host: HostId::new(1), number: 0, report });
        failed.decisions = vec![Decision::Terminate { vm, reason: None }];
        let told = StepSummary::from_step(&failed);
        assert_eq!(told.text, "task5 failed on vm3: no memory; decided: give vm3 back");
        assert_eq!(
            (told.kind, told.about),
            ("task", ["host1", "task5", "vm3"].map(str::to_owned).to_vec())
        );

        let (target, action) = (InterruptionTarget::Vm(vm), InterruptionAction::Hibernate);
        let why = "to see".to_owned();
        let mut asked = step(Event::Interrupt { target: target.clone(), action, why });
        let (asked_at, vms, left) = (asked.at, vec![vm], Vec::new());
        asked.effects = vec![Effect::Interrupted { asked: asked_at, action, target, vms, left }];
        let told = StepSummary::from_step(&asked);
        assert_eq!(
            told.text,
            "an operator asked to hibernate vm3: to see; the provider: hibernate vm3, which \
             hit vm3"
        );
        assert_eq!((told.kind, told.about), ("provider", vec!["vm3".to_owned()]));
    }

    #[test]
    fn what_is_too_much_for_a_line_is_counted() {
        let mut begun = step(Event::Begin);
        begun.decisions =
            (0..6).map(|n| Decision::Terminate { vm: VmId::new(n), reason: None }).collect();
        let told = StepSummary::from_step(&begun);
        assert!(told.text.ends_with("decided: give vm3 back; and 2 things more"), "{}", told.text);
        assert_eq!((told.kind, told.about.len()), ("run", 6));
        assert_eq!(StepSummary::from_step(&step(Event::Tick)).text, "a time had come");
    }
}
