//! The view of a run of parallel jobs alone, and the parts on jobs for runs that parallel jobs
//! share with other work.

use std::collections::BTreeMap;

use dormouse_analysis::fidelity::Consolidation;
use dormouse_analysis::jobs::{JobFigures, JobQuantity};
use dormouse_model::TenantWork;
use dormouse_policies::batch::Algorithm;
use dormouse_units::{Tier, Time};
use dormouse_view::plot::{
    AxisScale, ChartPanel, GanttChart, PanelChart, PlotAxis, PointLook, PointSeries, SeriesPoint,
};
use dormouse_view::{HtmlPage, PageBlock, TableColumn, TimeUnit, TypedTable};
use dormouse_workload::Skipped;
use serde_json::{Value, json};

use super::outcome::RunResults;
use super::summary_parts::{checkpoint_failures, leave_out};
use super::{RunView, SummaryLine};
use super::{answers, dates, emulation, faults, machine, requests};
use crate::jobs::JobsOutcome;

/// The variant of EASY in one line; its definition is in the documentation of
/// `dormouse_policies::batch`.
const VARIANT: &str =
    "extra nodes; estimates as given; no kill at the estimate; ties by order of submission";

pub(super) fn view(run: &RunResults<'_>, jobs: &JobsOutcome<'_>) -> RunView {
    let mut gantt = GanttChart { unit: run.time_unit(), ..GanttChart::default() };
    machine::add(&mut gantt, jobs);
    let faulted = faults::faulted(run);
    if let Some(record) = &run.of_hosts {
        faults::draw(&mut gantt, record);
    }
    let mut page = build_page(run, jobs, &gantt);
    page.section("Faults", faults::section(run, &faulted));
    let mut lines = summary_lines(run, jobs);
    lines.extend(faults::lines(run, &faulted));
    lines.extend(run.requests.iter().flat_map(requests::lines));
    let summary = summary_json(run, jobs);
    let tables = faults::table(&faulted).map(|table| ("faults", table)).into_iter().collect();
    RunView { summary, lines, gantt, page, plan: None, tables, hashes: BTreeMap::new() }
}

/// Mean work rate of a machine in words. Two jobs that share a processor can exceed the rate of one
/// job alone.
fn work_rate(rate: f64, machine: u32) -> String {
    format!("the work of {rate:.1} processors with one job each, on {machine}")
}

/// Whether all submitted jobs have ended successfully.
pub(super) fn is_complete(jobs: &JobsOutcome<'_>) -> bool {
    jobs.outcomes().is_complete()
}

/// One line on the jobs of a shared run; times in `unit`.
pub(super) fn line(jobs: &JobsOutcome<'_>, unit: TimeUnit) -> String {
    let of_log = jobs.skipped.filter(Skipped::is_worth_telling);
    let of_log = of_log.map(|skipped| format!("; of their log: {skipped}"));
    format!(
        "{} jobs under {} on {} processors: mean response {}, mean slowdown {:.2}{}",
        jobs.figures.jobs(),
        jobs.batch.scheduler_name(),
        jobs.machine(),
        unit.words(jobs.figures.response.mean(), 1),
        jobs.figures.slowdown.mean(),
        of_log.unwrap_or_default(),
    )
}

/// The content of `summary.json`. Cost and deadline are null: parallel jobs have neither.
fn summary_json(run: &RunResults<'_>, jobs: &JobsOutcome<'_>) -> Value {
    let (header, figures) = (run.header, &jobs.figures);
    let experiment = &header.experiment;
    let mut summary = json!({
        "experiment": experiment.name,
        "scheduler": jobs.batch.scheduler_name(),
        "mode": header.mode,
        "seed": experiment.setup.seed,
        "speedup": header.live_speedup(),
        "makespan_s": figures.makespan().as_secs_f64(),
        "cost_usd": null,
        "deadline_s": null,
        "deadline_met": null,
        "tasks": jobs.outcomes().summary(),
        "mean_response_s": figures.response.mean(),
        "mean_bounded_slowdown": figures.slowdown.mean(),
        "mean_wait_s": figures.wait.mean(),
        "processors": jobs.machine(),
        "utilisation": figures.utilisation(jobs.machine()),
        "counts": {
            "migrations": figures.migrations,
            "kills": figures.kills,
            "swaps": figures.swaps,
            "background_only": figures.background_only,
            "checkpoints": jobs.checkpoints,
            "restores": jobs.restores,
            "rejected": jobs.rejected,
        },
        "checkpoint_failures": run.record.as_ref().and_then(checkpoint_failures),
        "easy_variant": (jobs.batch.scheduler.name != Algorithm::Program).then_some(VARIANT),
        "most_jobs_in_system": jobs.most_in_system,
        "left_out": jobs.skipped,
        "requests": run.requests.as_ref().map(requests::part_of_summary),
        "fidelity": jobs.fidelity,
        "consolidation": jobs.consolidation,
        "faults": faults::summary(&faults::faulted(run)),
        "cancelled": jobs.cancelled,
        "decisions_sha256": jobs.decisions_sha256,
        "command": header.command,
        "wall_s": run.wall_s,
    });
    leave_out(
        &mut summary,
        &[
            "checkpoint_failures",
            "easy_variant",
            "left_out",
            "requests",
            "fidelity",
            "consolidation",
            "faults",
            "cancelled",
        ],
    );
    summary
}

/// The object on jobs in the summary of a run that the jobs share with a bag.
pub(super) fn part_of_summary(run: &RunResults<'_>, jobs: &JobsOutcome<'_>) -> Value {
    /// Keys that are about the whole run.
    const OF_THE_RUN: [&str; 10] = [
        "requests",
        "experiment",
        "mode",
        "seed",
        "speedup",
        "command",
        "wall_s",
        "fidelity",
        "cancelled",
        "decisions_sha256",
    ];
    let mut summary = summary_json(run, jobs);
    if let Some(own) = summary.as_object_mut() {
        for key in OF_THE_RUN {
            own.remove(key);
        }
        own.insert("work".to_owned(), json!(TenantWork::Jobs.name()));
    }
    summary
}

fn summary_lines(run: &RunResults<'_>, jobs: &JobsOutcome<'_>) -> Vec<SummaryLine> {
    let (header, figures) = (jobs.header, &jobs.figures);
    let JobFigures { swaps, kills, migrations, background_only, .. } = figures;
    let outcomes = jobs.outcomes();
    let (machine, makespan) = (jobs.machine(), figures.makespan().as_secs_f64());
    let rate = work_rate(figures.work_rate(), machine);
    let promotions = format!(
        "{swaps} swaps, {kills} kills, {migrations} migrations; {background_only} jobs ended in the \
         background"
    );
    let mut lines = vec![
        SummaryLine::plain("experiment", run.in_words()),
        SummaryLine::verdict(
            "jobs",
            outcomes.is_complete(),
            format!("{}, on {machine} processors", outcomes.in_words(header.mode)),
        ),
        SummaryLine::plain("response", format!("{:.1} s on average", figures.response.mean())),
        SummaryLine::plain(
            "slowdown",
            format!("{:.2} on average (bounded)", figures.slowdown.mean()),
        ),
        SummaryLine::plain("wait", format!("{:.1} s on average", figures.wait.mean())),
        SummaryLine::plain("makespan", format!("{makespan:.0} s, {rate}")),
        SummaryLine::plain("promotions", promotions),
    ];
    let skipped = jobs.skipped.filter(Skipped::is_worth_telling);
    lines.extend(skipped.map(|skipped| SummaryLine::plain("log", skipped.to_string())));
    if jobs.rejected > 0 {
        let what = format!("{} decisions rejected (a bug of the scheduler)", jobs.rejected);
        lines.push(SummaryLine::verdict("", false, what));
    }
    lines.extend(jobs.consolidation.iter().map(|c| SummaryLine::plain("sharing", c.line())));
    lines.extend(jobs.fidelity.iter().flat_map(|fidelity| emulation::lines(fidelity, "")));
    lines
}

fn build_page(run: &RunResults<'_>, jobs: &JobsOutcome<'_>, gantt: &GanttChart) -> HtmlPage {
    let mut page = run.page(&jobs.batch.scheduler_name(), gantt);
    page.answers = answers::of_jobs(run, jobs);
    page.section("Load over time", load(run, jobs));
    page.detail("The longest waits", wait_blocks(jobs));
    run.requests.iter().for_each(|own| page.section("Requests", requests::section(run, own)));
    page.section("Fidelity", fidelity_blocks(jobs));
    page.printed_detail("Reproduce", run.reproduce("", &jobs.decisions_sha256));
    page
}

/// Greatest number of changes of a quantity that are drawn one by one.
const MOST_CHANGES: usize = 1_000;

/// A quantity at each of its changes, as a line of steps; `None` if not all jobs are known, or if there are many changes.
fn steps(jobs: &JobsOutcome<'_>, quantity: JobQuantity) -> Option<Vec<SeriesPoint>> {
    if jobs.drawn.cut_from().is_some() || !jobs.outcomes().is_complete() {
        return None;
    }
    let mut changes: BTreeMap<Time, i64> = BTreeMap::new();
    let mut add = |amount: i64, from: Time, until: Time| {
        *changes.entry(from).or_default() += amount;
        *changes.entry(until).or_default() -= amount;
    };
    for job in jobs.drawn.jobs() {
        let tier = match quantity {
            JobQuantity::Foreground => Tier::Foreground,
            JobQuantity::Background => Tier::Background,
            JobQuantity::Waiting => {
                add(1, job.job.submitted, job.spells.first()?.from);
                continue;
            }
        };
        for spell in job.spells.iter().filter(|spell| spell.tier == tier) {
            add(i64::try_from(spell.on.len()).ok()?, spell.from, spell.until?.0);
        }
    }
    changes.retain(|_, change| *change != 0);
    if changes.len() > MOST_CHANGES {
        return None;
    }
    let mut level = 0;
    let mut points = vec![SeriesPoint::new(0.0, 0.0)];
    for (at, change) in changes {
        for level in [level, level + change] {
            #[expect(clippy::cast_precision_loss, reason = "a count of jobs or processors")]
            points.push(SeriesPoint::new(at.as_secs_f64(), level as f64));
        }
        level += change;
    }
    // All plots of a page end where the run does.
    let end = jobs.figures.makespan().as_secs_f64();
    points.extend((level == 0).then(|| SeriesPoint::new(end, 0.0)));
    Some(points)
}

/// Section "Load over time": busy processors and waiting jobs.
pub(super) fn load(run: &RunResults<'_>, jobs: &JobsOutcome<'_>) -> Vec<PageBlock> {
    let all = &jobs.figures.series;
    let mut mean_of_s = None;
    let mut series = |name: &str, colour: usize, quantity| PointSeries {
        name: name.to_owned(),
        colour,
        look: PointLook::Line,
        points: steps(jobs, quantity).unwrap_or_else(|| {
            let points = all.points(quantity);
            mean_of_s = points.first().map(|(middle, _)| middle * 2.0);
            points.into_iter().map(|(x, y)| SeriesPoint::new(x, y)).collect()
        }),
    };
    let panel = |title: &str, unit: &str, series| ChartPanel {
        title: title.to_owned(),
        x: dates::time_axis(jobs.header.calendar, run.time_unit()),
        y: PlotAxis::new(unit, AxisScale::FromZero),
        series,
        ..ChartPanel::default()
    };
    let mut busy = vec![series("foreground", 0, JobQuantity::Foreground)];
    if jobs.batch.scheduler.name.promotion().is_some() {
        busy.push(series("background", 1, JobQuantity::Background));
    }
    let waiting = vec![series("jobs waiting", 0, JobQuantity::Waiting)];
    let panels =
        vec![panel("Busy processors", "processors", busy), panel("Jobs waiting", "jobs", waiting)];
    let most = jobs.most_in_system;
    let means = mean_of_s.map_or_else(String::new, |width| {
        format!(" A point of the plots is the mean of {}.", run.time_unit().words(width, 0))
    });
    let mut blocks = vec![
        PageBlock::Plots(PanelChart { title: String::new(), panels }.to_markup()),
        PageBlock::text(format!("At most {most} jobs were in the system at once.{means}")),
    ];
    blocks.extend(jobs.skipped.map(|skipped| PageBlock::text(format!("Of the log: {skipped}."))));
    blocks
}

fn wait_blocks(jobs: &JobsOutcome<'_>) -> Vec<PageBlock> {
    let seconds = |heading| TableColumn::seconds(heading).digits(0);
    let table = TypedTable::with_rows(jobs.figures.longest_waits())
        .column(TableColumn::text("job"), |job| format!("job {}", job.number.0))
        .column(TableColumn::count("processes"), |job| job.processes)
        .column(seconds("estimate"), |job| job.estimate)
        .column(seconds("wait"), |job| job.wait)
        .column(seconds("response"), |job| job.response);
    let about = "dormouse explain DIR NUMBER says what a job waited for, and why it moved.";
    vec![PageBlock::Table(table.into()), PageBlock::text(about)]
}

fn fidelity_blocks(jobs: &JobsOutcome<'_>) -> Vec<PageBlock> {
    let Some(fidelity) = &jobs.fidelity else { return Vec::new() };
    let verdict = format!(
        "{}: CPU time received differs from what was promised by {:.2} % on average, by {:.2} % at \
         worst.",
        emulation::verdict(fidelity),
        fidelity.mean_share_error * 100.0,
        fidelity.worst_share_error * 100.0
    );
    let sharing = jobs.consolidation.iter().flat_map(Consolidation::sentences);
    let said = fidelity.notes.iter().chain(&fidelity.evidence).cloned();
    let sentences = [verdict].into_iter().chain(said).chain(sharing);
    sentences.map(PageBlock::Text).collect()
}
