//! Outputs of tasks, written to the run's folder.
//!
//! ```text
//! tasks/<task>/stdout, stderr      the task's standard output and error
//! tasks/<task>/outputs/<path>      the files that were to be kept
//! tasks/<task>/not-kept            why other files were not kept, if any
//! tasks/<task>/exit                how the task ended; written after all else
//! tasks/<task>/failed-<attempt>/   the same of an attempt that failed
//! ```

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use blake3::Hash;
use dormouse_folders::remove_tree;
use dormouse_model::{KeptFile, ProgramAttemptEnd, ProgramEnd, ProgramExit};
use dormouse_tasks::own::{folder_of, folder_of_failed};

use super::ContentPool;
use super::pool::copy_whole;
use crate::log::journal::OnceDurable;

/// Name of the file whose presence says that a task's folder of outputs is complete.
const EXIT: &str = "exit";
const NOT_KEPT: &str = "not-kept";
/// Names of the files with the program's standard output and error, which a task may leave beside its outputs.
const SAID: [&str; 2] = ["stdout", "stderr"];

/// Writes the outputs of an attempt into the run's folder, once the step of its end is durable.
#[derive(Debug)]
pub(crate) struct LayOut {
    pub(crate) contents: Arc<ContentPool>,
    pub(crate) of: ProgramAttemptEnd,
    /// True if tasks that follow are given outputs, whose contents are kept until the run is over.
    pub(crate) keeps: bool,
}

impl OnceDurable for LayOut {
    fn on_durable(self: Box<Self>) {
        let contents = Arc::clone(&self.contents);
        let threads = contents.world().threads.clone();
        let work = move || {
            if let Err(error) = self.lay_out() {
                let (task, attempt) = (self.of.task, self.of.attempt.get());
                tracing::warn!(%task, attempt, %error, "an output file of a task can't be written \
                         to the run's folder");
            }
        };
        contents.layouts().spawn(async move { threads.run(work).await });
    }
}

impl LayOut {
    fn output_folder(&self) -> PathBuf {
        let ProgramAttemptEnd { task, attempt, finished, .. } = &self.of;
        let name = if *finished { folder_of(*task) } else { folder_of_failed(*task, *attempt) };
        self.contents.run_folder().join(name)
    }

    /// Writes the attempt's outputs, unless they exist: called after the step of the attempt's end, and again when a
    /// run is resumed.
    ///
    /// # Errors
    ///
    /// The disk is full or the system refuses; earlier outputs are still there then. A content that is missing or
    /// damaged is named in the file `not-kept`.
    pub(crate) fn lay_out(&self) -> io::Result<()> {
        if self.keeps && self.of.finished {
            self.keep_for_followers()?;
        }
        let folder = self.output_folder();
        if folder.join(EXIT).exists() {
            return Ok(());
        }
        // Beside all folders of tasks, whose names are numbers.
        let name = format!("tasks/.{}.{}", self.of.task.get(), self.of.attempt.get());
        let part = self.contents.run_folder().join(name);
        remove_tree(&part)?;
        let done = self.fill_folder(&part).and_then(|()| self.put_in_place(&part, &folder));
        remove_tree(&part)?;
        done
    }

    /// Keeps the contents of the outputs for tasks that follow. An output that never arrived is missing for them, as
    /// it is in the run's folder.
    fn keep_for_followers(&self) -> io::Result<()> {
        let digests = self.of.end.files.iter().filter_map(|file| Hash::from_hex(&file.digest).ok());
        for digest in digests {
            match self.contents.keep_as_input(&digest) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                kept => kept?,
            }
        }
        Ok(())
    }

    fn fill_folder(&self, part: &Path) -> io::Result<()> {
        fs::create_dir_all(part.join(ProgramEnd::OUTPUTS))?;
        let mut missing = self.of.end.not_kept.clone();
        for file in &self.of.end.files {
            if let Err(why) = self.copy_file(file, part)? {
                missing.push(format!("{}: {why}", file.path));
            }
        }
        if !missing.is_empty() {
            let task = self.of.task;
            tracing::warn!(%task, why = missing.join("; "), "some output files of a task are not kept");
            fs::write(part.join(NOT_KEPT), missing.join("\n") + "\n")?;
        }
        fs::write(part.join(EXIT), format!("{}\n", exit_of(&self.of.end)))
    }

    /// Copies one file to its place; if the file can't be there, returns the reason.
    fn copy_file(&self, file: &KeptFile, part: &Path) -> io::Result<Result<(), String>> {
        if !is_left(&file.path) {
            return Ok(Err("it is not one of the task's declared outputs".to_owned()));
        }
        let Ok(digest) = Hash::from_hex(&file.digest) else {
            return Ok(Err("its digest is not a BLAKE3 digest".to_owned()));
        };
        let to = part.join(&file.path);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        let from = match self.contents.open_content(&digest) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Err(format!("its content {digest} was not received")));
            }
            opened => opened?,
        };
        if !copy_whole(from, &to, &digest)? {
            fs::remove_file(&to)?;
            self.contents.drop_damaged(&digest)?;
            return Ok(Err(format!("its content {digest} is damaged")));
        }
        let mode = if file.executable { 0o755 } else { 0o644 };
        fs::set_permissions(&to, Permissions::from_mode(mode))?;
        Ok(Ok(()))
    }

    /// Moves the complete outputs to their place, and last the file that marks them as complete.
    fn put_in_place(&self, part: &Path, folder: &Path) -> io::Result<()> {
        if !self.of.finished {
            if let Some(parent) = folder.parent() {
                fs::create_dir_all(parent)?;
            }
            remove_tree(folder)?;
            return fs::rename(part, folder);
        }
        fs::create_dir_all(folder)?;
        for name in SAID.into_iter().chain([ProgramEnd::OUTPUTS, NOT_KEPT, EXIT]) {
            let (from, to) = (part.join(name), folder.join(name));
            if to.is_dir() {
                remove_tree(&to)?;
            }
            match fs::rename(from, to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns whether a path is one of a file that a task may leave, so that nothing else in its folder can be replaced.
fn is_left(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
    let output = path.strip_prefix(ProgramEnd::OUTPUTS).and_then(|rest| rest.strip_prefix('/'));
    is_plain && (SAID.contains(&path) || output.is_some_and(|rest| !rest.is_empty()))
}

fn exit_of(end: &ProgramEnd) -> String {
    match end.exit {
        Some(ProgramExit::Status(status)) => format!("status {status}"),
        Some(ProgramExit::Signal(signal)) => format!("signal {signal}"),
        None => "none: it was ended before".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use dormouse_units::{Attempt, Bytes, TaskId};

    use super::*;
    use crate::contents::pool::tests::put_content;

    fn file(path: &str, content: &[u8], executable: bool) -> KeptFile {
        let (path, digest) = (path.to_owned(), blake3::hash(content).to_hex().to_string());
        KeptFile { path, digest, bytes: Bytes::new(content.len() as u64), executable }
    }

    fn end(files: Vec<KeptFile>, status: i32) -> ProgramEnd {
        let (real_waited_us, memory, directory) = (0, Bytes::ZERO, Bytes::ZERO);
        let (exit, verify_status) = (Some(ProgramExit::Status(status)), None);
        let not_kept = Vec::new();
        ProgramEnd { exit, verify_status, files, not_kept, real_waited_us, memory, directory }
    }

    #[test]
    fn what_tasks_leave_is_laid_out_and_failed_attempts_are_apart() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let out = dir.path().to_owned();
        let contents = Arc::new(ContentPool::open(&out.join("contents")).expect("room"));
        for content in [&b"said"[..], b"", b"wrong", b"right", b"#!"] {
            put_content(&contents, content);
        }
        let lay_out = |attempt, finished, end: &ProgramEnd| {
            let (task, attempt) = (TaskId::new(7), Attempt::new(attempt));
            let (contents, end) = (Arc::clone(&contents), Arc::new(end.clone()));
            LayOut {
                contents,
                of: ProgramAttemptEnd { task, attempt, finished, end },
                keeps: false,
            }
        };
        let mut failed =
            end(vec![file("stdout", b"said", false), file("outputs/a", b"wrong", false)], 3);
        failed.not_kept = vec!["outputs/b: it is a link".to_owned()];
        lay_out(1, false, &failed).lay_out().expect("room");
        let files = vec![
            file("stdout", b"said", false),
            file("stderr", b"", false),
            file("outputs/a", b"right", false),
            file("outputs/deep/run", b"#!", true),
        ];
        let done = lay_out(2, true, &end(files, 0));
        done.lay_out().expect("room");
        let read = |path: &str| fs::read_to_string(out.join("tasks/7").join(path)).expect(path);
        assert_eq!([read("stdout"), read("stderr"), read("exit")], ["said", "", "status 0\n"]);
        assert_eq!([read("outputs/a"), read("outputs/deep/run")], ["right", "#!"]);
        let mode = fs::metadata(out.join("tasks/7/outputs/deep/run")).expect("there").mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!([read("failed-1/outputs/a"), read("failed-1/exit")], ["wrong", "status 3\n"]);
        assert_eq!(read("failed-1/not-kept"), "outputs/b: it is a link\n");
        // The user's own change is the user's: a run that is gone on with does not undo it.
        fs::write(out.join("tasks/7/outputs/a"), "edited").expect("room");
        done.lay_out().expect("room");
        assert_eq!(read("outputs/a"), "edited");
        let all = fs::read_dir(out.join("tasks")).expect("a folder").count();
        assert_eq!(all, 1, "no parts are left");
    }

    #[test]
    fn what_has_not_come_or_is_damaged_is_said_and_the_rest_is_kept() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let out = dir.path().to_owned();
        let contents = Arc::new(ContentPool::open(&out.join("contents")).expect("room"));
        let damaged = put_content(&contents, b"damaged");
        put_content(&contents, b"whole");
        fs::write(contents.content_path(&damaged), "damageD").expect("room");
        let files = vec![
            file("outputs/a", b"damaged", false),
            file("outputs/b", b"whole", false),
            file("outputs/c", b"never came", false),
        ];
        let (task, attempt, end) = (TaskId::new(0), Attempt::new(1), Arc::new(end(files, 0)));
        let of = ProgramAttemptEnd { task, attempt, finished: true, end };
        let it = LayOut { contents, of, keeps: true };
        it.lay_out().expect("room");
        let said = fs::read_to_string(out.join("tasks/0/not-kept")).expect("reasons");
        assert!(said.contains("outputs/a") && said.contains("is damaged"), "{said}");
        assert!(said.contains("outputs/c") && said.contains("was not received"), "{said}");
        let kept = fs::read_dir(out.join("tasks/0/outputs")).expect("a folder").count();
        assert_eq!(kept, 1);
        assert!(!it.contents.content_path(&damaged).exists());
    }

    #[test]
    fn nothing_else_of_a_run_can_be_replaced() {
        for path in ["stdout", "stderr", "outputs/a", "outputs/deep/a"] {
            assert!(is_left(path), "{path}");
        }
        for path in ["outputs/../exit", "/stdout", "exit", "outputs", "outputs/", "outputsx/a"] {
            assert!(!is_left(path), "{path}");
        }
    }
}
