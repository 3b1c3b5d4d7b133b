//! What really happened in a run, as the simulated hosts saw it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_coordinator::LiveOutcome;
use dormouse_model::{Command as Decided, TaskStart};
use dormouse_proto::v1::{Command, command::Command as C};
use dormouse_worker::agent::in_process::LifeEnd;

/// The record of everything seen in a run; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Witness(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The commands that each host received, in order, by the host's number.
    pub(crate) commands: BTreeMap<u32, Vec<String>>,
    /// Wrong acts of coordinators, in words.
    pub(crate) wrong: Vec<String>,
    /// Number of sessions that were opened again.
    pub(crate) reconnects: u64,
    /// Names of the workers that learned that the run is over.
    pub(crate) over: Vec<String>,
    pub(crate) conducted: Option<LiveOutcome>,
}

impl Witness {
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a new session as this host; `before` is the host number of the worker's previous session.
    pub(crate) fn welcomed(&self, host: u32, before: &mut Option<u32>) {
        let mut seen = self.seen();
        match *before {
            None if seen.commands.insert(host, Vec::new()).is_some() => {
                seen.wrong.push(format!("host{host} is two lives"));
            }
            None => *before = Some(host),
            Some(was) if was == host => seen.reconnects += 1,
            Some(was) => seen.wrong.push(format!("host{was} was welcomed as host{host}")),
        }
    }

    pub(crate) fn commands(&self, host: Option<u32>, first: u64, commands: &[Command]) {
        let mut seen = self.seen();
        let Some(host) = host else {
            seen.wrong.push("commands came before a welcome".to_owned());
            return;
        };
        let all = seen.commands.entry(host).or_default();
        let wanted = all.len() as u64 + 1;
        all.extend(commands.iter().map(told));
        if first != wanted {
            seen.wrong.push(format!("host{host} hears command {first}, and {wanted} is the next"));
        }
    }

    pub(crate) fn ended(&self, worker: &str, end: &LifeEnd) {
        if matches!(end, LifeEnd::Over { .. }) {
            self.seen().over.push(worker.to_owned());
        }
    }

    pub(crate) fn is_over(&self, conducted: LiveOutcome) {
        self.seen().conducted = Some(conducted);
    }
}

/// A command that a worker received, as text.
fn told(command: &Command) -> String {
    match &command.command {
        Some(C::CreateVm(create)) => format!("create vm{}", create.vm),
        Some(C::DestroyVm(at)) => format!("destroy vm{}", at.vm),
        Some(C::StartTask(start)) => {
            let of = start.task.unwrap_or_default();
            format!("start task{}.{} on vm{}", of.task, of.attempt, of.vm)
        }
        other => format!("{other:?}"),
    }
}

/// A command that the log decided, as the same text, with its host.
pub(crate) fn decided(command: &Decided) -> (u32, String) {
    match command {
        Decided::CreateVm { host, vm, .. } => (host.get(), format!("create vm{}", vm.get())),
        Decided::DestroyVm { host, vm } => (host.get(), format!("destroy vm{}", vm.get())),
        Decided::StartTask(TaskStart { host, seats, task, attempt, .. }) => {
            let (task, attempt, vm) = (task.get(), attempt.get(), seats.vm.get());
            (host.get(), format!("start task{task}.{attempt} on vm{vm}"))
        }
        other => (u32::MAX, format!("{other:?}")),
    }
}
