//! Notices and decisions in the run of a bag, in words without times.

use dormouse_model::{Decision, EndReason, Event, Notice, StartReason};
use dormouse_units::{Mode, Seats};

/// An event in words, for a step about which the scheduler got no notice.
pub(crate) const fn event(event: &Event) -> &'static str {
    match event {
        Event::HostJoined { .. } => "a host joined",
        Event::HostLost { .. } => "a host was lost",
        Event::Begin => "the experiment began",
        Event::Tick => "a time had come",
        Event::Machine { .. } => "a machine reported",
        Event::Submitted { .. } => "a job was submitted",
        Event::Closed => "no more jobs come from outside",
        Event::AllSubmitted => "the last job was submitted",
        Event::Requested { .. } => "a VM was requested",
        Event::Called { .. } => "somebody called the provider's API",
        Event::AllRequested => "the last VM was requested",
        Event::InstantOver => "an instant was over",
        Event::Interrupt { .. } => "an operator had the provider act",
        Event::Fault { .. } => "a fault of the experiment was due",
        Event::FaultFelt { .. } => "a host said how a fault stands with it",
        Event::HostLoad { .. } => "a host said what else it did",
        Event::Disbelieved { .. } => "a host reported what can't be",
        Event::JailLacking { .. } => "a host's tasks were not in a whole jail",
        Event::SpotCheck { .. } => "a task was computed again on another host, or a part of it",
        Event::CoordinatorLoad { .. } => "the coordinator measured itself",
        Event::Cancel { .. } => "the run was ended",
        Event::Clock { .. } => "its clock was noted",
        Event::Resumed { .. } => "its coordinator came back",
    }
}

/// The scheduler's notice in words.
pub(crate) fn heard(notice: &Notice) -> String {
    match notice {
        Notice::Begin => "the experiment began".to_owned(),
        Notice::Price { kind, price } => format!("the spot price of {kind} became {price}"),
        Notice::HostJoined => "a host joined".to_owned(),
        Notice::Available { kind } => format!("more spot {kind} could be had"),
        Notice::VmRebalance { vm } => format!("it was recommended to replace {vm}"),
        Notice::Submitted { job } => format!("job {} was submitted", job.number),
        Notice::Requested { request, asks } => {
            format!("{request}, for one {} {}, came", asks.market, asks.kind)
        }
        Notice::VmReady { vm } => format!("{vm} had booted"),
        Notice::LaunchRefused { vm, .. } => format!("the launch of {vm} was refused"),
        Notice::VmHibernating { vm } => format!("{vm} was about to hibernate"),
        Notice::VmHibernated { vm } => format!("{vm} was hibernated"),
        Notice::VmResumed { vm } => format!("{vm} was resumed"),
        Notice::VmPreempting { vm, .. } => format!("{vm} was given notice"),
        Notice::VmLost { vm } => format!("{vm} was lost"),
        Notice::TaskDue { task } => format!("{task} had come due"),
        Notice::TaskStarted { task, vm, .. } => format!("{task} ran on {vm}"),
        Notice::TaskFinished { task, vm } => format!("{task} finished on {vm}"),
        Notice::TaskFailed { task, vm, .. } => format!("{task} failed on {vm}"),
        Notice::TaskStopped { task, vm, .. } => format!("{task} was stopped on {vm}"),
        Notice::Checkpointed { task, vm, .. } => format!("{task} had a checkpoint on {vm}"),
        Notice::Credits { vm, .. } => format!("the credits of {vm} were told"),
        Notice::Wake { .. } => "a time that the scheduler waited for had come".to_owned(),
        Notice::Rejected { why, .. } => format!("a decision was rejected: {why}"),
    }
}

/// Words for a decision; `None` for a wake-up, which does nothing itself.
pub(crate) fn decided(decision: &Decision) -> Option<String> {
    let in_mode = |mode: &Mode| match mode {
        Mode::Burst => "",
        Mode::Baseline => " in baseline mode",
    };
    Some(match decision {
        Decision::Launch { vm, kind, market, bid: None } => {
            format!("launch {vm}, a {market} {kind}")
        }
        Decision::Launch { vm, kind, market, bid: Some(bid) } => {
            format!("launch {vm}, a {market} {kind} for at most {bid}")
        }
        Decision::Terminate { vm, reason: None } => format!("give {vm} back"),
        Decision::Terminate { vm, reason: Some(reason) } => {
            format!("give {vm} back: {}", why_ended(*reason))
        }
        Decision::Start { task, on: Seats { vm, .. }, mode, reason } => {
            format!("start {task} on {vm}{}, {}", in_mode(mode), why(*reason))
        }
        Decision::Promote { task, vm, .. } => {
            format!("bring {task} to the foreground of {vm}")
        }
        Decision::Stop { task, vm, keep: true } => format!("checkpoint and stop {task} on {vm}"),
        Decision::Stop { task, vm, keep: false } => format!("stop {task} on {vm}"),
        Decision::Checkpoint { task, vm } => format!("checkpoint {task} on {vm}"),
        Decision::FallBack { task, done } => {
            format!("have {task} begin from a checkpoint with at most {done} done")
        }
        Decision::SetMode { task, vm, mode: Mode::Burst } => format!("let {task} burst on {vm}"),
        Decision::SetMode { task, vm, mode: Mode::Baseline } => {
            format!("put {task} on {vm} in baseline mode")
        }
        Decision::SetInterruption { vm, hibernates: true } => {
            format!("hibernate {vm} whenever it is interrupted")
        }
        Decision::SetInterruption { vm, hibernates: false } => {
            format!("end {vm} whenever it is interrupted")
        }
        Decision::SetVcpuUse { vm, used, surplus } => {
            let mode = if surplus.is_some() { "unlimited" } else { "standard" };
            format!("have the programs on {vm} use {used} of each vCPU, in {mode} mode")
        }
        Decision::Resume { vm } => format!("resume {vm}"),
        Decision::Wake { .. } => return None,
    })
}

/// Reason for which a VM is given back although tasks are left for it.
pub(crate) fn why_ended(reason: EndReason) -> String {
    let EndReason::AboveBid { price, bid, unkept } = reason;
    let lost = match unkept {
        0 => "",
        1 => ", without a checkpoint of its task",
        _ => ", without a checkpoint of some of its tasks",
    };
    format!("its hour ends and it costs {price}, more than the bid of {bid}{lost}")
}

/// Reason for the start of a task or job.
pub(crate) const fn why(reason: StartReason) -> &'static str {
    match reason {
        StartReason::Chosen => "as its scheduler chose",
        StartReason::Planned => "as its turn had come",
        StartReason::Migrated => "to which it migrates",
        StartReason::Stolen => "which was idle",
        StartReason::Retried => "once more",
        StartReason::Due => "as it has come due",
        StartReason::FirstInLine => "first in line",
        StartReason::EndsBeforeShadow { .. } => "before the head's reservation",
        StartReason::OnExtra { .. } => "beside the head's reservation",
        StartReason::ShortestWaiting => "the shortest that waits",
        StartReason::Reused { .. } => "which is reused",
        StartReason::NewVm { .. } => "which is new",
    }
}
