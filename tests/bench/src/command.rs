//! The commands that build and run benchmarks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::benchmarks::{Benchmark, Build};

/// Builds benchmarks, and the programs that they start, in one profile of Cargo.
#[derive(Clone, Debug)]
pub struct Builder {
    root: PathBuf,
    target: PathBuf,
    profile: String,
}

impl Builder {
    /// A builder of the clone at `root`, which puts build artefacts below `target`.
    #[must_use]
    pub fn new(root: &Path, target: &Path, profile: &str) -> Self {
        Self { root: root.to_owned(), target: root.join(target), profile: profile.to_owned() }
    }

    /// The root folder of the clone that is built.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The Cargo profile in which all is built.
    #[must_use]
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// The path that the program of this name has once it is built.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        // The folders of these two are called otherwise.
        let folder = match self.profile.as_str() {
            "dev" | "test" => "debug",
            "bench" => "release",
            other => other,
        };
        self.target.join(folder).join(name)
    }

    /// The command that builds the programs that benchmarks start.
    #[must_use]
    pub fn programs(&self) -> Command {
        self.cargo("build", &["--bin", "dormouse", "--bin", "dormouse-task"])
    }

    /// The command that builds a benchmark without running it.
    #[must_use]
    pub fn build(&self, benchmark: &Benchmark) -> Command {
        let mut command = self.command(benchmark);
        command.arg("--no-run");
        command
    }

    /// The command that runs a benchmark, which appends what it measures to the file `lines`.
    #[must_use]
    pub fn run(&self, benchmark: &Benchmark, lines: &Path) -> Command {
        let (dormouse, task) = (self.program("dormouse"), self.program("dormouse-task"));
        let mut command = self.command(benchmark);
        command.arg("--").args(benchmark.args.iter().map(|arg| match arg.as_str() {
            "{dormouse}" => dormouse.clone().into_os_string(),
            other => OsString::from(other),
        }));
        command.env(dormouse_samples::FILE, lines);
        // What it is told of it does not build, in another profile and beside what is measured.
        command.env("DORMOUSE", &dormouse).env("DORMOUSE_TASK", task);
        command
    }

    fn command(&self, benchmark: &Benchmark) -> Command {
        let (verb, kind) = match benchmark.build {
            Build::Bench => ("bench", "--bench"),
            Build::Test => ("test", "--test"),
        };
        // Of a single package Cargo would build the dependencies once more, with other features.
        self.cargo(verb, &["--workspace", kind, &benchmark.target])
    }

    fn cargo(&self, verb: &str, args: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        command.args([verb, "--profile", &self.profile, "--locked", "--quiet"]).args(args);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> String {
        let words = command.get_args().map(|word| word.to_string_lossy());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_benchmark_is_built_before_it_is_run() {
        let builder = Builder::new(Path::new("/clone"), Path::new("target"), "release");
        let benchmark = Benchmark {
            name: "dispatch".to_owned(),
            about: String::new(),
            build: Build::Bench,
            target: "dispatch".to_owned(),
            args: vec!["8".to_owned(), "{dormouse}".to_owned()],
            needs: Vec::new(),
            figures: Vec::new(),
        };
        let cargo = "bench --profile release --locked --quiet --workspace --bench dispatch";
        assert_eq!(words(&builder.build(&benchmark)), format!("{cargo} --no-run"));
        let run = builder.run(&benchmark, Path::new("/lines"));
        assert_eq!(words(&run), format!("{cargo} -- 8 /clone/target/release/dormouse"));
        let told =
            |name: &str| run.get_envs().find(|(it, _)| *it == name).and_then(|(_, value)| value);
        for (name, value) in [
            (dormouse_samples::FILE, "/lines"),
            ("DORMOUSE", "/clone/target/release/dormouse"),
            ("DORMOUSE_TASK", "/clone/target/release/dormouse-task"),
        ] {
            assert_eq!(told(name), Some(value.as_ref()), "{name}");
        }
        let test = Benchmark { build: Build::Test, ..benchmark };
        assert!(words(&builder.build(&test)).starts_with("test "), "{:?}", builder.build(&test));
    }

    #[test]
    fn a_program_is_where_cargo_puts_it() {
        for (profile, folder) in
            [("release", "release"), ("bench", "release"), ("dev", "debug"), ("demo", "demo")]
        {
            let builder = Builder::new(Path::new("/clone"), Path::new("/target"), profile);
            let dormouse = Path::new("/target").join(folder).join("dormouse");
            assert_eq!(builder.program("dormouse"), dormouse);
        }
    }
}
