//! The machine of parallel jobs as a lane of the chart: a row for each processor, with its
//! foreground above its background.

use std::ops::Range;

use dormouse_analysis::{JobHistory, JobSpell, SpellEnd};
use dormouse_units::{Tier, Time};
use dormouse_view::TimeUnit;
use dormouse_view::plot::{
    BarFill, COLOURS, GanttBar, GanttChart, GanttLane, GanttLink, GanttMark, GanttPlace, MarkKind,
};

use super::dates;
use crate::jobs::JobsOutcome;

/// Greatest number of rows in the chart of the machine: one row for each processor.
const MOST_ROWS: u32 = 1_024;

/// Adds the machine and its jobs below the other lanes.
pub(super) fn add(gantt: &mut GanttChart, jobs: &JobsOutcome<'_>) {
    let rows = jobs.machine().min(MOST_ROWS);
    let (from, until) = jobs.drawn.window();
    let is_alone = gantt.lanes.is_empty();
    if is_alone {
        let experiment = &jobs.header.experiment;
        gantt.title = format!("{} · {}", experiment.name, jobs.batch.scheduler_name());
        gantt.lead = format!(
            "{} · seed {} · {} jobs on {} processors · mean response {}{}",
            jobs.header.mode,
            experiment.setup.seed,
            jobs.figures.jobs(),
            jobs.machine(),
            gantt.unit.words(jobs.figures.response.mean(), 0),
            dates::from_date(jobs.header.calendar)
        );
        gantt.window = (from, until.max(from + dormouse_units::Span::from_secs(1)));
    } else {
        gantt.window.1 = gantt.window.1.max(until);
    }
    gantt.lead.extend(left_out(jobs).map(|what| format!(" · {what}")));
    let lane = gantt.lanes.len();
    // Colours of kinds of tasks must not be those of jobs.
    let first = gantt.colours.len().min(COLOURS - 1);
    gantt.lanes.push(GanttLane {
        name: if is_alone { String::new() } else { "jobs' machine".to_owned() },
        about: format!("{} processors", jobs.machine()),
        title: format!("{} processors of {}", jobs.machine(), jobs.batch.scheduler_name()),
        life: Some(gantt.window),
        rows,
        has_background: jobs.batch.scheduler.name.promotion().is_some(),
        is_numbered: true,
        measure: None,
    });
    let end = gantt.window.1;
    for job in jobs.drawn.jobs() {
        let number = usize::try_from(job.job.number).unwrap_or(0);
        let colour = first + number % (COLOURS - first);
        for spell in job.spells.iter().filter(|spell| spell.from < end) {
            draw_bars(gantt, (lane, rows), job, spell, BarFill::Work(colour));
        }
        for pair in job.spells.windows(2) {
            let [was, is] = pair else { continue };
            draw_promotion(gantt, (lane, rows), job, was, is);
        }
    }
}

/// Numbers of drawn jobs and processors in words; `None` if all are drawn.
pub(super) fn left_out(jobs: &JobsOutcome<'_>) -> Option<String> {
    let drawn = jobs.drawn.jobs().count();
    let of_jobs = jobs
        .drawn
        .cut_from()
        .map(|all| format!("the first {drawn} of {all} jobs, until the next is submitted"));
    let machine = jobs.machine();
    let of_rows =
        (machine > MOST_ROWS).then(|| format!("the first {MOST_ROWS} of {machine} processors"));
    let drawn: Vec<_> = of_jobs.into_iter().chain(of_rows).collect();
    (!drawn.is_empty()).then(|| format!("drawn: {}", drawn.join("; ")))
}

/// Place of a job in the chart.
fn job_place((lane, rows): (usize, u32), spell: &JobSpell) -> GanttPlace {
    let mut on: Vec<u32> = spell.on.iter().copied().filter(|&cpu| cpu < rows).collect();
    on.sort_unstable();
    let blocks = on.chunk_by(|a, b| a + 1 == *b);
    let rows: Vec<Range<u32>> = blocks.map(|b| b[0]..b[b.len() - 1] + 1).collect();
    GanttPlace { lane, rows, tier: spell.tier }
}

fn draw_bars(
    gantt: &mut GanttChart,
    at: (usize, u32),
    job: &JobHistory,
    spell: &JobSpell,
    fill: BarFill,
) {
    let until = spell.until.map_or(gantt.window.1, |(at, _)| at);
    let (place, from) = (job_place(at, spell), spell.from);
    if place.rows.is_empty() {
        return;
    }
    let is_lost = matches!(spell.until, Some((_, SpellEnd::Killed | SpellEnd::Failed)));
    let (label, title) = (job.job.number.to_string(), bar_title(job, spell, until, gantt.unit));
    let bar = GanttBar { place, from, until, fill, label, title };
    let lost =
        is_lost.then(|| GanttBar { fill: BarFill::Lost, label: String::new(), ..bar.clone() });
    gantt.bars.extend([bar].into_iter().chain(lost));
}

/// Draws how a job came to the foreground.
fn draw_promotion(
    gantt: &mut GanttChart,
    at: (usize, u32),
    job: &JobHistory,
    was: &JobSpell,
    is: &JobSpell,
) {
    let Some((when, why)) = was.until.filter(|(when, _)| *when < gantt.window.1) else { return };
    let (from, to) = (job_place(at, was), job_place(at, is));
    if from.rows.is_empty() || to.rows.is_empty() {
        return;
    }
    let what = match why {
        SpellEnd::Swapped => "its tiers were swapped",
        SpellEnd::Killed => "it was killed and began again",
        SpellEnd::Migrated => "it migrated",
        SpellEnd::Done | SpellEnd::Failed => return,
    };
    let title = format!("job {} at {}: {what}", job.job.number, dates::at(gantt.unit)(when));
    if why == SpellEnd::Swapped {
        gantt.marks.push(GanttMark { place: to, at: when, kind: MarkKind::Swapped, title });
    } else {
        gantt.links.push(GanttLink { from: (from, when), to: (to, is.from), title });
    }
}

fn bar_title(job: &JobHistory, spell: &JobSpell, until: Time, unit: TimeUnit) -> String {
    let tier = match spell.tier {
        Tier::Foreground => "foreground",
        Tier::Background => "background",
    };
    let end = match spell.until.map(|(_, why)| why) {
        None => "",
        Some(SpellEnd::Done) => ", then done",
        Some(SpellEnd::Swapped) => ", then swapped to the foreground",
        Some(SpellEnd::Killed) => ", then killed to begin again in the foreground",
        Some(SpellEnd::Migrated) => ", then migrated to the foreground",
        Some(SpellEnd::Failed) => ", then cut off, to begin again",
    };
    let at = dates::at(unit);
    format!(
        "job {} ({} processes, estimated {}, submitted {}) in the {tier}: {} to {}{end}",
        job.job.number,
        job.job.processes,
        dates::round(unit, job.job.estimate),
        at(job.heard.unwrap_or(job.job.submitted)),
        at(spell.from),
        at(until)
    )
}
