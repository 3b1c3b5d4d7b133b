//! Checks that no command leaves before its step is durable, and that the commands of each host leave in the log's
//! order.

use std::collections::BTreeMap;
use std::fmt;

use dormouse_identity::WorkerLife;
use dormouse_model::{Command, Event, Step};
use dormouse_proto::v1;
use dormouse_units::HostId;

use super::Broken;
use crate::invariant::Invariant;
use crate::witness::Deed;

/// The fields by which a command is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    kind: &'static str,
    vm: u32,
    task: Option<(u32, u32)>,
    /// A numeric detail of the command: the mode, the checkpoint, or whether it is kept.
    detail: u64,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} vm{}", self.kind, self.vm)?;
        self.task.map_or(Ok(()), |(task, attempt)| write!(f, " task{task} attempt{attempt}"))?;
        write!(f, " ({})", self.detail)
    }
}

/// The commands for each host in the durable log.
#[derive(Debug, Default)]
pub(super) struct Commands {
    hosts: BTreeMap<(String, u64), HostId>,
    due: BTreeMap<HostId, Vec<Key>>,
    /// The number of the last command that each worker session has received.
    heard: BTreeMap<(String, u64), u64>,
}

impl Commands {
    /// Takes in a durable step and the commands that result from it.
    pub(super) fn see(&mut self, step: &Step, commands: Vec<Command>) {
        if let Event::HostJoined { host, name, .. } = &step.event
            && let Some((worker, life)) = name.rsplit_once('@')
            && let Ok(life) = u64::from_str_radix(life, 16)
        {
            self.hosts.insert((worker.to_owned(), life), *host);
        }
        for command in commands {
            self.due.entry(command.host()).or_default().push(expected(&command));
        }
    }

    /// Checks a command that has reached a worker's session.
    pub(super) fn did(&mut self, deed: &Deed) -> Result<(), Broken> {
        let Deed::Obeyed { worker, incarnation, number, command } = deed else { return Ok(()) };
        let life = (worker.clone(), *incarnation);
        let due = self.hosts.get(&life).and_then(|host| self.due.get(host));
        let place = usize::try_from(*number).unwrap_or(0).wrapping_sub(1);
        let expected = due.and_then(|due| due.get(place)).copied();
        let last = self.heard.insert(life, *number).unwrap_or(0);
        let heard = actual(command);
        if *number == last + 1 && expected == Some(heard) {
            return Ok(());
        }
        let expected = expected.map_or("nothing".to_owned(), |expected| expected.to_string());
        let why = format!(
            "{worker}@{incarnation:x} hears {heard} as command {number} after {last}, in the log {expected}"
        );
        Err((Invariant::ObeyedOnce, why))
    }

    /// Checks the commands of a message that leaves for a worker.
    pub(super) fn leaves(&self, to: &WorkerLife, message: &v1::ToWorker) -> Result<(), Broken> {
        let Some(v1::to_worker::Body::Commands(commands)) = &message.body else { return Ok(()) };
        let who = format!("{}@{:x}", to.worker, to.incarnation);
        let broken = |why: String| Err((Invariant::DurableFirst, format!("{who}: {why}")));
        let Some(host) = self.hosts.get(&(to.worker.clone(), to.incarnation)) else {
            return broken("it has commands, and no durable step says that it joined".to_owned());
        };
        let due = self.due.get(host).map_or(&[][..], Vec::as_slice);
        for (number, command) in (commands.first..).zip(&commands.commands) {
            let left = actual(command);
            let place = usize::try_from(number).unwrap_or(0).wrapping_sub(1);
            match due.get(place) {
                Some(expected) if *expected == left => {}
                Some(expected) => {
                    return broken(format!("command {number} is {left}, in the log {expected}"));
                }
                None => {
                    let many = due.len();
                    return broken(format!(
                        "command {number}, {left}, left where the durable log has {many}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The key of a command that results from the log.
fn expected(command: &Command) -> Key {
    let of_vm = |kind, vm: dormouse_units::VmId| Key { kind, vm: vm.get(), task: None, detail: 0 };
    let of_task = |kind,
                   vm: dormouse_units::VmId,
                   task: dormouse_units::TaskId,
                   attempt: dormouse_units::Attempt,
                   detail| Key {
        kind,
        vm: vm.get(),
        task: Some((task.get(), attempt.get())),
        detail,
    };
    match command {
        Command::CreateVm { vm, vcpus, .. } => {
            Key { detail: u64::from(*vcpus), ..of_vm("create", *vm) }
        }
        Command::FreezeVm { vm, .. } => of_vm("freeze", *vm),
        Command::ThawVm { vm, .. } => of_vm("thaw", *vm),
        Command::DestroyVm { vm, .. } => of_vm("destroy", *vm),
        Command::StartTask(start) => {
            let from = start.from.map_or(0, |(number, _)| u64::from(number.get()));
            of_task("start", start.seats.vm, start.task, start.attempt, from)
        }
        Command::StopTask { vm, task, attempt, keep, .. } => {
            of_task("stop", *vm, *task, *attempt, u64::from(*keep))
        }
        Command::CheckpointNow { vm, task, attempt, .. } => {
            of_task("checkpoint", *vm, *task, *attempt, 0)
        }
        Command::PromoteTask { vm, task, attempt, .. } => {
            of_task("promote", *vm, *task, *attempt, 0)
        }
        Command::MoveTask { vm, task, attempt, .. } => of_task("move", *vm, *task, *attempt, 0),
        Command::SetMode { vm, task, attempt, .. } => of_task("mode", *vm, *task, *attempt, 0),
        Command::SetSupply { vm, vcpu, .. } => {
            Key { detail: u64::from(*vcpu), ..of_vm("supply", *vm) }
        }
        Command::Announce { vm, .. } => of_vm("announce", *vm),
        Command::Fault { fault, .. } => {
            Key { kind: "fault", vm: 0, task: None, detail: fault.get().into() }
        }
    }
}

/// The key of a command in a message.
fn actual(command: &v1::Command) -> Key {
    use v1::command::Command as Wire;
    let of_vm = |kind, vm| Key { kind, vm, task: None, detail: 0 };
    let of_task = |kind, task: Option<v1::TaskRef>, detail| {
        let task = task.unwrap_or_default();
        Key { kind, vm: task.vm, task: Some((task.task, task.attempt)), detail }
    };
    match &command.command {
        None => of_vm("nothing", 0),
        Some(Wire::CreateVm(it)) => Key { detail: it.vcpus.into(), ..of_vm("create", it.vm) },
        Some(Wire::FreezeVm(it)) => of_vm("freeze", it.vm),
        Some(Wire::ThawVm(it)) => of_vm("thaw", it.vm),
        Some(Wire::DestroyVm(it)) => of_vm("destroy", it.vm),
        Some(Wire::StartTask(it)) => {
            let from = it.from.as_ref().map_or(0, |kept| kept.checkpoint.into());
            of_task("start", it.task, from)
        }
        Some(Wire::StopTask(it)) => of_task("stop", it.task, it.keep.into()),
        Some(Wire::CheckpointNow(it)) => of_task("checkpoint", Some(*it), 0),
        Some(Wire::PromoteTask(it)) => of_task("promote", Some(*it), 0),
        Some(Wire::MoveTask(it)) => of_task("move", it.task, 0),
        Some(Wire::SetMode(it)) => of_task("mode", it.task, 0),
        Some(Wire::SetSupply(it)) => Key { detail: it.vcpu.into(), ..of_vm("supply", it.vm) },
        Some(Wire::Announce(it)) => of_vm("announce", it.vm),
        Some(Wire::SetNetwork(it)) => of_vm("network", it.vm),
        Some(Wire::Fault(it)) => Key { kind: "fault", vm: 0, task: None, detail: it.fault.into() },
    }
}
