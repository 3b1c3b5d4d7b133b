//! `report.html`.

use super::causes::overall;
use super::compare::{COST, MAKESPAN};
use super::paper::JOBS;
use super::plots::{cost_against_makespan, makespan_strips};
use super::text::{isolated, live_figures, otherwise, words};
use super::{Finished, LiveRun, Verdict};
use crate::output::escaped;
use crate::output::html::{self, card, paragraph, section, table};

/// The page; `gantts` are the names of the charts and of their files.
pub(crate) fn page(done: &Finished, gantts: &[(String, String)]) -> String {
    let title = format!("Burst-HADS, ours beside the paper's ({})", done.what);
    let body = [
        format!("<header><h1>{title}</h1></header>\n"),
        cards(done),
        section("Cost against makespan", &plots(done, cost_against_makespan)),
        section("Makespans", &plots(done, makespan_strips)),
        section("The tables", &figures(done)),
        section("Claims of the text", &claims(done)),
        section("Why ours differ", &causes(done)),
        readings(done),
        live(done),
        section("A representative run of each cell", &charts(gantts)),
        section("Reproduce", &format!("<pre>{}</pre>\n", escaped(&done.command))),
    ]
    .concat();
    html::page(&title, &body)
}

fn cards(done: &Finished) -> String {
    let runs = done.results.all.iter().map(|(_, s)| s.len()).sum::<usize>();
    let held = done.claims.iter().filter(|c| c.holds).count();
    let off = done.rows.iter().filter(|r| r.deviates()).count();
    let figures = done.rows.iter().filter(|r| matches!(r.metric, COST | MAKESPAN)).count();
    let met = done.results.all.iter().flat_map(|(_, s)| s).filter(|s| s.deadline_met).count();
    let mut text = card("Runs", &runs.to_string(), &format!("{} seeds a cell", done.seeds), "");
    let class = |good| if good { "good" } else { "bad" };
    text += &card("Deadlines met", &met.to_string(), &format!("of {runs}"), class(met == runs));
    text += &card("Claims that hold", &held.to_string(), &format!("of {}", done.claims.len()), "");
    text += &card("Off by more than 15 %", &off.to_string(), &format!("of {figures} figures"), "");
    format!("<div class=\"cards\">{text}</div>\n")
}

fn claims(done: &Finished) -> String {
    let rows: Vec<_> = done
        .claims
        .iter()
        .map(|c| {
            let word = if c.holds { "holds" } else { "does not hold" };
            let others = otherwise(done, c).into_iter().map(|(name, ours, holds)| {
                format!("{} with {name}: {ours}", if holds { "holds" } else { "does not" })
            });
            let mut others: Vec<_> = others.collect();
            if !others.is_empty() {
                others.insert(0, isolated(done, c));
            }
            let others = others.join(" · ");
            vec![word.to_owned(), c.text.clone(), c.ours.clone(), others]
        })
        .collect();
    table(&["", "the paper", "ours", "under other readings (below)"], 4, &rows)
}

/// A line per cell, as the paper has them; every figure with its interval folded below.
fn figures(done: &Finished) -> String {
    let cells: Vec<_> = done
        .results
        .all
        .iter()
        .map(|(target, _)| {
            let case = target.case();
            let mut cells = vec![case.clone()];
            for metric in [COST, MAKESPAN] {
                let row = done.rows.iter().find(|r| r.case == case && r.metric == metric);
                let [paper, ours, _, diff] = row.map(words).unwrap_or_default();
                let mark = if row.is_some_and(super::Row::deviates) { " ●" } else { "" };
                cells.extend([paper, ours, format!("{diff}{mark}")]);
            }
            for metric in ["hibernations", "resumes", "on_demand_vms"] {
                let row = done.rows.iter().find(|r| r.case == case && r.metric == metric);
                let [paper, ours, ..] = row.map(words).unwrap_or_default();
                cells.extend([paper, ours]);
            }
            cells
        })
        .collect();
    let head = [
        "case",
        "cost, paper",
        "ours",
        "",
        "makespan, paper",
        "ours",
        "",
        "hibernations, paper",
        "ours",
        "resumes, paper",
        "ours",
        "later on-demand VMs, paper",
        "ours",
    ];
    let mut text = table(&head, 1, &cells);
    text += &paragraph(
        "The paper's are means of three runs on EC2, without an interval. ●: a cost or makespan \
         more than 15 % off.",
    );
    let rows: Vec<_> = done
        .rows
        .iter()
        .map(|row| {
            let [paper, ours, ci, diff] = words(row);
            vec![row.case.clone(), row.metric.to_owned(), paper, ours, ci, diff]
        })
        .collect();
    let all =
        table(&["case", "figure", "paper", "ours", "95 % CI of the mean", "difference"], 2, &rows);
    text + &format!("<details><summary>Every figure, with its interval</summary>{all}</details>\n")
}

fn causes(done: &Finished) -> String {
    if done.causes.is_empty() {
        return paragraph("Nothing is more than 15 % off, or no causes were looked for.");
    }
    let mut text = paragraph(
        "Each factor was changed alone, under the same seeds; where none brings a figure within \
         15 % of the paper's, the best was changed together with every other. The paper's figures \
         are means of three runs: the last column says what share of the means of three of our \
         runs is as far from ours.",
    );
    let rows: Vec<_> = done
        .causes
        .iter()
        .map(|cause| {
            let d = if cause.metric == COST { 4 } else { 0 };
            let off = |figure: f64| format!("{:+.0} %", cause.off(figure) * 100.0);
            let verdict = match cause.verdict() {
                Verdict::OneFactor => "one factor",
                Verdict::TwoFactors => "two factors",
                Verdict::Scatter => "scatter of three runs",
                Verdict::Open => "not explained",
            };
            vec![
                cause.case.clone(),
                cause.metric.to_owned(),
                cause.changes().join("; "),
                verdict.to_owned(),
                format!("{:.d$}", cause.paper),
                format!("{:.d$}", cause.ours),
                off(cause.ours),
                format!("{:.0} %", cause.chance * 100.0),
            ]
        })
        .collect();
    let head =
        ["case", "figure", "nearest", "within 15 % with", "paper", "ours", "off", "threes as far"];
    text += &table(&head, 4, &rows);
    text += &paragraph(
        "The nearest of many factors under few seeds is a lead, not a proof. What each does to all \
         figures that deviate, as their mean distance from the paper's:",
    );
    let rows: Vec<_> = overall(&done.causes)
        .into_iter()
        .map(|o| {
            vec![
                o.factor.to_owned(),
                o.about.to_owned(),
                o.figures.to_string(),
                format!("{:.1} %", o.distance.0 * 100.0),
                format!("{:.1} %", o.distance.1 * 100.0),
                o.nearest.to_string(),
            ]
        })
        .collect();
    let head = ["factor", "what it changes", "figures", "without", "with", "nearest of all"];
    text += &table(&head, 2, &rows);
    text
}

type Plot = fn(&super::Results, &str, &[LiveRun]) -> String;

fn plots(done: &Finished, plot: Plot) -> String {
    let each = JOBS.iter().map(|job| plot(&done.results, job, &done.live_runs()));
    let each: String = each.map(|svg| format!("<div class=\"chart\">{svg}</div>")).collect();
    format!("<div class=\"plots\">{each}</div>\n")
}

fn readings(done: &Finished) -> String {
    let Some(first) = done.readings.first() else { return String::new() };
    let row = |name: String, about: String, counts: [f64; 4], off: String, held: String| {
        let counts = counts.map(|x| format!("{x:.2}"));
        [vec![name, about], counts.to_vec(), vec![off, held]].concat()
    };
    let none = String::new;
    let mut rows =
        vec![row("the paper".to_owned(), none(), first.counts.map(|c| c.0), none(), none())];
    rows.extend(done.readings.iter().map(|reading| {
        let held = reading.claims.iter().filter(|c| c.holds).count();
        row(
            reading.name(),
            reading.about.clone(),
            reading.counts.map(|c| c.1),
            format!("{} of {}", reading.off.0, reading.off.1),
            format!("{held} of {}", reading.claims.len()),
        )
    }));
    let head = [
        "reading",
        "what it changes",
        "hibernations",
        "resumes",
        "later on-demand VMs, Burst-HADS",
        "HADS",
        "figures off",
        "claims that hold",
    ];
    let about = paragraph(
        "What the text leaves open, read otherwise in all cells at once; counts are means over \
         the runs of Table VI.",
    );
    section("Other readings", &(about + &table(&head, 2, &rows)))
}

fn live(done: &Finished) -> String {
    if done.live.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = done
        .live
        .iter()
        .map(|(run, against)| {
            let [makespan, cost, same, all] = live_figures(run, against.as_ref());
            vec![run.case(), run.seed.to_string(), run.fidelity(), makespan, cost, same, all]
        })
        .collect();
    let head = [
        "case",
        "seed",
        "emulation",
        "makespan",
        "cost",
        "virtual, same seed (live against it)",
        "virtual, all seeds",
    ];
    let about = paragraph("Real processes under a dilated clock; diamonds in the plots above.");
    section("Live runs", &(about + &table(&head, 7, &rows)))
}

fn charts(gantts: &[(String, String)]) -> String {
    let mut text = paragraph("The run whose makespan is the median of its cell.");
    for (name, file) in gantts {
        text += &format!(
            "<details><summary>{name}</summary><div class=\"wide\"><img src=\"{file}\" \
             alt=\"Gantt chart of {name}\" loading=\"lazy\" style=\"width:100%\"></div></details>\n"
        );
    }
    text
}
