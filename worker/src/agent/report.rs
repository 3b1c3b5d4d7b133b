//! Reports in the wire format.

use std::time::Duration;

use dormouse_proto::v1::{Report, TaskRef, VmFailed, VmRef, VmTook, report};
use dormouse_units::{Attempt, TaskId};

pub(crate) use crate::micros::whole_micros;

pub(crate) fn make_report(body: report::Report) -> Report {
    Report { report: Some(body) }
}

pub(crate) fn vm_failed(vm: u32, why: impl Into<String>) -> Report {
    make_report(report::Report::VmFailed(VmFailed { vm, why: why.into() }))
}

pub(crate) fn vm_destroyed(vm: u32) -> Report {
    make_report(report::Report::VmDestroyed(VmRef { vm }))
}

pub(crate) fn vm_took(vm: u32, took: Duration) -> VmTook {
    VmTook { vm, real_took_us: whole_micros(took) }
}

pub(crate) fn task_ref(vm: u32, (task, attempt): Key) -> Option<TaskRef> {
    Some(TaskRef { vm, task: task.get(), attempt: attempt.get() })
}

/// An attempt on a VM, by its task and number.
pub(crate) type Key = (TaskId, Attempt);

/// Returns the attempt that a command is about; if the command names none, an attempt that doesn't exist.
pub(crate) fn attempt_key(of: Option<TaskRef>) -> Key {
    let TaskRef { task, attempt, .. } = of.unwrap_or_default();
    (TaskId::new(task), Attempt::new(attempt))
}

/// Formats an error with its causes for a report, as the coordinator gets only this text.
pub(crate) fn explain_error(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
