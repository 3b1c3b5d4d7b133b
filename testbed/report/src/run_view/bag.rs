//! The view of a run with a bag, which parallel jobs may share; and how long its tasks waited for their inputs.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_analysis::fidelity::{BackgroundSupply, TaskTimes};
use dormouse_analysis::outcome::{OutcomeTally, WorkOutcome, wording};
use dormouse_engine::RunCounts;
use dormouse_units::Span;
use dormouse_view::{HtmlPage, PageBlock, TextTone, TimeUnit, number};

use super::beside::RunsBeside;
use super::outcome::BagResults;
use super::{
    RunView, SummaryLine, answers, emulation, faults, jobs, machine, prices, requests, sections,
    summary, tables, taken, vms,
};

pub(super) fn view(of: &BagResults<'_>) -> RunView {
    let mut gantt = vms::gantt(of);
    if let Some(own) = &of.of.jobs {
        machine::add(&mut gantt, own);
    }
    let beside = RunsBeside::of(of);
    let faulted = faults::faulted(of.of);
    faults::draw(&mut gantt, of.record);
    let mut files = vec![("tasks", tables::tasks(of)), ("vms", tables::vms(of.record))];
    files.extend(taken::all_taken(of).map(|taken| ("taken", taken.table())));
    files.extend(faults::table(&faulted).map(|table| ("faults", table)));
    RunView {
        summary: summary::summary(of, &beside),
        lines: summary_lines(of, &beside),
        page: build_page(of, &beside, &gantt),
        gantt,
        plan: of.of.plan.as_ref().map(|plan| serde_json::json!(plan)),
        tables: files,
        hashes: BTreeMap::new(),
    }
}

fn summary_lines(of: &BagResults<'_>, beside: &RunsBeside) -> Vec<SummaryLine> {
    let (header, record) = (of.of.header, of.record);
    let is_met = of.deadline_met();
    let makespan = record.makespan().map_or_else(
        || "not all tasks finished".to_owned(),
        |end| format!("{:.1} s of {:.0} s", end.as_secs_f64(), of.deadline().as_secs_f64()),
    );
    let planned = of.planned_figures().map(|plan| {
        let of_some = match plan.is_whole() {
            true => String::new(),
            false => format!(" for the first {} of {} tasks", plan.tasks, plan.of),
        };
        format!(
            "(planned{of_some} {:.1} s, {})",
            plan.makespan.as_secs_f64(),
            number::dollars(plan.bill)
        )
    });
    let met = if is_met { "deadline met" } else { "DEADLINE MISSED" };
    let (outcomes, c) = (record.outcomes(), &record.counts);
    // Failures come first.
    let mut lines = Vec::from_iter(failed_line(of, outcomes));
    lines.extend([SummaryLine::plain("experiment", of.of.in_words())]);
    let makespan = SummaryLine::plain("makespan", makespan).and(TextTone::verdict(is_met), met);
    lines.extend(Some(makespan).filter(|_| of.has_tasks()));
    lines.push(
        SummaryLine::plain("cost", number::dollars(record.cost()))
            .and(TextTone::Dim, planned.unwrap_or_default()),
    );
    let tasks =
        SummaryLine::verdict("tasks", outcomes.is_complete(), outcomes.in_words(header.mode));
    lines.extend(Some(tasks).filter(|_| of.has_tasks()));
    lines.extend(of.of.jobs.as_ref().map(|own| {
        SummaryLine::verdict("jobs", jobs::is_complete(own), jobs::line(own, TimeUnit::Second))
    }));
    lines.extend(of.of.requests.iter().flat_map(requests::lines));
    let RunCounts { vms_launched: launched, hibernations, resumes, preemptions, .. } = c;
    let machines = format!(
        "{launched} launched, {hibernations} hibernated, {resumes} resumed, {preemptions} preempted"
    );
    let work = wording::work_line(c, record.work_lost());
    lines.push(SummaryLine::plain("machines", machines));
    lines.extend(Some(SummaryLine::plain("work", work)).filter(|_| of.has_tasks()));
    lines.extend(beside.lines(of));
    lines.extend(line(of));
    if c.above_bid > 0 {
        let ended = format!("{} given back above the bid as an hour ended", c.above_bid);
        let unkept = format!("; tasks without a checkpoint then: {}", c.unkept);
        lines.push(SummaryLine::plain("bids", ended + if c.unkept > 0 { &unkept } else { "" }));
    }
    lines.extend(prices::lines(of.of));
    lines.extend(faults::lines(of.of, &faults::faulted(of.of)));
    lines.extend(record.service.in_words().map(|words| SummaryLine::plain("service", words)));
    for (count, what) in [
        (c.hosts_lost, wording::HOSTS_LOST),
        (c.attempts_failed, "attempts failed"),
        (c.launches_refused, "launches refused"),
        (c.rejected, "decisions rejected (a bug of the policy)"),
    ] {
        if count > 0 {
            lines.push(SummaryLine::verdict("", false, format!("{count} {what}")));
        }
    }
    let never = record.never_launched(&header.experiment.setup.interruptions);
    if !never.is_empty() {
        let what = "interruptions of VMs that were never launched";
        lines.push(SummaryLine::verdict("", false, format!("{what}: {}", sections::names(&never))));
    }
    if let Some(fidelity) = &of.of.fidelity {
        let TaskTimes { tasks_judged, tasks_finished, .. } = fidelity.tasks;
        let judged = match tasks_judged == tasks_finished {
            true => String::new(),
            false => format!("judged {tasks_judged} of {tasks_finished}; "),
        };
        let errors = of.has_tasks().then(|| {
            format!(
                "{judged}tasks {:+.1} % on average, {:+.1} % at worst; ",
                fidelity.tasks.mean_task_error * 100.0,
                fidelity.tasks.worst_task_error * 100.0
            )
        });
        lines.extend(emulation::lines(fidelity, errors.as_deref().unwrap_or_default()));
    }
    lines
}

/// A line with the number of tasks whose programs failed and the first failure, if there is one.
fn failed_line(of: &BagResults<'_>, outcomes: OutcomeTally) -> Option<SummaryLine> {
    let (task, how) = of.tasks().find_map(|task| match of.record.outcome(task.is) {
        Some(WorkOutcome::Failed(how)) => Some((task.name(), how)),
        _ => None,
    })?;
    let OutcomeTally { program_failed, total, .. } = outcomes;
    let first = if program_failed == 1 { "the program of" } else { "first that of" };
    let what = format!(
        "{} of {total} tasks{}: {first} {task} {how}; see exit in tasks.csv, and stderr in tasks/",
        outcomes.failed(),
        outcomes.given_up_in_brackets()
    );
    Some(SummaryLine::verdict("failed", false, what))
}

fn build_page(
    of: &BagResults<'_>,
    beside: &RunsBeside,
    gantt: &dormouse_view::plot::GanttChart,
) -> HtmlPage {
    let record = of.record;
    let mut page = of.of.page(&of.of.header.experiment.scheduler_name(), gantt);
    page.answers = answers::of_bag(of, beside);
    if let Some(own) = &of.of.jobs {
        let background =
            BackgroundSupply::from_record(record).map(|it| PageBlock::text(it.sentence()));
        let about = [PageBlock::text(format!("{}.", jobs::line(own, of.of.time_unit())))];
        page.section(
            "Parallel jobs",
            about.into_iter().chain(background).chain(jobs::load(of.of, own)),
        );
    }
    of.of.requests.iter().for_each(|own| page.section("Requests", requests::section(of.of, own)));
    page.printed_detail("The bill", sections::bill(of));
    page.detail("Beside other runs", beside.section(of));
    page.detail("Records of prices", prices::section(of.of));
    page.section("Interruptions, migrations and failures", sections::happened(of));
    page.section("Faults", faults::section(of.of, &faults::faulted(of.of)));
    let taken = taken::all_taken(of).map(|taken| taken.section());
    page.detail("VMs that were taken", taken.unwrap_or_default());
    page.detail("Plan and outcome", sections::plan(of));
    page.section("Fidelity", emulation::section(of));
    page.detail("Speed-up", emulation::speedup(of.of.header));
    let how = format!(" in {} steps with {} decisions", record.steps, record.decisions);
    page.printed_detail("Reproduce", of.of.reproduce(&how, &record.digest()));
    page
}

/// Shortest wait for inputs that is reported: shorter waits are usual, since every program has a
/// file or two.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// Longest real time from the command to start a program until its inputs had arrived; `None` in a
/// virtual run, or if no program had inputs.
fn longest_wait(of: &BagResults<'_>) -> Option<Duration> {
    let attempts = of.tasks().flat_map(|task| &task.is.attempts);
    let longest_us = attempts.map(|attempt| attempt.real_inputs_us).max()?;
    (longest_us > 0).then(|| Duration::from_micros(longest_us))
}

/// The longest wait for inputs, in emulated time.
pub(super) fn longest_emulated(of: &BagResults<'_>) -> Option<Span> {
    longest_wait(of).map(|longest| of.of.header.experiment.live.speedup.to_emulated(longest))
}

/// A line on the longest wait for inputs; `None` if this wait is too short to be reported.
pub(super) fn line(of: &BagResults<'_>) -> Option<SummaryLine> {
    let (real, emulated) = (longest_wait(of)?, longest_emulated(of)?);
    (real >= WORTH_TELLING).then(|| {
        let (real_s, emulated_s) = (real.as_secs_f64(), emulated.as_secs_f64());
        let what = format!(
            "{real_s:.1} s of real time at most until a task had them, {emulated_s:.0} s emulated: on the bill of its \
             VM, and no work of the task"
        );
        SummaryLine::plain("inputs", what)
    })
}
