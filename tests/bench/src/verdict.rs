//! The judgement of what benchmarks reported. Findings are a ratio that is worse than its bound, a missing figure, a
//! figure that has no bound, and a benchmark that was not run.

use std::collections::BTreeMap;
use std::fmt;

use crate::benchmarks::{Benchmark, Benchmarks};
use crate::figure::Figure;
use crate::outcome::Outcome;

/// The figures of a run, and all findings about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The measured figures, in the order of the file of benchmarks.
    pub figures: Vec<Figure>,
    /// The findings, in the same order as the figures; empty if nothing is wrong.
    pub findings: Vec<Finding>,
}

/// Something that is wrong with a run; its text is one line.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// A ratio is worse than its bound allows.
    Worse(Box<Figure>),
    /// A benchmark ran and did not report a figure, or reported samples from which no ratio can be computed.
    Missing {
        /// Name of the figure.
        figure: String,
        /// Name of the benchmark.
        benchmark: String,
    },
    /// A benchmark reported a figure twice; only the first report counts.
    Twice {
        /// Name of the figure.
        figure: String,
        /// Name of the benchmark.
        benchmark: String,
    },
    /// A benchmark reported a figure that has no bound.
    Unknown {
        /// Name of the figure.
        figure: String,
        /// Name of the benchmark.
        benchmark: String,
    },
    /// A benchmark was not run, or failed.
    NotRun {
        /// Name of the benchmark.
        benchmark: String,
        /// Why the benchmark was not run or failed, with the remedy.
        why: String,
        /// Names of the figures that the benchmark did not report.
        figures: Vec<String>,
    },
}

/// Compares the figures that benchmarks reported with their bounds. A benchmark without an outcome counts as not run.
#[must_use]
pub fn verdict(benchmarks: &Benchmarks, outcomes: &[Outcome]) -> Verdict {
    let mut verdict = Verdict::default();
    for benchmark in &benchmarks.all {
        let outcome = outcomes.iter().find(|outcome| outcome.benchmark == benchmark.name);
        let outcome = outcome.cloned().unwrap_or_else(|| Outcome {
            benchmark: benchmark.name.clone(),
            failure: Some("it was not begun".to_owned()),
            ..Outcome::default()
        });
        verdict.judge(benchmark, benchmarks.tolerance, &outcome);
    }
    verdict
}

impl Verdict {
    fn judge(&mut self, benchmark: &Benchmark, tolerance: f64, outcome: &Outcome) {
        let named = |figure: &str| (figure.to_owned(), benchmark.name.clone());
        let mut said = BTreeMap::new();
        for line in &outcome.lines {
            let (figure, benchmark) = named(&line.name);
            if said.contains_key(line.name.as_str()) {
                self.findings.push(Finding::Twice { figure, benchmark });
            } else {
                said.insert(line.name.as_str(), line);
            }
        }
        let mut missing = Vec::new();
        for bound in &benchmark.figures {
            let figure = said
                .remove(bound.name.as_str())
                .and_then(|line| Figure::new(&benchmark.name, line, bound, tolerance));
            match figure {
                Some(figure) => {
                    if figure.is_worse() {
                        self.findings.push(Finding::Worse(Box::new(figure.clone())));
                    }
                    self.figures.push(figure);
                }
                None => missing.push(bound.name.clone()),
            }
        }
        for unknown in said.into_keys() {
            let (figure, benchmark) = named(unknown);
            self.findings.push(Finding::Unknown { figure, benchmark });
        }
        match &outcome.failure {
            Some(why) => self.findings.push(Finding::NotRun {
                benchmark: benchmark.name.clone(),
                why: why.clone(),
                figures: missing,
            }),
            None => self.findings.extend(missing.iter().map(|figure| {
                let (figure, benchmark) = named(figure);
                Finding::Missing { figure, benchmark }
            })),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worse(figure) => {
                let Figure { name, ratio, peer, bound, worst, .. } = &**figure;
                write!(
                    f,
                    "{name}: {:.3} times {peer}, and its bound of {bound} allows {worst:.3}: \
                     find what made it worse, or record another bound with its reason",
                    ratio.median
                )
            }
            Self::Missing { figure, benchmark } => {
                write!(f, "{figure}: not measured: the benchmark {benchmark} did not report it")
            }
            Self::Twice { figure, benchmark } => {
                write!(f, "{figure}: the benchmark {benchmark} reported it twice")
            }
            Self::Unknown { figure, benchmark } => write!(
                f,
                "{figure}: the benchmark {benchmark} reported it, and it has no bound: \
                 give it one in tests/bench/benchmarks.toml"
            ),
            Self::NotRun { benchmark, why, figures } if figures.is_empty() => {
                write!(f, "{benchmark}: {why}")
            }
            Self::NotRun { benchmark, why, figures } => {
                write!(f, "{benchmark}: {why}; not measured: {}", figures.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_samples::Better::{Less, More};
    use dormouse_samples::Line;

    use super::*;
    use crate::benchmarks::Build;
    use crate::figure::tests::{bound, line};

    /// A benchmark with two figures, whose bounds are 1.1 and 2.
    fn benchmarks() -> Benchmarks {
        let benchmark = Benchmark {
            name: "criu".to_owned(),
            about: "checkpoints".to_owned(),
            build: Build::Test,
            target: "t".to_owned(),
            args: Vec::new(),
            needs: Vec::new(),
            figures: vec![bound("dump", 1.1), bound("spawn", 2.0)],
        };
        Benchmarks { tolerance: 0.2, all: vec![benchmark] }
    }

    /// The findings, as text, of a run in which these lines were reported.
    fn said(lines: &[Line], failure: Option<&str>) -> Vec<String> {
        let outcome = Outcome {
            benchmark: "criu".to_owned(),
            lines: lines.to_vec(),
            failure: failure.map(str::to_owned),
        };
        let verdict = verdict(&benchmarks(), &[outcome]);
        verdict.findings.iter().map(ToString::to_string).collect()
    }

    fn dump(ms: f64) -> Line {
        line("dump", Less, &[ms], &[10.0])
    }

    fn spawn(rate: f64) -> Line {
        line("spawn", More, &[rate], &[1_000.0])
    }

    #[test]
    fn a_ratio_may_be_a_fifth_worse_than_its_bound_and_no_more() {
        assert_eq!(said(&[dump(13.1), spawn(420.0)], None), [""; 0]);
        assert_eq!(said(&[dump(2.0), spawn(5_000.0)], None), [""; 0]);
        let worse = said(&[dump(13.3), spawn(410.0)], None);
        assert_eq!(worse.len(), 2);
        assert!(
            worse[0].starts_with("dump: 1.330 times a peer, and its bound of 1.1 allows 1.320: "),
            "{worse:?}"
        );
        assert!(
            worse[1].starts_with("spawn: 2.439 times a peer, and its bound of 2 allows 2.400: ")
        );
    }

    #[test]
    fn a_figure_that_is_missing_or_is_no_number_fails() {
        let missing = "spawn: not measured: the benchmark criu did not report it";
        assert_eq!(said(&[dump(10.0)], None), [missing]);
        assert_eq!(said(&[dump(10.0), spawn(0.0)], None), [missing]);
        assert_eq!(said(&[], None).len(), 2);
    }

    #[test]
    fn a_figure_that_nobody_expects_fails() {
        let unknown =
            said(&[dump(10.0), spawn(900.0), line("restore", Less, &[1.0], &[1.0])], None);
        assert_eq!(unknown.len(), 1);
        assert!(
            unknown[0].starts_with("restore: the benchmark criu reported it, and it has no bound")
        );
        let twice = said(&[dump(10.0), spawn(900.0), dump(99.0)], None);
        assert_eq!(twice, ["dump: the benchmark criu reported it twice"]);
    }

    #[test]
    fn a_benchmark_that_was_not_run_fails_and_names_what_is_missing() {
        let not_run = said(&[], Some("not run: it needs CRIU: scripts/get-criu finds one"));
        assert_eq!(
            not_run,
            ["criu: not run: it needs CRIU: scripts/get-criu finds one; not measured: dump, spawn"]
        );
        // It broke after its last figure: they count, and so does that.
        let broke = said(&[dump(99.0), spawn(900.0)], Some("it ended with status 101"));
        assert_eq!(broke.len(), 2);
        assert_eq!(broke[1], "criu: it ended with status 101");
        let forgotten = verdict(&benchmarks(), &[]);
        assert_eq!(forgotten.figures, []);
        assert_eq!(
            forgotten.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["criu: it was not begun; not measured: dump, spawn"]
        );
    }

    #[test]
    fn every_finding_is_one_line() {
        let all = [
            said(&[dump(99.0), dump(1.0), line("x", Less, &[1.0], &[1.0])], None),
            said(&[], Some("not run")),
        ];
        assert!(all.concat().len() >= 4);
        assert!(all.concat().iter().all(|line| !line.contains('\n')), "{all:?}");
    }
}
