//! Decoding of commands: what each one orders, or the report that refuses it.

use dormouse_proto::v1::{
    Command, CreateVm, Fault, Report, StartTask, TaskFailed, TaskRef, Unsupported, command, report,
};

use crate::agent::{
    AgentError, Result, bounds,
    report::{make_report, vm_failed},
    vm::VmCommand,
};

/// A decoded command of the coordinator: what the worker has to do about it.
#[derive(Debug)]
pub(super) enum CommandReading {
    /// Create a VM.
    Create(Box<CreateVm>),
    /// Hand a command to the VM of this number.
    Ask(u32, VmCommand),
    /// Inject a fault.
    Fault(Fault),
    /// Refuse the command, with this report if the command has an answer.
    Refused(Option<Box<Report>>),
}

/// Returns the command in a message, or, if this worker doesn't know the kind of command, the report that says so, as
/// an error.
pub(super) fn known_command(
    number: u64,
    command: Command,
) -> std::result::Result<command::Command, Box<Report>> {
    command.command.ok_or_else(|| {
        let what = "this version of the worker does not know this kind of command: use the same \
                 version of worker and coordinator"
            .to_owned();
        tracing::warn!(number, "a command is not carried out: {what}");
        Box::new(make_report(report::Report::Unsupported(Unsupported { command: number, what })))
    })
}

/// Decodes a command of a known kind.
///
/// # Errors
///
/// The command violates the protocol.
pub(super) fn read(number: u64, command: command::Command) -> Result<CommandReading> {
    if let Err(why) = bounds::check_command(&command) {
        tracing::warn!(number, why, "a command is refused");
        return Ok(CommandReading::Refused(refuse_command(&command, why).map(Box::new)));
    }
    let (vm, ask) = match command {
        command::Command::CreateVm(create) => return Ok(CommandReading::Create(Box::new(create))),
        command::Command::Fault(fault) => return Ok(CommandReading::Fault(fault)),
        command::Command::DestroyVm(at) => (at.vm, VmCommand::Destroy),
        command::Command::FreezeVm(at) => (at.vm, VmCommand::Freeze),
        command::Command::ThawVm(at) => (at.vm, VmCommand::Thaw),
        command::Command::StartTask(start) => {
            (vm_of(start.task)?, VmCommand::Start(Box::new(start)))
        }
        command::Command::StopTask(stop) => (vm_of(stop.task)?, VmCommand::Stop(stop)),
        command::Command::SetMode(set) => (vm_of(set.task)?, VmCommand::SetMode(set)),
        command::Command::SetSupply(set) => (set.vm, VmCommand::SetSupply(set)),
        command::Command::PromoteTask(of) => (of.vm, VmCommand::Promote(of)),
        command::Command::CheckpointNow(of) => (of.vm, VmCommand::CheckpointNow(of)),
        command::Command::Announce(said) => (said.vm, VmCommand::Announce(said)),
        command::Command::SetNetwork(of) => (of.vm, VmCommand::SetNetwork(of)),
        command::Command::MoveTask(to) => (vm_of(to.task)?, VmCommand::Move(to)),
    };
    Ok(CommandReading::Ask(vm, ask))
}

/// Makes the report that refuses a command; `None` if the kind of command has no answer.
fn refuse_command(command: &command::Command, why: String) -> Option<Report> {
    match command {
        command::Command::CreateVm(create) => Some(vm_failed(create.vm, why)),
        command::Command::StartTask(start) => Some(refuse_start(start, why)),
        command::Command::MoveTask(to) => to.task.map(|task| vm_failed(task.vm, why)),
        _ => None,
    }
}

/// Makes the report that refuses to start a task, for the reason `why`.
#[must_use]
pub fn refuse_start(start: &StartTask, why: String) -> Report {
    make_report(report::Report::TaskFailed(TaskFailed {
        task: start.task,
        why,
        ..TaskFailed::default()
    }))
}

/// Returns the number of the VM that a task is on.
fn vm_of(task: Option<TaskRef>) -> Result<u32> {
    let no_task = AgentError::Protocol { what: "a command that names no task".to_owned() };
    task.map(|task| task.vm).ok_or(no_task)
}
