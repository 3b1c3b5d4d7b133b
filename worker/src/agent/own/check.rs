//! The check of the files that a user's own program made, by a command other than the program. The check runs once
//! nothing of the program is left, as another user, in a directory with the run's original inputs and copies of the
//! files that the program left.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use dormouse_proto::v1::{OwnEnd, OwnProgram, StartTask};
use dormouse_tasks::{left, supervisor};
use tokio::task::spawn_blocking;

use super::{
    end::{end_of, status_of},
    launch::{bring_inputs, program_bounds},
    order::{ORDER, write_order},
};
use crate::{
    agent::{
        gate::{GatedWork, LaunchPass},
        host::{LifeHost, limit},
        launch::{PROGRESS, RESULT, TaskPlace, put_down},
        report::{attempt_key, explain_error},
    },
    directory::{self, TaskInput, WORK, has_file, is_plain, matching_paths},
    process::{ChildProcess, ProgramCommand},
    workspace::TaskName,
};

/// Interval at which the worker looks whether a check is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes of a check's output that are kept with the output of its program.
const SAID_BYTES: u64 = 64 << 10;
/// Bytes that a task's directory may use for each file in addition to the file's content: a page that isn't full.
const BESIDE: u64 = 4096;

/// Returns whether the answer of a program with this end must be checked by a command.
pub(crate) fn is_to_be_checked(order: &StartTask, end: &OwnEnd) -> bool {
    status_of(end) == Some(0) && order.own.as_ref().is_some_and(|own| !own.verify.is_empty())
}

/// Runs the check of a program that ended well, and appends its output to the program's; returns the check's exit status (after a
/// signal the status that a shell would report).
///
/// # Errors
///
/// Why it couldn't be run to its end.
pub(crate) async fn run_check(
    host: &Arc<LifeHost>,
    place: &TaskPlace,
    pass: &LaunchPass,
    name: &TaskName,
    order: &StartTask,
) -> Result<i32, String> {
    let Some(own) = order.own.clone() else {
        return Err("it is not a program of the user's own".to_owned());
    };
    // What was brought for its start may have made room for others since.
    bring_inputs(host, pass, order).await?;
    let (task, attempt) = attempt_key(order.task);
    let copy = format!("{}-check-{}", task.get(), attempt.get());
    let copy = TaskName::new(host.run.clone(), copy).map_err(|e| explain_error(&e))?;
    let work =
        OutputCheck { host: Arc::clone(host), place: place.clone(), name: name.clone(), copy, own };
    let made = {
        let work = work.clone();
        run_blocking(move || work.make_directory()).await
    };
    let checked = match made {
        Ok(()) => work.run(pass).await,
        Err(why) => Err(why),
    };
    // Whatever came of it, nothing of it stays.
    let said = {
        let work = work.clone();
        run_blocking(move || {
            work.keep_words();
            work.host.workspace().remove_task(&work.copy).map_err(|e| explain_error(&e))
        })
        .await
    };
    if let Err(why) = said {
        tracing::warn!(why, task = %name, "the directory of a check can't be removed");
    }
    checked
}

/// A command that checks the answer of a user's own program.
#[derive(Clone)]
struct OutputCheck {
    host: Arc<LifeHost>,
    place: TaskPlace,
    /// Name of the task whose answer is checked.
    name: TaskName,
    /// Name under which the checking command itself runs as a task, with a directory and a user of its own.
    copy: TaskName,
    own: OwnProgram,
}

impl OutputCheck {
    /// Makes the check's directory.
    fn make_directory(&self) -> Result<(), String> {
        let Self { host, place, name, copy, own } = self;
        let inputs: Result<Vec<_>, _> = own.inputs.iter().map(TaskInput::read).collect();
        let inputs = inputs.map_err(|e| explain_error(&e))?;
        let left = host.workspace().task_directory(name).join(WORK);
        let matches = matching_paths(&left, &own.outputs);
        let (inputs, copied) = choose_inputs(own, inputs, matches, |path| has_file(&left, path));
        let folder = host.workspace().create_check(copy).map_err(|e| explain_error(&e))?;
        let files = u64::try_from(inputs.len() + copied.len()).unwrap_or(u64::MAX);
        // The inputs and what is copied may each be as much as the program's directory holds.
        let most =
            own.directory_bytes.saturating_mul(2).saturating_add(BESIDE.saturating_mul(files));
        host.workspace().bound_task(copy, most).map_err(|e| explain_error(&e))?;
        let wanted = inputs.iter().map(|input| (input.digest, input.bytes));
        let held = host.contents().hold_contents(wanted).map_err(|e| explain_error(&e))?;
        directory::make_copy(&folder, (&inputs, &held), (&left, &copied))
            .map_err(|e| explain_error(&e))?;
        let check = OwnProgram {
            argv: own.verify.clone(),
            env: own.env.clone(),
            directory_bytes: own.directory_bytes,
            processes: own.processes,
            ..OwnProgram::default()
        };
        let has_root = place.groups.cell().is_some_and(|cell| cell.has_root());
        write_order(&folder, &check, has_root).map_err(|e| explain_error(&e))
    }

    /// Runs the check's command to its end, across freezes of the VM; returns the exit status.
    async fn run(&self, pass: &LaunchPass) -> Result<i32, String> {
        let started = loop {
            pass.wait_thawed().await.map_err(|e| explain_error(&e))?;
            let Some(inside) = pass.enter_birth() else { continue };
            let work = self.clone();
            break run_blocking(move || work.start_check(&inside)).await?;
        };
        let (work, pass) = (self.clone(), pass.clone());
        run_blocking(move || work.await_end(&started, &pass)).await
    }

    fn start_check(&self, _inside: &GatedWork) -> Result<ChildProcess, String> {
        let folder = self.host.workspace().task_directory(&self.copy);
        let TaskPlace { groups, cpu, slot } = &self.place;
        let entry = groups.slot_groups(*cpu, *slot).map_err(|e| explain_error(&e))?;
        ProgramCommand::new(self.host.task_program(), &folder)
            .args([supervisor::KIND, "--order"])
            .arg(folder.join(ORDER))
            .arg("--progress")
            .arg(folder.join(PROGRESS))
            .arg("--result")
            .arg(folder.join(RESULT))
            .bounds(program_bounds(&self.own))
            .start_task(&entry, limit::BIRTH)
            .map_err(|e| explain_error(&e))
    }

    fn await_end(&self, process: &ChildProcess, pass: &LaunchPass) -> Result<i32, String> {
        loop {
            if let Err(error) = pass.check_wanted() {
                put_down(process, pass);
                return Err(explain_error(&error));
            }
            match process.wait_end(LOOK) {
                Ok(None) => {}
                Ok(Some(ended)) => {
                    let end = end_of(&self.host.workspace().task_directory(&self.copy), ended);
                    return status_of(&end)
                        .ok_or_else(|| "its exit status is not known".to_owned());
                }
                Err(error) => return Err(explain_error(&error)),
            }
        }
    }

    /// Appends the check's output to the program's output, as far as the limit allows.
    fn keep_words(&self) {
        let [from, to] =
            [&self.copy, &self.name].map(|name| self.host.workspace().task_directory(name));
        for file in ["stdout", "stderr"] {
            if let Err(error) = append_file(&from.join(file), &to.join(file)) {
                tracing::debug!(%error, task = %self.name, file, "what a check wrote is not kept");
            }
        }
    }
}

fn append_file(from: &Path, to: &Path) -> io::Result<()> {
    let words = left::tail(from, SAID_BYTES)?;
    left::open(to, OpenOptions::new().append(true))?.write_all(&words)
}

/// Returns the files that a check gets: the original inputs; and files of the program that match its outputs
/// (`matches`) or that the check's command names and that exist (`is_there`). The program's copy of an input counts
/// only if `outputs` names exactly that file, as for data that is changed in place; its copy of the checking program
/// never counts.
fn choose_inputs(
    own: &OwnProgram,
    inputs: Vec<TaskInput>,
    matches: Vec<String>,
    is_there: impl Fn(&str) -> bool,
) -> (Vec<TaskInput>, Vec<String>) {
    let plain = |word: &String| word.strip_prefix("./").unwrap_or(word).to_owned();
    let checker = own.verify.first().map(plain);
    let is_changed = |path: &String| own.outputs.contains(path) && checker.as_ref() != Some(path);
    let named = own.verify.iter().map(plain).filter(|word| is_plain(word) && is_there(word));
    let inputs: Vec<_> = inputs.into_iter().filter(|input| !is_changed(&input.path)).collect();
    let mut copied: Vec<_> = matches.into_iter().chain(named).collect();
    copied.retain(|path| {
        let is_in = |input: &TaskInput| {
            // Neither in the place of an input, nor of a directory that one is in, nor below one.
            let below =
                |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
            input.path == *path || below(&input.path, path) || below(path, &input.path)
        };
        !inputs.iter().any(is_in)
    });
    copied.sort();
    copied.dedup();
    (inputs, copied)
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.map_err(|e| explain_error(&e))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|&word| word.to_owned()).collect()
    }

    fn chosen_of(
        outputs: &[&str],
        verify: &[&str],
        matches: &[&str],
    ) -> (Vec<String>, Vec<String>) {
        let own =
            OwnProgram { outputs: words(outputs), verify: words(verify), ..OwnProgram::default() };
        let input = |path: &&str| TaskInput {
            path: (*path).to_owned(),
            digest: blake3::hash(b""),
            bytes: 0,
            executable: false,
        };
        let inputs = ["check.sh", "data", "lib/table"].iter().map(input).collect();
        let there = ["answer", "data", "check.sh"];
        let (inputs, copied) =
            choose_inputs(&own, inputs, words(matches), |path| there.contains(&path));
        (inputs.into_iter().map(|input| input.path).collect(), copied)
    }

    #[test]
    fn a_check_sees_inputs_as_they_were_given_and_outputs_as_they_were_left() {
        let all = words(&["check.sh", "data", "lib/table"]);
        // A pattern that matches the check is no way to change it, and neither are names around it.
        let verify = ["./check.sh", "./answer", "../answer", "missing", "/etc/passwd"];
        let left = ["check.sh", "data", "lib", "data/x", "other"];
        assert_eq!(chosen_of(&["*"], &verify, &left), (all.clone(), words(&["answer", "other"])));
        // Data that is changed in its place is the program's.
        let rest = words(&["check.sh", "lib/table"]);
        assert_eq!(
            chosen_of(&["data"], &["./check.sh", "data"], &["data"]),
            (rest, words(&["data"]))
        );
        // The program that checks is not, whatever is said.
        assert_eq!(chosen_of(&["check.sh"], &["./check.sh"], &["check.sh"]), (all, Vec::new()));
    }
}
