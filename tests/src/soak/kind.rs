//! The kinds of rounds in a soak.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::{drawn, programs::Programs};

/// Number of storms in a round: one for each kind of run in the storm tests.
const STORMS: u64 = 3;
/// The tests of kill storms: the test program, and the name of the tests in it.
const STORM_TESTS: [&str; 2] = ["tests/live", "live::storms::"];
/// The tests of a coordinator whose peers lie, flood, hang and come without permission: the test program, and the name
/// of the tests in it.
const HOSTILE_TESTS: [&str; 2] = ["tests/service", "service::hostile::"];

/// A kind of round in a soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Kill storms: coordinators, workers or both are killed.
    Storms,
    /// A live run with faults at random times.
    Faults,
    /// Tests with peers that lie and flood.
    Lies,
    /// All fuzz targets, for a minute.
    Fuzz,
    /// The simulator on many seeds, for a minute.
    Simulated,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Storms, Self::Faults, Self::Lies, Self::Simulated, Self::Fuzz];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Storms => "storms",
            Self::Faults => "faults",
            Self::Lies => "lies and floods",
            Self::Fuzz => "fuzz",
            Self::Simulated => "simulated seeds",
        }
    }

    /// The word for the cases that are counted within a round of this kind.
    pub(super) const fn cases(self) -> &'static str {
        match self {
            Self::Storms => "storms",
            Self::Faults => "faults",
            Self::Lies => "tests",
            Self::Fuzz => "inputs",
            Self::Simulated => "seeds",
        }
    }

    /// The longest time that a round may take: several times what it takes on a busy machine.
    pub(super) const fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Storms => 900,
            Self::Faults => 420,
            Self::Lies => 420,
            // The first one builds them.
            Self::Fuzz => 1800,
            Self::Simulated => 300,
        })
    }

    /// The first program that a round of this kind needs and that is missing; `None` if none is.
    pub(super) fn lacks(self, programs: &Programs) -> Option<String> {
        let needed = match self {
            Self::Storms => vec!["dormouse".to_owned(), STORM_TESTS[0].to_owned()],
            Self::Faults => vec!["dormouse".to_owned()],
            Self::Lies => vec![HOSTILE_TESTS[0].to_owned()],
            Self::Fuzz => vec!["fuzz".to_owned()],
            Self::Simulated => vec!["simulate".to_owned()],
        };
        needed.into_iter().find(|program| !programs.has(program))
    }

    /// The commands of a round, to be run one after the other; each must end with status 0.
    ///
    /// # Errors
    ///
    /// The input files of the commands can't be written.
    pub(super) fn commands(
        self,
        programs: &Programs,
        folder: &Path,
        seed: u64,
    ) -> std::io::Result<Vec<Command>> {
        let scratch = folder.join("tmp");
        let command = |program: &str| programs.command(program, &scratch);
        let tests = |[program, named]: [&str; 2]| {
            let mut tests = command(program);
            tests.arg(named);
            tests
        };
        Ok(match self {
            Self::Storms => {
                let mut storms = tests(STORM_TESTS);
                storms.arg("--nocapture");
                storms.env("STORMS", STORMS.to_string()).env("STORM_SEED", seed.to_string());
                vec![storms]
            }
            Self::Faults => {
                let file = folder.join("experiment.toml");
                fs::write(&file, drawn::experiment(seed))?;
                let (file, out) = (file.display().to_string(), folder.join("out"));
                let out = out.display().to_string();
                let dormouse = |words: &[&str]| programs.dormouse(words, &scratch);
                vec![
                    dormouse(&["run", &file, "--live", "--out", &out]),
                    dormouse(&["check", &out]),
                    dormouse(&["replay", &out]),
                ]
            }
            Self::Lies => vec![tests(HOSTILE_TESTS)],
            Self::Fuzz => {
                let mut fuzz = command("fuzz");
                fuzz.arg("60");
                vec![fuzz]
            }
            Self::Simulated => {
                let mut simulate = command("simulate");
                // Each round begins where no other comes to: a million seeds take longer than a round.
                let first = seed.wrapping_mul(1_000_000);
                simulate.arg("--seeds").arg(format!("{first}..{}", first + 1_000_000));
                simulate.args(["--minutes", "1"]);
                vec![simulate]
            }
        })
    }

    /// Checks what a round's programs left behind, once all of them have ended well; an error says what is wrong.
    pub(super) fn judge(self, folder: &Path) -> Result<(), String> {
        if self != Self::Faults {
            return Ok(());
        }
        let summary = faults_summary(folder).ok_or("it left no summary.json")?;
        let verified = &summary["tasks"]["verified"];
        if verified != drawn::TASKS {
            return Err(format!("{verified} of {} tasks are verified", drawn::TASKS));
        }
        Ok(())
    }

    /// The number of cases in a round, by its output and files; `None` if these do not say.
    pub(super) fn counted(self, folder: &Path, said: &str) -> Option<u64> {
        match self {
            Self::Storms => sum(said, " storms survived", |before| before.split(' ').next()),
            Self::Lies => sum(said, " passed;", |before| before.split(' ').next_back()),
            Self::Fuzz => sum_of_column(said, "executions"),
            Self::Simulated => sum_after(said, "runs "),
            Self::Faults => {
                let summary = faults_summary(folder)?;
                u64::try_from(summary["faults"].as_array()?.len()).ok()
            }
        }
    }
}

fn faults_summary(folder: &Path) -> Option<Value> {
    let text = fs::read_to_string(folder.join("out/summary.json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// Sums the numbers that `pick` finds before `words`, over all lines with these words.
fn sum(said: &str, words: &str, pick: impl Fn(&str) -> Option<&str>) -> Option<u64> {
    let lines = said.lines().filter_map(|line| line.split_once(words));
    lines.filter_map(|(before, _)| pick(before)?.parse().ok()).reduce(|a: u64, b| a + b)
}

/// Sums the numbers at the end of all lines that begin with these words.
fn sum_after(said: &str, words: &str) -> Option<u64> {
    let rests = said.lines().filter_map(|line| line.trim().strip_prefix(words));
    let firsts = rests.filter_map(|rest| rest.split_whitespace().next());
    firsts.filter_map(|n| n.replace(',', "").parse().ok()).reduce(|a: u64, b| a + b)
}

/// Sums a column of the last table that `scripts/fuzz` printed, over the rows that have a number there; an empty line
/// ends the table.
fn sum_of_column(said: &str, column: &str) -> Option<u64> {
    let mut lines = said.lines().skip_while(|line| !line.starts_with("target "));
    let at = lines.next()?.split_whitespace().position(|name| name == column)?;
    let rows = lines.take_while(|line| !line.is_empty());
    let cells = rows.filter_map(|row| row.split_whitespace().nth(at));
    cells.filter_map(|n| n.parse().ok()).reduce(|a: u64, b| a + b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `scripts/fuzz 5 --target swf --target requests`.
    const FUZZ: &str = "\
\u{1b}[1m==>\u{1b}[0m 0:01 toolchain: cargo 1.95.0 (f2d3ce0bd 2026-03-21)
\u{1b}[1m==>\u{1b}[0m 0:01 building
\u{1b}[1m==>\u{1b}[0m 0:01 2 targets, 5 s each
\u{1b}[1m==>\u{1b}[0m 0:16 swf                             517       3836        138        0
\u{1b}[1m==>\u{1b}[0m 0:28 requests                         42       4232         22        0

target                   executions   coverage        new   status
swf                             517       3836        138        0
requests                         42       4232         22        0

\u{1b}[1m==>\u{1b}[0m 0:30 ran clean
";

    #[test]
    fn cases_are_counted_by_what_programs_print() {
        let counted = |kind: Kind, said: &str| kind.counted(Path::new("nowhere"), said);
        assert_eq!(
            counted(Kind::Storms, "storm 1 of seed 4: well\n2 of 3 storms survived\n"),
            Some(2)
        );
        let two = "test result: ok. 5 passed; 0 failed\n\ntest result: ok. 7 passed; 0 failed\n";
        assert_eq!(counted(Kind::Lies, two), Some(12));
        assert_eq!(counted(Kind::Fuzz, FUZZ), Some(559));
        assert_eq!(counted(Kind::Fuzz, &FUZZ.replace("517", "  -")), Some(42));
        assert_eq!(counted(Kind::Fuzz, "ran clean"), None);
        let simulated =
            "power cut  3  2\n\nruns                                      1200\n  ended  1190\n";
        assert_eq!(counted(Kind::Simulated, simulated), Some(1200));
        assert_eq!(counted(Kind::Faults, "anything"), None);
    }
}
