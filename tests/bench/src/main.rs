//! The program behind `scripts/bench`.

use std::collections::BTreeSet;
use std::env;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use dormouse_bench::{
    Benchmarks, Builder, InvalidBenchmarks, Record, RecordError, run, summary, verdict,
    write_history,
};
use dormouse_view::Terminal;

/// Path of the file of benchmarks, from the root of a clone.
const FILE: &str = "tests/bench/benchmarks.toml";

/// Measures the speeds and overheads of Dormouse, each beside a peer or a floor in the same run, and fails where
/// a ratio is worse than its bound in tests/bench/benchmarks.toml allows, or where one is missing.
///
/// Status 0: all is measured and as good as its bounds; 1: something is worse, missing or broken, a line each; 2: bad input.
#[derive(Debug, Parser)]
#[command(name = "bench", max_term_width = 100)]
struct Args {
    /// Only these: names of benchmarks, or of figures, whose whole benchmarks are run
    #[arg(long, num_args = 1.., value_name = "NAME", conflicts_with = "page")]
    only: Vec<String>,
    /// Write what was measured, as JSON
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "page"])]
    out: Option<PathBuf>,
    /// List the benchmarks and their figures, and run nothing
    #[arg(long, conflicts_with = "page")]
    list: bool,
    /// Make FOLDER/index.html of the JSON files in FOLDER, and run nothing
    #[arg(long, value_name = "FOLDER")]
    page: Option<PathBuf>,
    /// Profile of Cargo in which all is built; bounds are those of release
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,
    /// Print what the benchmarks need of a host, a word each, and run nothing
    #[arg(long, hide = true)]
    needs: bool,
}

/// Input that can't be used.
#[derive(Debug, thiserror::Error)]
enum BadInput {
    #[error(transparent)]
    Benchmarks(#[from] InvalidBenchmarks),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("{}: no benchmark or figure has this name: scripts/bench --list shows all", .0.join(", "))]
    Unknown(Vec<String>),
    #[error("{0}: has to be in a folder that exists")]
    NoFolder(String),
    #[error("the folder for what benchmarks report can't be made: {0}")]
    Temporary(#[from] std::io::Error),
}

#[expect(clippy::print_stderr, reason = "a program of its own")]
fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp) => error.exit(),
        Err(error) => {
            eprintln!("bench: {}", first_line(&error.to_string()));
            return ExitCode::from(2);
        }
    };
    done(&args).unwrap_or_else(|error| {
        eprintln!("bench: {error}");
        ExitCode::from(2)
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches("error: ")
}

#[expect(clippy::print_stdout, reason = "a program of its own")]
fn done(args: &Args) -> Result<ExitCode, BadInput> {
    if let Some(folder) = &args.page {
        println!("{}", write_history(folder)?.display());
        return Ok(ExitCode::SUCCESS);
    }
    let benchmarks = Benchmarks::read(Path::new(FILE))?;
    let benchmarks = benchmarks.chosen(&args.only).map_err(BadInput::Unknown)?;
    if args.needs {
        let needs: BTreeSet<_> = benchmarks.all.iter().flat_map(|one| &one.needs).collect();
        needs.into_iter().for_each(|need| println!("{}", need.word()));
        return Ok(ExitCode::SUCCESS);
    }
    if args.list {
        println!("{}", summary::list(&benchmarks, terminal()));
        return Ok(ExitCode::SUCCESS);
    }
    measure(args, &benchmarks)
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]
fn measure(args: &Args, benchmarks: &Benchmarks) -> Result<ExitCode, BadInput> {
    if let Some(out) = &args.out
        && out.parent().is_some_and(|folder| folder != Path::new("") && !folder.is_dir())
    {
        return Err(BadInput::NoFolder(out.display().to_string()));
    }
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let builder = Builder::new(&env::current_dir()?, &target, &args.profile);
    let outcomes = run(benchmarks, &builder, &mut |what| println!("==> {what}"))?;
    let verdict = verdict(benchmarks, &outcomes);
    let record = Record::new(&verdict, &builder);
    println!("{}", summary::measured(&record, terminal()));
    for figure in verdict.figures.iter().filter(|figure| figure.is_better()) {
        let (name, ratio, bound) = (&figure.name, figure.ratio.median, figure.bound);
        println!(
            "{name}: {ratio:.3} is better than its bound of {bound}: record a lower one, so that it stays"
        );
    }
    for finding in &verdict.findings {
        eprintln!("bench: {finding}");
    }
    if let Some(out) = &args.out {
        record.write(out)?;
    }
    Ok(ExitCode::from(u8::from(!verdict.findings.is_empty())))
}

fn terminal() -> Terminal {
    Terminal {
        width: None,
        has_colour: std::io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none(),
    }
}
