//! Programs that live runs start on this host.

use std::path::PathBuf;

use dormouse_worker::criu::find_criu;

/// Path of the CRIU that live runs on this host use; see [`find_criu`].
#[must_use]
pub fn criu_program() -> PathBuf {
    find_criu(None).unwrap_or_else(|| "criu".into())
}

/// Path of the `dormouse-task` beside this program, or on the `PATH`.
#[must_use]
pub fn find_task_program() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|p| Some(p.parent()?.join("dormouse-task")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|p| p.join("dormouse-task"));
    beside.into_iter().chain(on_path).find(|p| p.is_file())
}
