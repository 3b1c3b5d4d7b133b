//! The file of benchmarks: what is run, which figures come of it, and how bad the ratio of each may be.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::needs::Need;

/// All benchmarks, as `tests/bench/benchmarks.toml` has them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Benchmarks {
    /// By how much a ratio may be worse than its bound before that is a finding, as a part of the bound.
    pub tolerance: f64,
    /// The benchmarks in the order in which they are run.
    #[serde(rename = "benchmark")]
    pub all: Vec<Benchmark>,
}

/// A program that measures one figure or several.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Benchmark {
    /// Name by which the benchmark is chosen.
    pub name: String,
    /// What is measured, in a sentence without its full stop.
    pub about: String,
    /// How Cargo builds the program.
    pub build: Build,
    /// Name of the Cargo target; no other package has a target of that name.
    pub target: String,
    /// Arguments of the program; `{dormouse}` in one stands for the path of the command.
    #[serde(default)]
    pub args: Vec<String>,
    /// What a host must have for this benchmark to run.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// Figures that the program reports.
    #[serde(rename = "figure")]
    pub figures: Vec<Bound>,
}

/// How Cargo builds and runs a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Build {
    /// `cargo bench --bench TARGET`.
    Bench,
    /// `cargo test --test TARGET`, as for what needs the support of tests.
    Test,
}

/// A figure with the bound of its ratio.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bound {
    /// Name of the figure, unique among all benchmarks.
    pub name: String,
    /// Description of the figure.
    pub what: String,
    /// Unit of the figure and of its peer's figure.
    pub unit: String,
    /// What the figure is compared with in the same run: a peer program, or a floor (the least work possible).
    pub peer: String,
    /// The ratio allowed: how many times worse than its peer the figure may be.
    pub bound: f64,
    /// Why the bound has this value.
    pub reason: String,
    /// Tolerance of this figure, in place of the tolerance of the whole file; `None`: that of the file.
    pub tolerance: Option<f64>,
}

/// Why a file of benchmarks can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct InvalidBenchmarks {
    path: PathBuf,
    what: String,
}

impl Benchmarks {
    /// Reads the file of benchmarks.
    ///
    /// The file can't be read or parsed, has a name twice, or has a bound that no ratio can be compared with.
    ///
    /// The file can't be read, is not of this form, has a name twice, or has a bound that no ratio can be
    /// compared with.
    pub fn read(path: &Path) -> Result<Self, InvalidBenchmarks> {
        let failed = |what| InvalidBenchmarks { path: path.to_owned(), what };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        text.parse().map_err(failed)
    }

    /// The benchmarks that have one of these names, or a figure of one of these names; all benchmarks if no name is
    /// given.
    ///
    /// # Errors
    ///
    /// The names that neither a benchmark nor a figure has.
    pub fn chosen(&self, names: &[String]) -> Result<Self, Vec<String>> {
        let is_of = |name: &String, one: &Benchmark| {
            one.name == *name || one.figures.iter().any(|figure| figure.name == *name)
        };
        let unknown: Vec<_> =
            names.iter().filter(|name| !self.all.iter().any(|one| is_of(name, one))).collect();
        if !unknown.is_empty() {
            return Err(unknown.into_iter().cloned().collect());
        }
        let is_chosen =
            |one: &&Benchmark| names.is_empty() || names.iter().any(|name| is_of(name, one));
        let all = self.all.iter().filter(is_chosen).cloned().collect();
        Ok(Self { tolerance: self.tolerance, all })
    }

    /// The figures of all benchmarks with their bounds, in the file's order.
    pub fn bounds(&self) -> impl Iterator<Item = &Bound> {
        self.all.iter().flat_map(|benchmark| &benchmark.figures)
    }
}

impl std::str::FromStr for Benchmarks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            format!("line {line}: {}", error.message())
        })?;
        read.problem().map_or(Ok(read), Err)
    }
}

impl Benchmarks {
    /// What is wrong with the content of the file, although it could be parsed; `None` if nothing is.
    fn problem(&self) -> Option<String> {
        let is_tolerance = |x: f64| x.is_finite() && x >= 0.0;
        if !is_tolerance(self.tolerance) {
            return Some("tolerance has to be a part that is not below 0, such as 0.2".to_owned());
        }
        let mut names = BTreeSet::new();
        for benchmark in &self.all {
            if benchmark.figures.is_empty() {
                return Some(format!("{} has no figure", benchmark.name));
            }
            if !names.insert(&benchmark.name) {
                return Some(format!("there are two named {}", benchmark.name));
            }
        }
        let mut names = BTreeSet::new();
        for figure in self.bounds() {
            let name = &figure.name;
            if !names.insert(name) {
                return Some(format!("there are two figures named {name}"));
            }
            if !figure.bound.is_finite() || figure.bound <= 0.0 {
                return Some(format!("the bound of {name} has to be above 0"));
            }
            if figure.tolerance.is_some_and(|tolerance| !is_tolerance(tolerance)) {
                return Some(format!("the tolerance of {name} must not be below 0"));
            }
            if figure.reason.trim().is_empty() {
                return Some(format!("the bound of {name} has no reason"));
            }
        }
        None
    }
}

impl Bound {
    /// The worst ratio that is allowed: the bound, worsened by the tolerance.
    #[must_use]
    pub fn worst(&self, tolerance: f64) -> f64 {
        self.bound * (1.0 + self.tolerance.unwrap_or(tolerance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
tolerance = 0.2
[[benchmark]]
name = "criu"
about = "checkpoints"
build = "test"
target = "t"
args = ["bench", "criu"]
needs = ["criu"]
[[benchmark.figure]]
name = "dump-16"
what = "a checkpoint"
unit = "ms"
peer = "CRIU by hand"
bound = 1.1
reason = "measured"
[[benchmark.figure]]
name = "dump-64"
what = "a checkpoint"
unit = "ms"
peer = "CRIU by hand"
bound = 1.1
reason = "measured"
[[benchmark]]
name = "ils"
about = "the search"
build = "bench"
target = "ils"
[[benchmark.figure]]
name = "ils-j100"
what = "a plan"
unit = "ms"
peer = "bare moves"
bound = 5.0
tolerance = 0.5
reason = "measured"
"#;

    fn names(of: &Benchmarks) -> Vec<&str> {
        of.all.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn benchmarks_are_chosen_by_their_names_and_by_figures() -> Result<(), String> {
        let two: Benchmarks = TWO.parse()?;
        let chosen = |of: &[&str]| {
            let of: Vec<_> = of.iter().map(|name| (*name).to_owned()).collect();
            two.chosen(&of)
        };
        assert_eq!(chosen(&[]), Ok(two.clone()));
        assert_eq!(names(&chosen(&["ils"]).unwrap_or_default()), ["ils"]);
        assert_eq!(names(&chosen(&["dump-64"]).unwrap_or_default()), ["criu"]);
        assert_eq!(names(&chosen(&["ils-j100", "criu"]).unwrap_or_default()), ["criu", "ils"]);
        assert_eq!(chosen(&["ils", "nobody"]), Err(vec!["nobody".to_owned()]));
        Ok(())
    }

    #[test]
    fn a_figure_may_have_a_tolerance_of_its_own() -> Result<(), String> {
        let two: Benchmarks = TWO.parse()?;
        let worst: Vec<_> = two.bounds().map(|bound| bound.worst(two.tolerance)).collect();
        assert_eq!(worst, [1.1 * 1.2, 1.1 * 1.2, 7.5]);
        Ok(())
    }

    #[test]
    fn what_is_wrong_with_the_file_is_said_in_a_line() {
        for (from, to, says) in [
            ("tolerance = 0.2", "tolerance = -1.0", "tolerance has to be"),
            ("bound = 5.0", "bound = 0.0", "the bound of ils-j100 has to be above 0"),
            ("bound = 5.0", "bound = nan", "the bound of ils-j100 has to be above 0"),
            ("tolerance = 0.5", "tolerance = inf", "the tolerance of ils-j100"),
            ("dump-64", "dump-16", "two figures named dump-16"),
            ("name = \"ils\"", "name = \"criu\"", "two named criu"),
            ("needs = [\"criu\"]", "needs = [\"luck\"]", "line 9: unknown variant `luck`"),
            ("args = [", "arguments = [", "line 8: unknown field `arguments`"),
            ("tolerance = 0.5\nreason = \"measured\"", "reason = \"\"", "ils-j100 has no reason"),
            ("tolerance = 0.5\nreason = \"measured\"", "", "missing field `reason`"),
        ] {
            assert!(TWO.contains(from), "{from}");
            let error = TWO.replacen(from, to, 1).parse::<Benchmarks>().err().unwrap_or_default();
            assert!(error.contains(says) && !error.contains('\n'), "{from} as {to}: {error}");
        }
    }

    /// The committed file of benchmarks is valid, so that a mistake in it is found before somebody measures.
    #[test]
    fn the_committed_file_is_right() -> Result<(), InvalidBenchmarks> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benchmarks.toml");
        let committed = Benchmarks::read(&path)?;
        assert!(committed.all.len() > 5, "{:?}", names(&committed));
        Ok(())
    }
}
