//! `dormouse` without arguments: what to type.

use std::path::{Path, PathBuf};

use dormouse_report::output::is_unfinished;

use super::next_steps::{NextStep, aligned, pasted};
use super::run_folders::found;
use super::terminal;
use crate::said;

/// Prints on standard error which commands to type, for a call without a command, whose status is 2.
pub(super) fn show() {
    said::line(&text(&found()));
}

fn text(runs: &[PathBuf]) -> String {
    let title =
        "dormouse emulates a cloud of spot, burstable and on-demand VMs, and runs schedulers on it";
    let (heading, steps) = match runs {
        [] => ("type, to begin:".to_owned(), first_steps()),
        [newest, ..] => (after(newest, runs.len()), next_steps(newest)),
    };
    format!(
        "{title}\n\n{heading}\n{}\n\nevery command: dormouse --help",
        aligned("  ", &steps, terminal::stderr_width())
    )
}

fn first_steps() -> Vec<NextStep> {
    let own = "dormouse run --on j60 --runtime 60s -- sleep 1";
    [
        ("dormouse run j60", "a first run, in virtual time: a second"),
        ("dormouse doctor", "what live runs need here, and what to fix"),
        ("dormouse run j60 --live", "the same on real processes; needs root"),
        (own, "a program of your own in the place of its tasks"),
        ("dormouse reproduce opie/tables", "a paper's tables beside ours"),
        ("scripts/book", "the book as a site, in a clone of the source; its pages are in docs/"),
    ]
    .map(|(line, why)| NextStep::new(line, why))
    .into()
}

fn after(newest: &Path, count: usize) -> String {
    let (newest, many) = (newest.display(), if count == 1 { "run is" } else { "runs are" });
    format!("{count} {many} here, the newest in {newest}; type, to go on:")
}

fn next_steps(newest: &Path) -> Vec<NextStep> {
    let on = |words: &[&str]| pasted(words.iter().copied());
    let dir = &*newest.to_string_lossy();
    let mut steps = Vec::new();
    if is_unfinished(newest) {
        let resume = on(&["dormouse", "resume", dir]);
        steps.push(NextStep::new(resume, "go on with it: it did not come to its end"));
    }
    steps.push(NextStep::new(on(&["dormouse", "watch", dir, "--open-page"]), "the run on a page"));
    steps.push(NextStep::new(on(&["dormouse", "check", dir]), "whether a rule is broken in it"));
    steps.push(NextStep::new("dormouse list", "other experiments, and the schedulers"));
    steps
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::command::Cli;

    #[test]
    fn a_first_user_and_one_with_runs_are_told_different_things() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("a run");
        let (first, later) = (text(&[]), text(std::slice::from_ref(&run)));
        assert!(
            first.contains("dormouse run j60 ") && first.contains("dormouse doctor"),
            "{first}"
        );
        assert!(later.contains("1 run is here") && !later.contains("resume"), "{later}");
        std::fs::create_dir(&run).unwrap();
        std::fs::write(run.join("events.jsonl"), "").unwrap();
        assert!(text(&[run]).contains("dormouse resume '"));
    }

    /// A first step described as "the same …" uses the experiment or run of an earlier line.
    #[test]
    fn the_same_is_the_same() {
        let of = |line: &str| line.split(' ').nth(2).map(str::to_owned);
        let steps = first_steps();
        for (n, step) in steps.iter().enumerate().filter(|(_, it)| it.why.starts_with("the same")) {
            let before = steps[..n].iter().map(|step| of(&step.line));
            assert!(before.into_iter().any(|it| it == of(&step.line)), "{}", step.line);
        }
    }

    #[test]
    fn what_is_to_be_typed_is_read() {
        for step in first_steps().into_iter().chain(next_steps(Path::new("a run"))) {
            let words = shlex::split(&step.line).unwrap();
            if words[0] == "dormouse" {
                Cli::try_parse_from(&words).unwrap();
            }
        }
    }
}
