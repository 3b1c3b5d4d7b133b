//! Starting a program of the user's own: in a directory with its inputs, or with what a former attempt
//! saved in there.

use std::{fs, io, path::Path};

use dormouse_proto::v1::{OwnProgram, StartTask, own_program::Saves};
use dormouse_tasks::{
    progress::{self, ProgressReader},
    supervisor,
};
use dormouse_units::Ppm;

use tokio::time::Instant;

use super::order::{ORDER, write_order};
use crate::{
    agent::{
        gate::Pass,
        host::{Host, limit},
        launch::{Birth, PROGRESS, Place, RESULT, Seen, base, first_instruction, settled},
        report::{explain, key},
    },
    directory::{self, Input},
    jail::{self, Bounds},
    process::Program,
    store::{Checkpoint, DIRECTORY},
    workspace::TaskName,
};

/// Whether a task's checkpoints are of its memory; else they are of its directory alone.
pub(crate) fn is_saved_by_criu(order: &StartTask) -> bool {
    let saves = order.own.as_ref().map(|own| &own.saves);
    !matches!(saves, Some(Some(Saves::AtNotice(_) | Saves::ByItself(_) | Saves::ByNothing(_))))
}

/// Whether a task's work, or its directory, can be kept at any time; else at a notice alone, or never.
pub(crate) fn is_kept_while_it_runs(order: &StartTask) -> bool {
    let saves = order.own.as_ref().map(|own| &own.saves);
    !matches!(saves, Some(Some(Saves::AtNotice(_) | Saves::ByNothing(_))))
}

/// Whether an attempt is owed no time until the inputs of its program are in its directory. One that goes on from a
/// checkpoint needs none of them.
pub(crate) fn waits_for_inputs(host: &Host, order: &StartTask) -> bool {
    let has_inputs = order.own.as_ref().is_some_and(|own| !own.inputs.is_empty());
    has_inputs && !(order.from.is_some() && host.keeps(order))
}

/// Sees to it that the contents of a program's inputs are here.
///
/// # Errors
/// The input that could not be had, and why.
pub(crate) async fn bring_inputs(
    host: &Host,
    pass: &Pass,
    order: &StartTask,
) -> Result<(), String> {
    let Some(own) = order.own.as_ref().filter(|own| !own.inputs.is_empty()) else { return Ok(()) };
    let inputs: Result<Vec<_>, _> = own.inputs.iter().map(Input::read).collect();
    let inputs = inputs.map_err(|e| explain(&e))?;
    let (task, attempt) = key(order.task);
    let of = (&*host.run, task.get(), attempt.get());
    let held = host.transfers.fetch_contents(host.contents(), pass, of, &inputs).await;
    held.map(drop).map_err(|e| format!("its inputs: {}", explain(&e)))
}

/// Starts a program in its directory, whose place is claimed, with its inputs.
///
/// # Errors
/// What went wrong, in words; nothing of it runs then.
pub(crate) fn with_inputs(
    host: &Host,
    place: &Place,
    pass: &Pass,
    name: &TaskName,
    order: &StartTask,
) -> Result<Birth, String> {
    let own = bounded(host, name, order)?;
    fill(host, &host.workspace().task(name), own)?;
    let inputs_at = waits_for_inputs(host, order).then(Instant::now);
    let birth = begin(host, place, pass, (name, own), 0)?;
    Ok(Birth { inputs_at, ..birth })
}

/// Starts a program in its directory, whose place is claimed, with what the checkpoint that its order names holds;
/// `None`: there is no such checkpoint.
///
/// # Errors
/// What went wrong, in words; nothing of it runs then.
pub(crate) fn with_saved(
    host: &Host,
    place: &Place,
    pass: &Pass,
    name: &TaskName,
    order: &StartTask,
) -> Result<Option<Birth>, String> {
    let own = bounded(host, name, order)?;
    let Some(checkpoint) = saved(host, name, order) else { return Ok(None) };
    let directory = host.workspace().task(name);
    checkpoint.restore_files(&directory).map_err(|e| explain(&e))?;
    for file in [ORDER, PROGRESS, RESULT] {
        remove(&directory.join(file))?;
    }
    // A VM that boots has an empty /tmp.
    jail::empty_folders(&directory).map_err(|e| explain(&e))?;
    let done_ppm = checkpoint.manifest().progress.progress_ppm;
    begin(host, place, pass, (name, own), done_ppm).map(Some)
}

/// The program of an order, whose directory gets its bounds.
fn bounded<'a>(
    host: &Host,
    name: &TaskName,
    order: &'a StartTask,
) -> Result<&'a OwnProgram, String> {
    let Some(own) = &order.own else {
        return Err("it is not a program of the user's own".to_owned());
    };
    host.workspace().bound_task(name, own.directory_bytes).map_err(|e| explain(&e))?;
    Ok(own)
}

/// Starts a program whose directory has all that it begins with.
fn begin(
    host: &Host,
    place: &Place,
    pass: &Pass,
    (name, own): (&TaskName, &OwnProgram),
    done_ppm: u32,
) -> Result<Birth, String> {
    let directory = host.workspace().task(name);
    let Place { groups, cpu, slot, .. } = place;
    let has_root = groups.cell().is_some_and(|cell| cell.has_root());
    write_order(&directory, own, has_root).map_err(|e| explain(&e))?;
    let progress = directory.join(PROGRESS);
    progress::create_held(&progress).map_err(|e| explain(&e))?;
    let page = ProgressReader::open(&progress).map_err(|e| explain(&e))?;
    let entry = groups.entry(*cpu, *slot).map_err(|e| explain(&e))?;
    let before = base(place)?;
    // The birth of its supervisor is none of the program's work.
    let lifted = groups.lift_quota(*cpu, *slot).map_err(|e| explain(&e))?;
    let process = Program::new(host.program(), &directory)
        .args([supervisor::KIND, "--order"])
        .arg(directory.join(ORDER))
        .arg("--progress")
        .arg(&progress)
        .arg("--result")
        .arg(directory.join(RESULT))
        .bounds(bounds(own))
        .start(&entry, limit::BIRTH)
        .map_err(|e| explain(&e))?;
    let seen = first_instruction(&page, pass, &process, 0);
    drop(lifted);
    let seen = seen.and_then(|()| {
        let born = base(place)?;
        // Another attempt may have the place by now.
        pass.check().map_err(|e| explain(&e))?;
        progress::let_go(&progress).map_err(|e| explain(&e))?;
        Ok(Seen { page, born, came_with: Ppm::new(done_ppm) })
    });
    settled(process, pass, seen, done_ppm, before)
}

/// What a program may have. The supervisor is one more.
pub(super) fn bounds(own: &OwnProgram) -> Bounds {
    let processes = (own.processes > 0).then(|| u64::from(own.processes) + 1);
    Bounds { file_bytes: own.directory_bytes, processes }
}

/// The newest undamaged checkpoint of the program's directory, if it is to begin with one.
fn saved(host: &Host, name: &TaskName, order: &StartTask) -> Option<Checkpoint> {
    order.from?;
    match host.store().latest_valid(name) {
        Ok(latest) => latest.checkpoint.filter(|it| it.manifest().program == DIRECTORY),
        Err(error) => {
            tracing::warn!(why = explain(&error), task = %name, "its directory can't be fetched: it \
                     starts from the beginning");
            None
        }
    }
}

fn fill(host: &Host, directory: &Path, own: &OwnProgram) -> Result<(), String> {
    let inputs: Result<Vec<_>, _> = own.inputs.iter().map(Input::read).collect();
    let inputs = inputs.map_err(|e| explain(&e))?;
    let wanted = inputs.iter().map(|input| (input.digest, input.bytes));
    let held = host.contents().hold(wanted).map_err(|e| explain(&e))?;
    directory::make(directory, &inputs, &held).map(drop).map_err(|e| explain(&e))
}

fn remove(file: &Path) -> Result<(), String> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(explain(&error)),
        _ => Ok(()),
    }
}
