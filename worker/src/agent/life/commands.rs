//! Commands as they come, read: what they ask of a VM, or what is said of one that is not obeyed.

use dormouse_proto::v1::{
    Command, CreateVm, Fault, Report, StartTask, TaskFailed, TaskRef, Unsupported, command, report,
};

use crate::agent::{
    AgentError, Result, bounds,
    report::{report, vm_failed},
    vm::Ask,
};

/// The meaning of a command.
#[derive(Debug)]
pub(super) enum Reading {
    /// Make a VM.
    Create(Box<CreateVm>),
    /// Ask something of the VM of this number.
    Ask(u32, Ask),
    /// Have a fault.
    Fault(Fault),
    /// The command is not obeyed; what is said of that, if anything is.
    Refused(Option<Box<Report>>),
}

/// The command in a message, if its kind is known here; else what is said of it.
pub(super) fn known(
    number: u64,
    command: Command,
) -> std::result::Result<command::Command, Box<Report>> {
    command.command.ok_or_else(|| {
        let what = "this version of the worker does not know this kind of command: use the same \
                 version of worker and coordinator"
            .to_owned();
        tracing::warn!(number, "a command is not carried out: {what}");
        Box::new(report(report::Report::Unsupported(Unsupported { command: number, what })))
    })
}

/// Reads a command of a kind that is known.
///
/// # Errors
/// The command is none of a coordinator that keeps the protocol.
pub(super) fn read(number: u64, command: command::Command) -> Result<Reading> {
    if let Err(why) = bounds::check(&command) {
        tracing::warn!(number, why, "a command is refused");
        return Ok(Reading::Refused(refusal(&command, why).map(Box::new)));
    }
    let (vm, ask) = match command {
        command::Command::CreateVm(create) => return Ok(Reading::Create(Box::new(create))),
        command::Command::Fault(fault) => return Ok(Reading::Fault(fault)),
        command::Command::DestroyVm(at) => (at.vm, Ask::Destroy),
        command::Command::FreezeVm(at) => (at.vm, Ask::Freeze),
        command::Command::ThawVm(at) => (at.vm, Ask::Thaw),
        command::Command::StartTask(start) => (vm_of(start.task)?, Ask::Start(Box::new(start))),
        command::Command::StopTask(stop) => (vm_of(stop.task)?, Ask::Stop(stop)),
        command::Command::SetMode(set) => (vm_of(set.task)?, Ask::SetMode(set)),
        command::Command::SetSupply(set) => (set.vm, Ask::SetSupply(set)),
        command::Command::PromoteTask(of) => (of.vm, Ask::Promote(of)),
        command::Command::CheckpointNow(of) => (of.vm, Ask::CheckpointNow(of)),
        command::Command::Announce(said) => (said.vm, Ask::Announce(said)),
        command::Command::MoveTask(to) => (vm_of(to.task)?, Ask::Move(to)),
    };
    Ok(Reading::Ask(vm, ask))
}

/// The answer to a command that is not obeyed.
fn refusal(command: &command::Command, why: String) -> Option<Report> {
    match command {
        command::Command::CreateVm(create) => Some(vm_failed(create.vm, why)),
        command::Command::StartTask(start) => Some(refused(start, why)),
        command::Command::MoveTask(to) => to.task.map(|task| vm_failed(task.vm, why)),
        _ => None,
    }
}

/// The answer to a start that is refused, for this reason.
#[must_use]
pub fn refused(start: &StartTask, why: String) -> Report {
    report(report::Report::TaskFailed(TaskFailed {
        task: start.task,
        why,
        ..TaskFailed::default()
    }))
}

/// The VM of a task.
fn vm_of(task: Option<TaskRef>) -> Result<u32> {
    let no_task = AgentError::Protocol { what: "a command that names no task".to_owned() };
    task.map(|task| task.vm).ok_or(no_task)
}
