//! `report.html` of a run of parallel jobs alone.

use dormouse_units::Span;
use dormouse_workload::{Chart, Line, Panel};

use super::outcome::JobsOutcome;
use super::series::Quantity;
use crate::fidelity::Consolidation;
use crate::output::html::{self, card, emulation_card, heading, page, paragraph, section, table};

/// The content of `report.html`, with this Gantt chart.
pub(crate) fn report(outcome: &JobsOutcome<'_>, mut gantt: String) -> String {
    let experiment = &outcome.header.experiment;
    let title = format!("{} · {}", experiment.name, outcome.batch.scheduler.name);
    gantt.insert_str(0, "<div class=\"wide\">");
    gantt.push_str("</div>");
    let body = [
        heading(outcome.header, &title),
        cards(outcome),
        section("Where everything ran", &gantt),
        section("Load over time", &load(outcome)),
        section("The longest waits", &waits(outcome)),
        fidelity(outcome),
        section("Reproduce", &html::reproduce(outcome.header, "", &outcome.decisions_sha256)),
    ]
    .concat();
    page(&title, &body)
}

fn cards(outcome: &JobsOutcome<'_>) -> String {
    let f = &outcome.figures;
    let (verified, total) = (outcome.verified, outcome.total());
    let class = |good| if good { "good" } else { "bad" };
    let wait = format!("of which {:.0} s waiting", f.wait.mean());
    let mut cards = card("Mean response", &format!("{:.0} s", f.response.mean()), &wait, "");
    let slowdown = format!("{:.2}", f.slowdown.mean());
    cards += &card("Mean slowdown", &slowdown, "bounded, 10 s", "");
    let completed = outcome.header.mode.completed();
    cards += &card("Jobs", &format!("{verified} / {total}"), completed, class(verified == total));
    cards += &card("Makespan", &format!("{:.0} s", f.makespan().as_secs_f64()), "", "");
    let of = format!("processors' worth, on {}", outcome.machine());
    cards += &card("Work done", &format!("{:.1}", f.work_rate()), &of, "");
    cards += &card("Migrations", &f.migrations.to_string(), "to other processors", "");
    cards += &card("Kills", &f.kills.to_string(), "restarted from the beginning", "");
    let background = format!("{} ended in the background", f.background_only);
    cards += &card("Swaps", &f.swaps.to_string(), &background, "");
    if let Some(fidelity) = &outcome.fidelity {
        let worst = format!("worst share error {:.1} %", fidelity.worst_share_error * 100.0);
        cards += &emulation_card(fidelity.faithful, &worst);
    }
    format!("<div class=\"cards\">{cards}</div>\n")
}

fn load(outcome: &JobsOutcome<'_>) -> String {
    let series = &outcome.figures.series;
    let points = |of| series.of(of);
    let last = points(Quantity::Foreground).last().map_or(0.0, |(x, _)| *x);
    let (unit, name) = match last {
        s if s < 7_200.0 => (60.0, "minutes"),
        s if s < 300_000.0 => (3_600.0, "hours"),
        _ => (86_400.0, "days"),
    };
    let line = |name: &str, of| Line {
        name: name.to_owned(),
        points: points(of).into_iter().map(|(x, y)| (x / unit, y)).collect(),
        bars: Vec::new(),
    };
    let panel = |title: &str, lines| Panel {
        title: title.to_owned(),
        x_label: name.to_owned(),
        lines,
        ..Panel::default()
    };
    let two = outcome.batch.scheduler.name.promotion().is_some();
    let mut busy = vec![line("foreground", Quantity::Foreground)];
    if two {
        busy.push(line("background", Quantity::Background));
    }
    let chart = Chart {
        title: String::new(),
        panels: vec![
            panel("busy processors", busy),
            panel("jobs waiting", vec![line("waiting", Quantity::Waiting)]),
        ],
    };
    let text = format!("<div class=\"chart\">{}</div>", chart.to_svg());
    let mut text = text + &paragraph("Means over equal parts of the run.");
    let most = outcome.most_in_system;
    text += &paragraph(&format!("At most {most} jobs were in the system at once."));
    if let Some(skipped) = outcome.skipped {
        text += &paragraph(&format!("Of the log: {skipped}."));
    }
    text
}

fn waits(outcome: &JobsOutcome<'_>) -> String {
    let rows: Vec<_> = outcome
        .figures
        .longest_waits()
        .iter()
        .map(|job| {
            vec![
                format!("job {}", job.number.0),
                job.processes.to_string(),
                job.estimate.to_string(),
                to_the_second(job.wait).to_string(),
                to_the_second(job.response).to_string(),
            ]
        })
        .collect();
    table(&["job", "processes", "estimate", "wait", "response"], 1, &rows)
        + &paragraph("dormouse explain DIR NUMBER says what a job waited for, and why it moved.")
}

fn to_the_second(span: Span) -> Span {
    Span::from_secs((span.as_micros() + 500_000) / 1_000_000)
}

fn fidelity(outcome: &JobsOutcome<'_>) -> String {
    let Some(fidelity) = &outcome.fidelity else { return String::new() };
    let word = if fidelity.faithful { "faithful" } else { "NOT faithful" };
    let mut text = paragraph(&format!(
        "The emulation was {word}: CPU time received differs from what was promised by {:.2} % on \
         average, by {:.2} % at worst.",
        fidelity.mean_share_error * 100.0,
        fidelity.worst_share_error * 100.0
    ));
    let sharing = outcome.consolidation.iter().flat_map(Consolidation::sentences);
    for sentence in fidelity.notes.iter().cloned().chain(sharing) {
        text += &paragraph(&sentence);
    }
    section("Fidelity", &text)
}
