//! Running benchmarks, one after the other.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

use dormouse_samples::Line;

use crate::benchmarks::{Benchmark, Benchmarks};
use crate::command::Builder;
use crate::outcome::Outcome;

/// Builds all benchmarks first, and then runs them one after the other. Their output goes to this program's output;
/// `say` is called with a line about each step.
///
/// # Errors
///
/// The folder for the reports of benchmarks can't be made. If a benchmark fails, its outcome says so.
pub fn run(
    benchmarks: &Benchmarks,
    builder: &Builder,
    say: &mut dyn FnMut(&str),
) -> io::Result<Vec<Outcome>> {
    let folder = tempfile::tempdir()?;
    let mut outcomes: Vec<_> = benchmarks.all.iter().map(needs_met).collect();
    say("building");
    let programs = failure(builder.programs(), "the commands do not build");
    for (benchmark, outcome) in benchmarks.all.iter().zip(&mut outcomes) {
        if outcome.failure.is_none() {
            let failed = || failure(builder.build(benchmark), "not run: it does not build");
            outcome.failure = programs.clone().or_else(failed);
        }
    }
    for (benchmark, outcome) in benchmarks.all.iter().zip(&mut outcomes) {
        if outcome.failure.is_some() {
            continue;
        }
        say(&format!("{}: {}", benchmark.name, benchmark.about));
        let lines = folder.path().join(&benchmark.name);
        let ended = failure(builder.run(benchmark, &lines), "it failed");
        match reported(&lines) {
            Ok(lines) => (outcome.lines, outcome.failure) = (lines, ended),
            Err(why) => outcome.failure = Some(why),
        }
    }
    Ok(outcomes)
}

/// The outcome of a benchmark before it is run; it holds a failure if this host lacks something that the benchmark
/// needs.
fn needs_met(benchmark: &Benchmark) -> Outcome {
    let failure = benchmark.needs.iter().find_map(|need| need.lacking());
    Outcome { benchmark: benchmark.name.clone(), failure, ..Outcome::default() }
}

/// Runs a command; returns why it failed and how to see more of that, or `None` if it succeeded.
fn failure(mut command: Command, what: &str) -> Option<String> {
    let why = match command.status() {
        Ok(status) if status.success() => return None,
        Ok(status) => ended(status),
        Err(error) => format!("{}: {error}", command.get_program().to_string_lossy()),
    };
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    Some(format!("{what} ({why}): {}", words.join(" ")))
}

fn ended(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("status {code}"))
}

/// The lines that a benchmark reported; empty if the benchmark did not make the file.
fn reported(file: &Path) -> Result<Vec<Line>, String> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("what it reported can't be read: {error}")),
    };
    let line = |(n, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| format!("it reported line {}, which is no figure: {error}", n + 1))
    };
    text.lines().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_told_with_its_words() {
        assert_eq!(failure(Command::new("/bin/true"), "it failed"), None);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exit 101"]);
        assert_eq!(
            failure(command, "it failed").as_deref(),
            Some("it failed (status 101): /bin/sh -c exit 101")
        );
        let missing = failure(Command::new("/no/such/program"), "it failed").unwrap_or_default();
        assert!(missing.starts_with("it failed (/no/such/program: No such file"), "{missing}");
    }

    #[test]
    fn what_is_reported_is_read_line_by_line() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("lines");
        assert_eq!(reported(&file), Ok(Vec::new()));
        let good = r#"{"name":"x","better":"less","ours":[1.0],"peer":[2.0]}"#;
        fs::write(&file, format!("{good}\n{good}\n"))?;
        assert_eq!(reported(&file)?.len(), 2);
        fs::write(&file, format!("{good}\n{{}}\n"))?;
        let error = reported(&file).err().unwrap_or_default();
        assert!(
            error.starts_with("it reported line 2, which is no figure: missing field"),
            "{error}"
        );
        Ok(())
    }
}
