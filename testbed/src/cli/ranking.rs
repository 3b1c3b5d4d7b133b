//! `dormouse reproduce measy/live-ranking`: the four schedulers on real processors, beside virtual time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dormouse_analysis::fidelity::{Consolidation, measured_sharing};
use dormouse_analysis::{RunMode, WorkOutcome};
use dormouse_policies::batch::Algorithm;
use dormouse_units::Span;
use dormouse_view::{TableCell, TableColumn, TextTone, TypedTable};
use dormouse_vm::ProcessorSharing;

use super::failure::Failure;
use super::preflight::{ANY_PORT, Rehearsed};
use super::progress::Progress;
use super::reproduce::MeasyLiveArgs;
use super::terminal;
use crate::live::{Conduct, conduct};
use dormouse_experiment::command_line;
use dormouse_experiment::{Experiment, ExperimentSource, Override, open};
use dormouse_report::jobs::JobsOutcome;
use dormouse_report::output::{LogHeader, ReplacedContent, StagedFolder, make_folder, write_in};
use dormouse_report::results::virtual_results;
use dormouse_report::run_view::RunResults;

/// Name of the built-in experiment that is run.
const EXPERIMENT: &str = "batch-small";
const SCHEDULERS: [Algorithm; 4] =
    [Algorithm::Easy, Algorithm::Keasy, Algorithm::Reasy, Algorithm::Measy];

/// The figures of a run that are compared with those of other runs.
struct Figures {
    response_s: f64,
    slowdown: f64,
    makespan_s: f64,
    /// Numbers of promotions by swap, by kill and by migration.
    promotions: [u64; 3],
    verified: u64,
    /// Measured costs of sharing and of moves in a live run, and whether the run was faithful; `None` for a virtual run.
    live: Option<(Consolidation, bool)>,
}

impl Figures {
    fn from_outcome(outcome: &JobsOutcome<'_>) -> Self {
        let figures = &outcome.figures;
        let faithful = outcome.fidelity.as_ref().is_some_and(|f| f.faithful);
        Self {
            response_s: figures.response.mean(),
            slowdown: figures.slowdown.mean(),
            makespan_s: figures.makespan().as_secs_f64(),
            promotions: [figures.swaps, figures.kills, figures.migrations],
            verified: outcome.verified,
            live: outcome.consolidation.clone().map(|sharing| (sharing, faithful)),
        }
    }
}

/// Runs all four schedulers in virtual time and live, one after the other.
pub(super) fn reproduce(args: &MeasyLiveArgs) -> Result<(), Failure> {
    let out = args.common.folder("reproduce-measy-live-ranking", None);
    make_folder(&out)?;
    super::log::begin(false, None);
    let mut runs = Vec::new();
    for scheduler in SCHEDULERS {
        let experiment = experiment(scheduler, args.seed)?;
        let modelled = virtually(&experiment, &folder(&out, &experiment, "virtual"))?;
        let real = live(&experiment, &folder(&out, &experiment, "live"), args.common.say.quiet)?;
        runs.push((scheduler, experiment, modelled, real));
    }
    let measured = Measured::from_runs(&runs);
    let mut rows = Vec::new();
    for (scheduler, mut experiment, modelled, real) in runs {
        measured.put_into(&mut experiment);
        let measured = virtually(&experiment, &folder(&out, &experiment, "measured"))?;
        rows.push(Row { scheduler, modelled, real, measured });
    }
    let table = table(&rows);
    write_in(&out, "table.csv", table.to_csv())?;
    args.common.report(&out, (text(&rows, &measured), table.to_json()))
}

fn experiment(scheduler: Algorithm, seed: Option<u64>) -> Result<Experiment, Failure> {
    let mut overrides = vec![Override::text("--scheduler", "scheduler.name", scheduler.name())];
    let seed = seed.map(|seed| seed.to_string());
    overrides.extend(seed.map(|value| Override { option: "--seed", path: "seed".into(), value }));
    let source =
        ExperimentSource { experiment: Some(EXPERIMENT), overrides, ..ExperimentSource::default() };
    Ok(open(&source)?.experiment)
}

/// Header of one of the compared runs, with the command that repeats this run alone.
fn header(experiment: &Experiment, mode: RunMode) -> LogHeader {
    let (scheduler, seed) =
        (experiment.scheduler_name().to_string(), experiment.setup.seed.to_string());
    let mut words = vec!["dormouse", "run"];
    words.extend((mode == RunMode::Live).then_some("--live"));
    words.extend([EXPERIMENT, "--seed", &seed, "--scheduler", &scheduler]);
    LogHeader::new(mode, command_line(words), experiment.clone())
}

fn folder(out: &Path, experiment: &Experiment, how: &str) -> PathBuf {
    out.join(format!("{}-{how}", experiment.scheduler_name()))
}

/// Writes the results of a run, and returns the figures that are compared.
fn written(results: &RunResults<'_>, staging: StagedFolder) -> Result<Figures, Failure> {
    let folder = results.view().write(staging)?;
    let broken = |why: &str| Failure::Broken(format!("{why}; see {}", folder.display()));
    match (&results.jobs, results.broke()) {
        (_, Some(why)) => Err(broken(&format!("the run ended before its work was done: {why}"))),
        (Some(outcome), None) => Ok(Figures::from_outcome(outcome)),
        (None, None) => Err(broken(&format!("{EXPERIMENT} has no parallel jobs"))),
    }
}

fn virtually(experiment: &Experiment, folder: &Path) -> Result<Figures, Failure> {
    let header = header(experiment, RunMode::Virtual);
    let staging = StagedFolder::begin(folder, ReplacedContent::Anything)?;
    let results = virtual_results(&header, (None, None), staging.path(), |_| {})?;
    written(&results, staging)
}

fn live(experiment: &Experiment, folder: &Path, quiet: bool) -> Result<Figures, Failure> {
    let began = Instant::now();
    let header = header(experiment, RunMode::Live);
    let Rehearsed { rehearsal, submissions, requests, sources } = Rehearsed::rehearse(experiment)?;
    let staging = StagedFolder::begin(folder, ReplacedContent::Anything)?;
    let mut progress = Progress::new(quiet, submissions.len(), "jobs");
    let conduct = conduct(
        Conduct {
            header: &header,
            scheduler: None,
            rehearsal,
            submissions,
            requests,
            listen: ANY_PORT,
            local_workers: 1,
            out: staging.path().to_path_buf(),
            resume: false,
            page: None,
            sources,
        },
        |now| progress.show(now.completed.into(), now.tasks.into(), "", None),
    );
    drop(progress);
    let ((results, _), wall_s) = (conduct?, began.elapsed().as_secs_f64());
    let RunResults { jobs, log, .. } = results;
    written(&RunResults { jobs, log, wall_s, ..RunResults::new(&header) }, staging)
}

/// One scheduler's results: in virtual time by the paper's model, live, and in virtual time with what was measured
/// live.
struct Row {
    scheduler: Algorithm,
    modelled: Figures,
    real: Figures,
    measured: Figures,
}

/// Differences of the live runs from the model of virtual time.
struct Measured {
    sharing: ProcessorSharing,
    /// Emulated time of a migration; `None` if there was no migration.
    migration: Option<Span>,
}

impl Measured {
    fn from_runs(runs: &[(Algorithm, Experiment, Figures, Figures)]) -> Self {
        let live = runs.iter().filter_map(|(s, e, _, real)| Some((s, e, &real.live.as_ref()?.0)));
        let (two_tier, moves): (Vec<_>, Vec<_>) = live
            .filter(|(scheduler, ..)| scheduler.promotion().is_some())
            .map(|(_, e, of)| {
                let real = Duration::try_from_secs_f64(of.migration_mean_s).unwrap_or_default();
                (of, e.live.speedup.to_emulated(real))
            })
            .unzip();
        let migration = moves.into_iter().max().filter(|longest| *longest > Span::ZERO);
        Self { sharing: measured_sharing(&two_tier), migration }
    }

    fn put_into(&self, experiment: &mut Experiment) {
        let Some(jobs) = &mut experiment.jobs else { return };
        jobs.sharing = self.sharing;
        if let Some(cost) = self.migration {
            jobs.scheduler.migration_cost = cost;
        }
    }
}

/// The schedulers by mean response time, the shortest first.
fn ranking(rows: &[Row], of: impl Fn(&Row) -> &Figures) -> String {
    let mut order: Vec<_> = rows.iter().collect();
    order.sort_by(|a, b| of(a).response_s.total_cmp(&of(b).response_s));
    order.iter().map(|row| row.scheduler.name()).collect::<Vec<_>>().join(" < ")
}

/// Table with a row for each scheduler: each figure in virtual time, live, and in virtual time with the measured model.
fn shown(rows: &[Row]) -> TypedTable {
    let seconds = |heading| TableColumn::seconds(heading).digits(0);
    let loss = |row: &Row, of: fn(&Consolidation) -> f64| row.real.live.as_ref().map(|l| of(&l.0));
    let promotions = |of: &Figures| of.promotions.map(|n| n.to_string()).join("/");
    let is_faithful = |row: &Row| row.real.live.as_ref().is_some_and(|live| live.1);
    TypedTable::with_rows(rows)
        .column(TableColumn::text("scheduler"), |row| row.scheduler.name())
        .column(seconds("mean response"), |row| row.modelled.response_s)
        .column(seconds("live"), |row| row.real.response_s)
        .column(seconds("measured"), |row| row.measured.response_s)
        .column(TableColumn::number("slowdown"), |row| row.modelled.slowdown)
        .column(TableColumn::number("live"), |row| row.real.slowdown)
        .column(TableColumn::number("measured"), |row| row.measured.slowdown)
        .column(seconds("makespan"), |row| row.modelled.makespan_s)
        .column(seconds("live"), |row| row.real.makespan_s)
        .column(TableColumn::text("promotions"), |row| promotions(&row.modelled))
        .column(TableColumn::text("live"), |row| promotions(&row.real))
        .column(TableColumn::percent("foreground loses"), |row| {
            loss(row, |l| l.foreground_worst_loss)
        })
        .column(TableColumn::percent("on average"), |row| loss(row, |l| l.foreground_mean_loss))
        .column(TableColumn::count(WorkOutcome::Verified.word()), |row| row.real.verified)
        .column(TableColumn::text(""), |row| {
            TableCell::text(if is_faithful(row) { "" } else { "not faithful" }).toned(TextTone::Bad)
        })
        .into()
}

fn text(rows: &[Row], measured: &Measured) -> String {
    let (modelled, real) = (ranking(rows, |row| &row.modelled), ranking(rows, |row| &row.real));
    let agree = if modelled == real { "they agree" } else { "THEY DO NOT AGREE" };
    let ProcessorSharing { loss, single, several_normal, .. } = measured.sharing;
    let migration = measured.migration.map_or_else(String::new, |cost| {
        format!("; a migration {:.0} s, the experiment's otherwise", cost.as_secs_f64())
    });
    let paper = ProcessorSharing::default();
    format!(
        "{}\n\n  by mean response, virtual: {modelled}\n  by mean response, live:    {real}\n  \
         {agree}; promotions are swaps/kills/migrations\n  measured: in virtual time with what the \
         live runs measured: of the idle cycles the background makes\n  {:.0} % on average in jobs \
         of several processes, the paper's model {:.0} %; {:.0} to {:.0} % in jobs of one, the \
         paper's {:.0} to\n  {:.0} %; the foreground loses {:.1} % on average, the paper's {:.1} \
         %{migration}",
        shown(rows).to_text(terminal::stdout()),
        several_normal.0 * 100.0,
        paper.several_normal.0 * 100.0,
        single.0 * 100.0,
        single.1 * 100.0,
        paper.single.0 * 100.0,
        paper.single.1 * 100.0,
        f64::midpoint(loss.0, loss.1) * 100.0,
        f64::midpoint(paper.loss.0, paper.loss.1) * 100.0,
    )
}

/// A function that reads one figure of a run.
type Figure = fn(&Figures) -> TableCell;

/// The figures in `table.csv`; the last two are only for live runs.
const FIGURES: [(&str, Figure); 8] = [
    ("mean_response_s", |of| of.response_s.into()),
    ("mean_bounded_slowdown", |of| of.slowdown.into()),
    ("makespan_s", |of| of.makespan_s.into()),
    ("swaps", |of| of.promotions[0].into()),
    ("kills", |of| of.promotions[1].into()),
    ("migrations", |of| of.promotions[2].into()),
    ("foreground_worst_loss", |of| of.live.as_ref().map(|l| l.0.foreground_worst_loss).into()),
    ("foreground_mean_loss", |of| of.live.as_ref().map(|l| l.0.foreground_mean_loss).into()),
];

/// Table with a row for each figure.
fn table(rows: &[Row]) -> TypedTable {
    let known = |row: &Row| if row.real.live.is_some() { FIGURES.len() } else { 6 };
    TypedTable::with_rows(
        rows.iter().flat_map(|row| FIGURES[..known(row)].iter().map(move |f| (row, f))),
    )
    .column(TableColumn::text("scheduler"), |(row, _)| row.scheduler.name())
    .column(TableColumn::text("metric"), |(_, (metric, _))| *metric)
    .column(TableColumn::number("virtual"), |(row, (_, of))| of(&row.modelled))
    .column(TableColumn::number("live"), |(row, (_, of))| of(&row.real))
    .column(TableColumn::number("virtual_as_measured"), |(row, (_, of))| of(&row.measured))
    .into()
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
            live: Some((Consolidation::default(), true)),
        }
    }

    #[test]
    fn a_disagreement_is_said() {
        let row = |scheduler, modelled, real, measured| {
            let [modelled, real, measured] = [modelled, real, measured].map(figures);
            Row { scheduler, modelled, real, measured }
        };
        let rows = |keasy| {
            vec![row(Algorithm::Easy, 9.0, 8.0, 8.1), row(Algorithm::Keasy, 7.0, keasy, 6.1)]
        };
        let measured = Measured { sharing: ProcessorSharing::default(), migration: None };
        let same = text(&rows(6.0), &measured);
        assert!(same.contains("live:    keasy < easy\n  they agree"), "{same}");
        assert!(text(&rows(8.5), &measured).contains("DO NOT AGREE"));
        assert!(table(&rows(6.0)).to_csv().contains("keasy,mean_response_s,7,6,6.1\n"));
        assert!(table(&rows(6.0)).to_csv().contains("keasy,kills,2,2,2\n"));
    }
}
