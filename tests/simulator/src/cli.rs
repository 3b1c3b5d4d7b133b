//! The command line of `simulate`.

use std::io::{self, Write as _};
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::campaign::Campaign;
use crate::faults::FAULTS;
use crate::invariant::Invariant;
use crate::outcome::Outcome;
use crate::plan::{CONDITIONS, Plan, Rates};
use crate::reach::{ENOUGH_RUNS, STATES};
use crate::run::Playground;
use crate::shrink::shrink;
use crate::trace::Lines;

/// The most violations that are shrunk and shown; further ones are counted.
const SHOWN: usize = 5;

/// Runs live runs under a simulated world, one for each seed, and looks for broken invariants.
///
/// Exit status: 0 no invariant was broken; 1 one was, or 20,000 runs and more did not reach every state of the table; 2 usage.
#[derive(Debug, Parser)]
#[command(name = "simulate")]
pub struct Arguments {
    /// Seeds to run, the last not included: A..B, or one seed.
    #[arg(long, value_name = "A..B", value_parser = seeds, default_value = "0..1000")]
    seeds: Range<u64>,
    /// Number of threads; left out: one for each processor.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Rate of a fault or a condition, as --table names them; may be given again.
    #[arg(long = "rate", value_name = "NAME=X", value_parser = rate)]
    rates: Vec<(String, f64)>,
    /// Print each run's trace: every event in order, one line each.
    #[arg(long)]
    trace: bool,
    /// Play this plan (JSON) and no seeds.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Print the plan of the first seed (JSON) and run nothing.
    #[arg(long)]
    show_plan: bool,
    /// Print the tables of faults, conditions and invariants, and run nothing.
    #[arg(long)]
    table: bool,
    /// Begin no seed after so many minutes.
    #[arg(long, value_name = "M")]
    minutes: Option<f64>,
    /// Stop at the first violation.
    #[arg(long)]
    first: bool,
    /// Leave the folders of runs in this one, with their logs.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Violations that are known and open: a line each, `SEED INVARIANT REASON`; they are printed, and are no failure
    #[arg(long, value_name = "FILE")]
    open: Option<PathBuf>,
    /// Do not shrink the plans of violations.
    #[arg(long)]
    no_shrink: bool,
    /// Say on standard error how far it has come, after each so many seeds.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    says_every: u64,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| {
        let digits = text.replace('_', "");
        digits.parse::<u64>().map_err(|error| format!("'{text}': {error}"))
    };
    let seeds = match text.split_once("..") {
        Some((from, to)) => number(from)?..number(to)?,
        None => number(text).map(|seed| seed..seed.saturating_add(1))?,
    };
    if seeds.is_empty() {
        return Err(format!("there are no seeds from {} to {}", seeds.start, seeds.end));
    }
    Ok(seeds)
}

fn rate(text: &str) -> Result<(String, f64), String> {
    let (name, rate) = text.split_once('=').ok_or("write NAME=X")?;
    Ok((name.to_owned(), rate.parse().map_err(|_| format!("'{rate}' is not a number"))?))
}

/// Runs the `simulate` command with these arguments.
#[must_use]
pub fn main(arguments: &Arguments) -> ExitCode {
    match carry_out(arguments) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("simulate: {why}");
            ExitCode::from(2)
        }
    }
}

fn carry_out(arguments: &Arguments) -> Result<ExitCode, String> {
    let mut rates = Rates::default();
    for (name, rate) in &arguments.rates {
        rates.set(name, *rate)?;
    }
    let mut out = io::stdout();
    let said = |error: io::Error| error.to_string();
    if arguments.table {
        return write!(out, "{}", tables()).map(|()| ExitCode::SUCCESS).map_err(said);
    }
    let lines = if arguments.trace { Lines::Printed } else { Lines::Digested };
    let playground = Playground { lines, ..Playground::new() };
    let playground = match &arguments.keep {
        Some(root) if !root.is_dir() => {
            return Err(format!("{}: there is no such folder: make it first", root.display()));
        }
        Some(root) => Playground { root: root.clone(), keeps: true, ..playground },
        None => playground,
    };
    if arguments.show_plan {
        let plan = Plan::draw(arguments.seeds.start, &rates);
        let json = serde_json::to_string_pretty(&plan).map_err(|error| error.to_string())?;
        return writeln!(out, "{json}").map(|()| ExitCode::SUCCESS).map_err(said);
    }
    if let Some(file) = &arguments.plan {
        let text = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let plan: Plan = serde_json::from_slice(&text)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let outcome = playground.play(&plan);
        show(&mut out, &outcome).map_err(said)?;
        return Ok(status(outcome.violation.is_some()));
    }
    if arguments.trace {
        let mut is_broken = false;
        for seed in arguments.seeds.clone() {
            let outcome = playground.play(&Plan::draw(seed, &rates));
            show(&mut out, &outcome).map_err(said)?;
            is_broken |= outcome.violation.is_some();
        }
        return Ok(status(is_broken));
    }
    let stop = Arc::new(AtomicBool::new(false));
    stop_at_interrupt(&stop);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let campaign = Campaign {
        seeds: arguments.seeds.clone(),
        threads: arguments.threads.unwrap_or(processors),
        rates: rates.clone(),
        lasts: arguments.minutes.map(|minutes| Duration::from_secs_f64(minutes.max(0.0) * 60.0)),
        first: arguments.first,
        says_every: arguments.says_every,
    };
    let began = Instant::now();
    let tally = campaign.run(&playground, &stop);
    let took = began.elapsed().as_secs_f64();
    write!(out, "{tally}").map_err(said)?;
    let each = took * 1_000.0 * campaign.threads as f64 / (tally.runs.max(1)) as f64;
    let threads = campaign.threads;
    writeln!(out, "{took:.1} s on {threads} threads, {each:.2} ms of a thread each")
        .map_err(said)?;
    let unreached = tally.unreached();
    let has_to_reach = tally.runs >= ENOUGH_RUNS;
    if !unreached.is_empty() {
        let (names, runs) = (unreached.join(", "), tally.runs);
        writeln!(out, "never reached in {runs} runs (a failure from {ENOUGH_RUNS} on): {names}")
            .map_err(said)?;
    }
    for outcome in tally.violations.iter().take(SHOWN) {
        writeln!(out).map_err(said)?;
        show(&mut out, outcome).map_err(said)?;
        if let (Some(violation), false) = (&outcome.violation, arguments.no_shrink) {
            let plan = Plan::draw(outcome.seed, &rates);
            let shrunk = shrink(&plan, violation.invariant, &playground);
            let json = serde_json::to_string(&shrunk.plan).map_err(|error| error.to_string())?;
            let (from, to, tries) = (parts(&plan), parts(&shrunk.plan), shrunk.tries);
            writeln!(out, "shrunk from {from} to {to} in {tries} runs: {json}").map_err(said)?;
        }
    }
    if arguments.first
        && let Some(outcome) = tally.violations.first()
        && let Some(violation) = &outcome.violation
    {
        let (seed, runs) = (outcome.seed, tally.runs);
        writeln!(out, "found by seed {seed} after {runs} runs: {}", violation.invariant)
            .map_err(said)?;
    }
    let open = match &arguments.open {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?
        }
        None => String::new(),
    };
    let is_new = |outcome: &&Outcome| !is_open(outcome, &open);
    let new = tally.violations.iter().filter(is_new).count();
    if new < tally.violations.len() {
        let known = tally.violations.len() - new;
        writeln!(out, "{known} of the violations are known and open").map_err(said)?;
    }
    Ok(status(new > 0 || has_to_reach && !unreached.is_empty()))
}

/// Returns whether these lines have the outcome's seed and the invariant that it broke.
fn is_open(outcome: &Outcome, open: &str) -> bool {
    let Some(violation) = &outcome.violation else { return false };
    open.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next().and_then(|seed| seed.parse().ok()) == Some(outcome.seed)
            && words.next() == Some(violation.invariant.to_string().as_str())
    })
}

/// The size of a plan in words: how many workers, tasks and faults, for example.
fn parts(plan: &Plan) -> String {
    let tasks = plan.setup.bag.tasks.len() + plan.submissions.len();
    let (faults, workers) = (plan.faults.len(), plan.workers.len());
    format!("{faults} faults, {tasks} tasks, {workers} workers")
}

fn status(is_broken: bool) -> ExitCode {
    if is_broken { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

/// Prints the outcome of one run for people.
fn show(out: &mut impl io::Write, outcome: &Outcome) -> io::Result<()> {
    let Outcome { seed, digest, steps, coordinators, workers, simulated_ms, .. } = outcome;
    let ending = match &outcome.ending {
        crate::outcome::Ending::Cancelled(why) => format!("cancelled: {why}"),
        ending => ending.word().to_owned(),
    };
    writeln!(
        out,
        "seed {seed}: {ending}; {steps} steps, {coordinators} coordinators, {workers} worker processes, \
         {}.{:03} s; trace {digest}",
        simulated_ms / 1_000,
        simulated_ms % 1_000
    )?;
    match &outcome.violation {
        Some(violation) => writeln!(out, "seed {seed}: VIOLATION of {violation}"),
        None => Ok(()),
    }
}

/// The tables of faults, conditions and invariants, as text.
#[must_use]
pub fn tables() -> String {
    let mut text = String::from(
        "| fault | per run | what happens | invariants that it threatens |\n|---|---|---|---|\n",
    );
    for kind in FAULTS {
        let threatens: Vec<_> = kind.threatens.iter().map(|invariant| invariant.name()).collect();
        let (name, rate, what) = (kind.name, kind.rate, kind.what);
        text += &format!("| {name} | {rate} | {what} | {} |\n", threatens.join(", "));
    }
    text += "\n| condition | part of runs | what it is |\n|---|---|---|\n";
    for condition in CONDITIONS {
        text += &format!("| {} | {} | {} |\n", condition.name, condition.rate, condition.what);
    }
    text += "\n| state | what has happened in a run that has reached it |\n|---|---|\n";
    for state in STATES {
        text += &format!("| {} | {} |\n", state.name, state.what);
    }
    text += "\n| invariant | what it says |\n|---|---|\n";
    for invariant in Invariant::ALL {
        text += &format!("| {invariant} | {} |\n", invariant.says());
    }
    text
}

/// At the first interrupt, sets `stop`, so that the program prints what was done until then; a second interrupt ends
/// the program at once. Interrupts are handled from when this function returns.
fn stop_at_interrupt(stop: &Arc<AtomicBool>) {
    let stop = Arc::clone(stop);
    let (say, is_ready) = mpsc::channel();
    // Where no thread can be had, an interrupt ends it as it ends any program.
    let _ = std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let Ok(mut interrupts) = signal(SignalKind::interrupt()) else { return };
            let _ = say.send(());
            interrupts.recv().await;
            stop.store(true, Ordering::Relaxed);
            interrupts.recv().await;
            std::process::exit(130);
        });
    });
    // It is dropped unsaid where that has failed.
    let _ = is_ready.recv();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_or_one_and_never_none() {
        assert_eq!(seeds("3..1_000"), Ok(3..1_000));
        assert_eq!(seeds("7"), Ok(7..8));
        for none in ["10..0", "5..5", "18446744073709551615", "3..", "a", ""] {
            assert!(seeds(none).is_err(), "{none}");
        }
    }
}
