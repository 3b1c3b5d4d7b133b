//! `dormouse reproduce measy/live`: the four schedulers on real processors, beside virtual time.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dormouse_batch::Algorithm;
use indicatif::ProgressBar;

use super::failure::Failure;
use super::print::print;
use super::reproduce::ReproduceArgs;
use crate::batch::{self, BatchExperiment, BatchHeader, BatchOutcome, Jobs};
use crate::experiment::{Opened, Override, Source, open};
use crate::live::{BatchConduct, conduct_batch};
use crate::output::{Mode, OutputError, Staging};

/// The experiment, and who schedules it.
const EXPERIMENT: &str = "batch-small";
const SCHEDULERS: [Algorithm; 4] =
    [Algorithm::Easy, Algorithm::Keasy, Algorithm::Reasy, Algorithm::Measy];

/// What is compared of a run.
struct Figures {
    response_s: f64,
    slowdown: f64,
    makespan_s: f64,
    /// Swaps, kills, migrations.
    promotions: [u64; 3],
    verified: u64,
    /// Of live runs: the foreground's worst and mean loss, and whether it was faithful.
    live: Option<(f64, f64, bool)>,
}

impl Figures {
    fn of(outcome: &BatchOutcome<'_>) -> Self {
        let figures = &outcome.figures;
        let sharing = outcome.consolidation.as_ref();
        let faithful = outcome.fidelity.as_ref().is_some_and(|f| f.faithful);
        Self {
            response_s: figures.response.mean(),
            slowdown: figures.slowdown.mean(),
            makespan_s: figures.makespan().as_secs_f64(),
            promotions: [figures.swaps, figures.kills, figures.migrations],
            verified: outcome.verified,
            live: sharing.map(|s| (s.foreground_worst_loss, s.foreground_mean_loss, faithful)),
        }
    }
}

/// Runs all four both ways, one after the other.
pub(super) fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    if let Some(option) = args.measy.not_of_live() {
        let text = format!("{option}: {} has no such option; leave it out", args.paper);
        return Err(Failure::BadInput(text));
    }
    let out = args.common.out.clone();
    let out = out.unwrap_or_else(|| PathBuf::from("runs").join("reproduce-measy-live"));
    std::fs::create_dir_all(&out).map_err(|e| OutputError::io("make", &out, e))?;
    super::log::begin();
    let mut rows = Vec::new();
    for scheduler in SCHEDULERS {
        let experiment = experiment(scheduler, args.measy.seed())?;
        let modelled = virtually(&experiment, &out)?;
        let real = live(&experiment, &out, args.common.quiet)?;
        rows.push((scheduler, modelled, real));
    }
    let path = out.join("table.csv");
    std::fs::write(&path, table(&rows)).map_err(|e| OutputError::io("write", &path, e))?;
    if args.common.quiet {
        return Ok(());
    }
    print(&text(&rows))?;
    print(&format!("\n  results in {}", out.display()))
}

fn experiment(scheduler: Algorithm, seed: Option<u64>) -> Result<BatchExperiment, Failure> {
    let mut overrides = vec![Override::text("--scheduler", "scheduler.name", scheduler.name())];
    let seed = seed.map(|seed| seed.to_string());
    overrides.extend(seed.map(|value| Override { option: "--seed", path: "seed".into(), value }));
    let source =
        Source { experiment: Some(EXPERIMENT), overrides, plan: None, replaces_workload: false };
    match open(&source)? {
        Opened::Batch(batch) => Ok(*batch),
        Opened::Bag(_) => Err(Failure::Broken(format!("{EXPERIMENT} is no batch of jobs"))),
    }
}

/// The command that makes one of the runs by itself, its header, and where it goes.
fn header(experiment: &BatchExperiment, mode: Mode, machine: u32) -> BatchHeader {
    let live = if mode == Mode::Live { " --live" } else { "" };
    let (scheduler, seed) = (experiment.scheduler.name, experiment.seed);
    let command = format!("dormouse run{live} {EXPERIMENT} --seed {seed} --scheduler {scheduler}");
    BatchHeader::new(mode, command, machine, experiment.clone())
}

fn folder(out: &Path, experiment: &BatchExperiment, mode: Mode) -> PathBuf {
    out.join(format!("{}-{mode}", experiment.scheduler.name))
}

fn virtually(experiment: &BatchExperiment, out: &Path) -> Result<Figures, Failure> {
    let jobs = Jobs::open(experiment)?;
    let header = header(experiment, Mode::Virtual, jobs.machine());
    let staging = Staging::begin(&folder(out, experiment, Mode::Virtual), true)?;
    let outcome = batch::virtual_run(&header, jobs, staging.path())?;
    outcome.write(staging)?;
    Ok(Figures::of(&outcome))
}

fn live(experiment: &BatchExperiment, out: &Path, quiet: bool) -> Result<Figures, Failure> {
    let began = Instant::now();
    let mut jobs = Jobs::open(experiment)?;
    let header = header(experiment, Mode::Live, jobs.machine());
    let submissions = jobs.by_ref().collect::<Result<Vec<_>, _>>()?;
    let staging = Staging::begin(&folder(out, experiment, Mode::Live), true)?;
    let bar =
        if quiet { ProgressBar::hidden() } else { ProgressBar::new(submissions.len() as u64) };
    let conduct = BatchConduct {
        header: &header,
        submissions,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        local: true,
        out: staging.path().to_path_buf(),
    };
    let conducted = conduct_batch(conduct, |now| bar.set_position(u64::from(now.completed)));
    bar.finish_and_clear();
    let (mut outcome, broke) = conducted?;
    outcome.wall_s = began.elapsed().as_secs_f64();
    let folder = outcome.write(staging)?;
    match broke {
        None => Ok(Figures::of(&outcome)),
        Some(why) => {
            Err(Failure::Broken(format!("the run broke: {why}; see {}", folder.display())))
        }
    }
}

type Row = (Algorithm, Figures, Figures);

/// Shortest mean response first.
fn ranking(rows: &[Row], of: impl Fn(&Row) -> f64) -> String {
    let mut order: Vec<_> = rows.iter().collect();
    order.sort_by(|a, b| of(a).total_cmp(&of(b)));
    order.iter().map(|row| row.0.name()).collect::<Vec<_>>().join(" < ")
}

fn text(rows: &[Row]) -> String {
    let mut text = String::from(
        "  scheduler   mean response        slowdown      makespan           promotions       \
         foreground loss   verified\n             virtual     live  virt. live   virtual  live   \
         virtual     live       worst   mean\n",
    );
    for (scheduler, modelled, real) in rows {
        let promotions = |f: &Figures| f.promotions.map(|n| n.to_string()).join("/");
        let (worst, mean, faithful) = real.live.unwrap_or_default();
        let _ = writeln!(
            text,
            "  {:<9} {:>8.0} s {:>6.0} s {:>5.2} {:>5.2} {:>7.0} s {:>5.0} s  {:>9} {:>9} {:>7.1} % \
             {:>5.1} % {:>6}{}",
            scheduler.name(),
            modelled.response_s,
            real.response_s,
            modelled.slowdown,
            real.slowdown,
            modelled.makespan_s,
            real.makespan_s,
            promotions(modelled),
            promotions(real),
            worst * 100.0,
            mean * 100.0,
            real.verified,
            if faithful { "" } else { "  not faithful" },
        );
    }
    let (modelled, real) =
        (ranking(rows, |row| row.1.response_s), ranking(rows, |row| row.2.response_s));
    let agree = if modelled == real { "they agree" } else { "THEY DO NOT AGREE" };
    let _ = write!(
        text,
        "\n  by mean response, virtual: {modelled}\n  by mean response, live:    {real}\n  {agree}; \
         promotions are swaps/kills/migrations"
    );
    text
}

fn table(rows: &[Row]) -> String {
    let mut csv = String::from("scheduler,metric,virtual,live\n");
    for (scheduler, modelled, real) in rows {
        let of = |f: &Figures| {
            [
                ("mean_response_s", f.response_s),
                ("mean_bounded_slowdown", f.slowdown),
                ("makespan_s", f.makespan_s),
            ]
        };
        for ((metric, modelled), (_, real)) in of(modelled).into_iter().zip(of(real)) {
            let _ = writeln!(csv, "{scheduler},{metric},{modelled},{real}");
        }
        for (n, metric) in ["swaps", "kills", "migrations"].into_iter().enumerate() {
            let (modelled, real) = (modelled.promotions[n], real.promotions[n]);
            let _ = writeln!(csv, "{scheduler},{metric},{modelled},{real}");
        }
        if let Some((worst, mean, _)) = real.live {
            let _ = writeln!(csv, "{scheduler},foreground_worst_loss,,{worst}");
            let _ = writeln!(csv, "{scheduler},foreground_mean_loss,,{mean}");
        }
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(response_s: f64) -> Figures {
        let (slowdown, makespan_s) = (1.5, 100.0);
        Figures {
            response_s,
            slowdown,
            makespan_s,
            promotions: [1, 2, 3],
            verified: 40,
            live: Some((0.05, 0.01, true)),
        }
    }

    #[test]
    fn a_disagreement_is_said() {
        let rows = |keasy| {
            vec![
                (Algorithm::Easy, figures(9.0), figures(8.0)),
                (Algorithm::Keasy, figures(7.0), figures(keasy)),
            ]
        };
        let same = text(&rows(6.0));
        assert!(same.contains("live:    keasy < easy\n  they agree"), "{same}");
        assert!(text(&rows(8.5)).contains("DO NOT AGREE"));
        assert!(table(&rows(6.0)).contains("keasy,mean_response_s,7,6\n"));
    }
}
