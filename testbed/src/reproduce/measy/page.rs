//! `report.html` of `dormouse reproduce measy`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use dormouse_policies::batch::Algorithm;
use dormouse_workload::Estimate;

use super::batch_means::BATCHES;
use super::causes::Cause;
use super::cell::{Cell, Outcome};
use super::evaluate::Evaluation;
use super::factors::FACTORS;
use super::setting::Setting;
use super::statements::{LOADS, View};
use super::table::short;
use super::workloads::Source;
use crate::output::escaped;
use crate::output::html::{self, paragraph, section, table};
use crate::reproduce::compared::DEVIATION;

/// Causes in the table: so many of the nearest.
const NEAREST: usize = 3;

/// The content of `report.html`; `command` makes it again.
#[must_use]
pub fn page(done: &Evaluation, command: &str) -> String {
    let body = [
        header(done),
        section("What the paper says, and ours", &claims(done)),
        section("Why it differs", &causes(done)),
        section("Figures", &figures(done)),
        section("Every point", &points(done)),
        section("Reproduce", &format!("<pre>{}</pre>", escaped(command))),
    ]
    .concat();
    html::page("MEASY", &body)
}

fn header(done: &Evaluation) -> String {
    let mut text = "<header><h1>MEASY in virtual time</h1>".to_owned();
    text += &paragraph(
        "Parallel job scheduling by migration and consolidation: Figures 6 to 14 and what the \
         text says of them.",
    );
    text += "</header>";
    let rows: Vec<_> = done
        .workloads
        .values()
        .map(|workload| {
            vec![
                workload.source.name().to_owned(),
                workload.jobs.len().to_string(),
                workload.machine.to_string(),
                format!("{:.3}", workload.load),
            ]
        })
        .collect();
    text += &table(&["workload", "jobs", "processors", "load as it is"], 1, &rows);
    text += &paragraph(&format!(
        "Loads are made by scaling the times between submissions. Intervals are 95 % by batch \
         means: {BATCHES} batches after a tenth of the jobs as warm-up. Comparisons pair the \
         batches of runs on the same jobs. fw-like and jw-like have the means that the paper \
         states of FWload and JWload; their shapes are ours. EASY is the variant that the \
         documentation of dormouse_policies::batch defines: extra-nodes rule, estimates as given, \
         no kill at the estimate."
    ));
    if !done.workloads.contains_key(&Source::Kth) {
        text += &paragraph("KTH-SP2 is left out: its log was not given (--kth).");
    }
    text
}

fn claims(done: &Evaluation) -> String {
    let rows: Vec<_> = done
        .claims
        .iter()
        .map(|claim| {
            let interval = claim.ours.ci95.filter(|(low, high)| low < high);
            let interval = interval.map(|(low, high)| format!("{} … {}", short(low), short(high)));
            let interval = interval.unwrap_or_default();
            let [text, paper, ours, difference, verdict] = claim.words();
            vec![text, verdict, paper, ours, interval, difference]
        })
        .collect();
    let head = ["statement", "", "paper", "ours", "95 % interval", "difference"];
    table(&head, 2, &rows)
        + &paragraph(&format!(
            "A figure holds within {:.0} % of the paper's; one that counts loads, at all of them. \
             Where it does not hold, the paper's may still lie within our interval. The paper has \
             no KTH-SP2: its lines are for comparison. ≥ 3600: MEASY is ahead at every cost that \
             was tried.",
            DEVIATION * 100.0
        ))
}

fn causes(done: &Evaluation) -> String {
    if done.causes.is_empty() {
        return paragraph("Everything holds, or no causes were looked for.");
    }
    let mut text = paragraph(
        "Each factor was changed alone, on the same jobs where it leaves them the same. The figure \
         before, with the factors that bring it nearest to the paper's, and the share of the gap \
         that the nearest closes:",
    );
    let row = |cause: &Cause| {
        let paper = cause.statement.paper(&View::STANDARD);
        let nearest = cause.moves.iter().take(NEAREST);
        let nearest: Vec<_> =
            nearest.map(|m| format!("{} → {}", m.factor.name, cause.words(m))).collect();
        let closed = cause.closed().map_or(0.0, |(_, closed)| closed.max(0.0) * 100.0);
        vec![
            cause.statement.text(),
            nearest.join("; "),
            cause.sentence(),
            paper.map(short).unwrap_or_default(),
            cause.statement.words(cause.ours, &View::STANDARD),
            format!("{closed:.0} %"),
        ]
    };
    let rows: Vec<_> = done.causes.iter().map(row).collect();
    let head = ["statement", "nearest with", "cause", "paper", "ours", "gap closed"];
    text += &table(&head, 3, &rows);
    text += &paragraph("What every factor does to each of them:");
    let head: Vec<String> = ["factor", "what it changes"]
        .into_iter()
        .map(str::to_owned)
        .chain((1..=done.causes.len()).map(|n| format!("({n})")))
        .collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut rows = vec![figures_row("none", "ours as it is", done, |cause| {
        Some(cause.statement.words(cause.ours, &View::STANDARD))
    })];
    for factor in &FACTORS {
        rows.push(figures_row(factor.name, factor.about, done, |cause| {
            let found = cause.moves.iter().find(|m| m.factor.name == factor.name);
            found.map(|m| cause.words(m))
        }));
    }
    text += &table(&head, 2, &rows);
    let list: String = (1..)
        .zip(&done.causes)
        .map(|(n, cause)| format!("({n}) {}. ", cause.statement.text()))
        .collect();
    text + &paragraph(&list)
}

fn figures_row(
    name: &str,
    about: &str,
    done: &Evaluation,
    figure: impl Fn(&Cause) -> Option<String>,
) -> Vec<String> {
    let figures = done.causes.iter().map(|cause| figure(cause).unwrap_or_default());
    [name.to_owned(), about.to_owned()].into_iter().chain(figures).collect()
}

fn figures(done: &Evaluation) -> String {
    done.figures
        .iter()
        .map(|figure| {
            let svg = figure.chart(&done.results).to_svg();
            format!("<div class=\"chart\" id=\"{}\">{svg}</div>\n", figure.name())
        })
        .collect()
}

fn points(done: &Evaluation) -> String {
    done.workloads
        .keys()
        .map(|source| of_source(done, *source) + &commands(done, *source))
        .collect()
}

/// The command of every point.
fn commands(done: &Evaluation, source: Source) -> String {
    let row = |(cell, command): (&Cell, &String)| vec![cell.name(), command.clone()];
    let of_source = done.commands.iter().filter(|(cell, _)| cell.source == source);
    let rows: Vec<_> = of_source.map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<details><summary>{}: the command of each point</summary>{}{}</details>\n",
        source.name(),
        paragraph(
            "Each makes the same decisions on the same jobs; its means count the warm-up, too."
        ),
        table(&["point", "command"], 2, &rows)
    )
}

/// Tables over load, a line for every setting and scheduler.
fn of_source(done: &Evaluation, source: Source) -> String {
    let of_source = done.results.keys().filter(|cell| cell.source == source);
    let lines: BTreeSet<(Setting, Algorithm)> =
        of_source.map(|cell| (cell.setting, cell.algorithm)).collect();
    type Metric = (&'static str, usize, fn(&Outcome) -> Option<Estimate>);
    let metrics: [Metric; 3] = [
        ("response time / s", 0, |o| o.response.estimate()),
        ("bounded slowdown", 1, |o| o.slowdown.estimate()),
        ("migrations a job", 3, |o| o.migrations.estimate()),
    ];
    let loads = LOADS.map(|load| format!("{:.1}", f64::from(load) / 100.0));
    let head: Vec<&str> =
        ["setting", "scheduler"].into_iter().chain(loads.iter().map(String::as_str)).collect();
    let mut text = String::new();
    for (name, digits, metric) in metrics {
        let rows: Vec<_> = lines
            .iter()
            .filter(|(_, algorithm)| digits < 3 || *algorithm == Algorithm::Measy)
            .map(|&(setting, algorithm)| {
                let points = LOADS.map(|load| {
                    let cell = Cell { source, setting, load, algorithm };
                    let Some(outcome) = done.results.get(&cell) else { return String::new() };
                    match metric(outcome) {
                        None => String::new(),
                        Some(Estimate { mean, ci95: None, .. }) => format!("{mean:.digits$}"),
                        Some(Estimate { mean, ci95: Some((_, high)), .. }) => {
                            format!("{mean:.digits$} ± {:.digits$}", high - mean)
                        }
                    }
                });
                [setting.name(), algorithm.to_string()].into_iter().chain(points).collect()
            })
            .collect();
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "<details><summary>{}: {name}</summary>{}</details>",
            source.name(),
            table(&head, 2, &rows)
        );
    }
    text
}
