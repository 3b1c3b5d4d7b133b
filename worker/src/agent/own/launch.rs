//! Starting a user's own program: in a directory with its inputs, or with the files that an earlier attempt saved
//! there.

use std::{fs, io, path::Path};

use dormouse_proto::v1::{OwnProgram, StartTask, own_program::Saves};
use dormouse_tasks::{
    progress::{self, ProgressReader},
    supervisor,
};
use tokio::time::Instant;

use super::order::{ORDER, write_order};
use crate::{
    agent::{
        gate::LaunchPass,
        held::HeldProgram,
        host::{LifeHost, limit},
        launch::{PROGRESS, RESULT, charged_base},
        machine::{AttemptOrder, HostVm},
        report::{attempt_key, explain_error},
    },
    directory::{self, TaskInput},
    jail::{self, ProgramBounds},
    process::ProgramCommand,
    store::{DIRECTORY, StoredCheckpoint},
    workspace::TaskName,
};

/// Returns whether a task's checkpoints hold its memory; otherwise they hold only its directory.
pub(crate) fn is_saved_by_criu(order: &StartTask) -> bool {
    let saves = order.own.as_ref().map(|own| &own.saves);
    !matches!(saves, Some(Some(Saves::AtNotice(_) | Saves::ByItself(_) | Saves::ByNothing(_))))
}

/// Returns whether a task's memory or directory can be saved at any time; otherwise only at a notice, or never.
pub(crate) fn is_kept_while_it_runs(order: &StartTask) -> bool {
    let saves = order.own.as_ref().map(|own| &own.saves);
    !matches!(saves, Some(Some(Saves::AtNotice(_) | Saves::ByNothing(_))))
}

/// Returns whether the time that an attempt is promised begins only once the inputs of its program are in its directory. An attempt
/// that begins from a checkpoint needs no inputs.
pub(crate) fn waits_for_inputs(host: &LifeHost, order: &StartTask) -> bool {
    let has_inputs = order.own.as_ref().is_some_and(|own| !own.inputs.is_empty());
    has_inputs && !(order.from.is_some() && host.keeps_checkpoints(order))
}

/// Fetches the contents of a program's inputs, unless they are on this host.
///
/// # Errors
///
/// The input that couldn't be fetched, and why.
pub(crate) async fn bring_inputs(
    host: &LifeHost,
    pass: &LaunchPass,
    order: &StartTask,
) -> Result<(), String> {
    let Some(own) = order.own.as_ref().filter(|own| !own.inputs.is_empty()) else { return Ok(()) };
    let inputs: Result<Vec<_>, _> = own.inputs.iter().map(TaskInput::read).collect();
    let inputs = inputs.map_err(|e| explain_error(&e))?;
    let (task, attempt) = attempt_key(order.task);
    let of = (&*host.run, task.get(), attempt.get());
    let held = host.transfers.fetch_contents(host.contents(), pass, of, &inputs).await;
    held.map(drop).map_err(|e| format!("its inputs: {}", explain_error(&e)))
}

/// Puts a program's inputs into the task's directory, which the attempt has claimed, and starts the program.
///
/// # Errors
///
/// In words, what went wrong; no process is left then.
pub(crate) fn with_inputs(vm: &HostVm, order: &AttemptOrder) -> Result<HeldProgram, String> {
    let (HostVm { host, .. }, AttemptOrder { name, start, .. }) = (vm, order);
    let own = bounded_program(host, name, start)?;
    fill_directory(host, &host.workspace().task_directory(name), own)?;
    let inputs_at = waits_for_inputs(host, start).then(Instant::now);
    Ok(begin_program(vm, order, own, 0)?.with_inputs_at(inputs_at))
}

/// Starts a program in its directory, which the attempt has claimed, with the files of the checkpoint that its command names;
/// returns `None` if there is no such checkpoint.
///
/// # Errors
///
/// In words, what went wrong; no process is left then.
pub(crate) fn with_saved(vm: &HostVm, order: &AttemptOrder) -> Result<Option<HeldProgram>, String> {
    let (HostVm { host, .. }, AttemptOrder { name, start, .. }) = (vm, order);
    let own = bounded_program(host, name, start)?;
    let Some(checkpoint) = saved_checkpoint(host, name, start) else { return Ok(None) };
    let directory = host.workspace().task_directory(name);
    checkpoint.restore_files(&directory).map_err(|e| explain_error(&e))?;
    for file in [ORDER, PROGRESS, RESULT] {
        remove(&directory.join(file))?;
    }
    // A VM that boots has an empty /tmp.
    jail::empty_folders(&directory).map_err(|e| explain_error(&e))?;
    let done_ppm = checkpoint.manifest().progress.progress_ppm;
    begin_program(vm, order, own, done_ppm).map(Some)
}

/// Returns the program of an order, after bounding the size of its directory.
fn bounded_program<'a>(
    host: &LifeHost,
    name: &TaskName,
    order: &'a StartTask,
) -> Result<&'a OwnProgram, String> {
    let Some(own) = &order.own else {
        return Err("it is not a program of the user's own".to_owned());
    };
    host.workspace().bound_task(name, own.directory_bytes).map_err(|e| explain_error(&e))?;
    Ok(own)
}

/// Starts a program whose directory is complete.
fn begin_program(
    vm: &HostVm,
    order: &AttemptOrder,
    own: &OwnProgram,
    done_ppm: u32,
) -> Result<HeldProgram, String> {
    let (HostVm { host, groups }, place) = (vm, vm.parent_place(order));
    let directory = host.workspace().task_directory(&order.name);
    let has_root = groups.cell().is_some_and(|cell| cell.has_root());
    write_order(&directory, own, has_root).map_err(|e| explain_error(&e))?;
    let progress = directory.join(PROGRESS);
    progress::create_held(&progress).map_err(|e| explain_error(&e))?;
    let page = ProgressReader::open(&progress).map_err(|e| explain_error(&e))?;
    let entry = place.entry()?;
    let base_ns = charged_base(&place)?;
    // The birth of its supervisor is none of the program's work.
    let lifted = Some(place.lift_quota()?);
    let process = ProgramCommand::new(host.task_program(), &directory)
        .args([supervisor::KIND, "--order"])
        .arg(directory.join(ORDER))
        .arg("--progress")
        .arg(&progress)
        .arg("--result")
        .arg(directory.join(RESULT))
        .bounds(program_bounds(own))
        .start_task(&entry, limit::BIRTH)
        .map_err(|e| explain_error(&e))?;
    Ok(HeldProgram::at_its_page(process, page, lifted, base_ns, done_ppm))
}

/// Returns the limits of a program; its supervisor counts as one more process.
pub(super) fn program_bounds(own: &OwnProgram) -> ProgramBounds {
    let processes = (own.processes > 0).then(|| u64::from(own.processes) + 1);
    ProgramBounds { file_bytes: own.directory_bytes, processes }
}

/// Returns the newest whole checkpoint of the program's directory, if the attempt begins with a checkpoint.
fn saved_checkpoint(
    host: &LifeHost,
    name: &TaskName,
    order: &StartTask,
) -> Option<StoredCheckpoint> {
    order.from?;
    match host.store().latest_undamaged(name) {
        Ok(latest) => latest.checkpoint.filter(|it| it.manifest().program == DIRECTORY),
        Err(error) => {
            tracing::warn!(why = explain_error(&error), task = %name, "the saved directory of a task can't be read: \
                     its program starts from the beginning");
            None
        }
    }
}

fn fill_directory(host: &LifeHost, directory: &Path, own: &OwnProgram) -> Result<(), String> {
    let inputs: Result<Vec<_>, _> = own.inputs.iter().map(TaskInput::read).collect();
    let inputs = inputs.map_err(|e| explain_error(&e))?;
    let wanted = inputs.iter().map(|input| (input.digest, input.bytes));
    let held = host.contents().hold_contents(wanted).map_err(|e| explain_error(&e))?;
    directory::make_directory(directory, &inputs, &held).map(drop).map_err(|e| explain_error(&e))
}

fn remove(file: &Path) -> Result<(), String> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(explain_error(&error)),
        _ => Ok(()),
    }
}
