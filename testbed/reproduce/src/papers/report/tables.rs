//! The tables of a reproduction.

use std::collections::BTreeSet;

use dormouse_estimate::{Estimate, Verdict};
use dormouse_view::{Cell, Column, Table, Tone};

use super::super::claims::Judged;
use super::super::figures::{Row, beyond};
use super::super::paper::{Ground, Over, Tolerance};
use super::super::readings::Reading;
use super::super::reproduction::Finished;

/// `table.csv`: every figure and claim. The schema of all papers; columns may be added at its end.
pub(super) fn all(done: &Finished) -> Table {
    let figures = done.ours.rows.iter().map(|row| {
        let (paper, tolerance) = row.paper.unzip();
        let verdict = row.is_beyond().map(|beyond| if beyond { "beyond" } else { "within" });
        let verdict = if row.ours.is_saturated { Some("saturated") } else { verdict };
        (&row.case, &row.metric, paper, row.ours, &*row.part, tolerance, verdict)
    });
    let claims = done.ours.claims.iter().map(|judged| {
        let Judged { claim, ours, verdict, .. } = judged;
        let tolerance = claim.relative.map(Tolerance::Relative);
        (&claim.case, &claim.name, said(judged), *ours, "claim", tolerance, Some(verdict.words()))
    });
    Table::of(figures.chain(claims))
        .column(Column::text("case"), |line| line.0.clone())
        .column(Column::text("metric"), |line| line.1.clone())
        .column(Column::number("paper").file_digits(6), |line| line.2)
        .column(Column::mean("ours").file_digits(6), |line| mean(line.3))
        .column(Column::text("part"), |line| line.4)
        .column(Column::text("tolerance"), |line| line.5.map(tolerated))
        .column(Column::text("verdict"), |line| line.6)
        .into()
}

/// The paper's figure; of a claim about several cells, all of them.
fn said(judged: &Judged) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
    let all = (judged.claim.over == Over::Each && judged.verdict != Verdict::Silent)
        .then_some(judged.ours.n as f64);
    judged.claim.figure.first().copied().or(all)
}

pub(super) fn tolerated(tolerance: Tolerance) -> String {
    match tolerance {
        Tolerance::Relative(part) => format!("{:.0} %", part * 100.0),
        Tolerance::Points(points) => format!("{points} points"),
    }
}

fn mean(ours: Estimate) -> Cell {
    Cell::mean(ours.mean, ours.ci95, ours.n)
}

/// The figures that the paper printed.
pub(super) fn printed(done: &Finished) -> Table {
    beside(done, done.ours.rows.iter().filter(|row| row.paper.is_some()))
}

/// Every figure, ours beside the paper's.
pub(super) fn figures(done: &Finished) -> Table {
    beside(done, done.ours.rows.iter())
}

/// Figures, ours beside the paper's.
fn beside<'a>(done: &Finished, rows: impl Iterator<Item = &'a Row>) -> Table {
    let digits = |row: &Row| done.paper.words_of(&row.metric).1;
    let interval = |row: &Row| match row.ours.ci95 {
        None if row.ours.is_saturated => "none: saturated".to_owned(),
        None => String::new(),
        Some((low, high)) => format!("{low:.d$} to {high:.d$}", d = digits(row)),
    };
    let difference = |row: &Row| {
        // A difference of percentages says nothing as a ratio.
        let is_part = !matches!(row.paper, Some((_, Tolerance::Points(_))));
        Cell::from(row.difference().filter(|_| is_part)).toned(off(row))
    };
    Table::of(rows)
        .column(Column::text("case"), |row| row.case.clone())
        .column(Column::text("figure"), |row| done.paper.words_of(&row.metric).0)
        .column(Column::text("paper"), |row| row.paper.map(|(x, _)| fixed(x, digits(row))))
        .column(Column::text("ours"), |row| fixed(row.ours.mean, digits(row)))
        .column(Column::text("95 % interval").named("interval"), |row| interval(row))
        .column(Column::percent("difference"), |row| difference(row))
        .into()
}

fn fixed(x: f64, digits: usize) -> String {
    format!("{x:.digits$}")
}

fn off(row: &Row) -> Tone {
    if row.is_beyond() == Some(true) { Tone::Bad } else { Tone::Plain }
}

/// The claims, numbered.
pub(super) fn claims(done: &Finished) -> Table {
    Table::of((1_u64..).zip(&done.ours.claims))
        .column(Column::count("no."), |(n, _)| *n)
        .column(Column::text("verdict"), |(_, of)| {
            Cell::text(of.verdict.words()).toned(tone(of.verdict))
        })
        .column(Column::text("the paper says").named("says"), |(_, of)| of.claim.says.clone())
        .column(Column::number("paper"), |(_, of)| said(of))
        .column(Column::mean("ours"), |(_, of)| mean(of.ours))
        .column(Column::text("how it was judged").named("how"), |(_, of)| of.how.clone())
        .into()
}

const fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Holds => Tone::Good,
        Verdict::Fails => Tone::Bad,
        Verdict::Open => Tone::Plain,
        Verdict::Silent => Tone::Dim,
    }
}

fn part_of((part, all): (usize, usize)) -> String {
    format!("{part} of {all}")
}

/// Every factor over all figures and claims.
pub(super) fn factors(done: &Finished) -> Table {
    let Some(without) = done.trials.first() else { return Table::default() };
    let metrics: BTreeSet<&String> = without.rows.iter().map(|row| &row.metric).collect();
    let metrics = metrics.into_iter().filter(|m| beyond(&without.rows, Some(m)).1 > 0);
    let numbers = |all: Vec<&str>| {
        let number = |says: &&str| done.ours.claims.iter().position(|c| c.claim.says == *says);
        let numbers = all.iter().filter_map(number).map(|n| (n + 1).to_string());
        numbers.collect::<Vec<_>>().join(", ")
    };
    let counts = |trial: &Reading, metric: Option<&str>| {
        Some(beyond(&trial.rows, metric)).filter(|(_, of)| *of > 0).map(part_of)
    };
    let mut table = Table::of(&done.trials)
        .column(Column::text("factor"), |trial| trial.name())
        .column(Column::text("what it changes").named("about"), |trial| trial.about());
    for metric in metrics {
        let heading = format!("{}: beyond tolerance", done.paper.words_of(metric).0);
        let column = Column::text(heading).named(format!("{metric}_off"));
        table = table.column(column, |trial| counts(trial, Some(metric)).unwrap_or_default());
    }
    table
        .column(Column::text("all figures: beyond tolerance").named("figures_off"), |trial| {
            counts(trial, None).unwrap_or_default()
        })
        .column(Column::text("claims that hold").named("claims_hold"), |trial| held(trial))
        .column(Column::text("claims that it mends").named("mends"), |trial| {
            numbers(trial.mends(without))
        })
        .column(Column::text("claims that it breaks").named("breaks"), |trial| {
            numbers(trial.breaks(without))
        })
        .column(Column::text("verdict").named("word"), |trial| trial.word(without))
        .into()
}

fn held(reading: &Reading) -> String {
    part_of((reading.count(Verdict::Holds), reading.judged()))
}

/// What a reading is called, and what it changes: of the presets, the text is one.
fn named(done: &Finished, reading: &Reading) -> (String, String) {
    if reading.factors.is_empty() && !done.is_search() {
        return ("text".to_owned(), "the text, where it and the code differ".to_owned());
    }
    (reading.name(), reading.about())
}

/// Every reading, and how much it explains.
pub(super) fn readings(done: &Finished) -> Table {
    Table::of(&done.read)
        .column(Column::text("reading"), |reading| named(done, reading).0)
        .column(Column::text("what it changes").named("about"), |reading| named(done, reading).1)
        .column(Column::text("based on").named("ground"), |reading| {
            reading.ground().map_or("", Ground::words)
        })
        .column(Column::text("figures within tolerance").named("within"), |reading| {
            part_of(reading.within)
        })
        .column(Column::text("claims that hold").named("claims_hold"), |reading| held(reading))
        .column(Column::text("score"), |reading| reading.score().to_string())
        .column(Column::text("all figures: beyond tolerance").named("figures_off"), |reading| {
            part_of(beyond(&reading.rows, None))
        })
        .into()
}

/// Every printed figure, then every claim, under each reading.
pub(super) fn under_readings(done: &Finished) -> Table {
    type Under<'a> = Box<dyn Fn(&Reading) -> Option<Cell> + 'a>;
    let Some(ours) = done.read.first() else { return Table::default() };
    let figures = ours.rows.iter().filter_map(|row| {
        let (figure, digits) = done.paper.words_of(&row.metric);
        let under: Under<'_> = Box::new(move |reading| {
            let same = |r: &&Row| r.case == row.case && r.metric == row.metric;
            let row = reading.rows.iter().find(same)?;
            Some(Cell::text(fixed(row.ours.mean, digits)).toned(off(row)))
        });
        Some((&row.case, figure, Some(fixed(row.paper?.0, digits)), under))
    });
    let claims = ours.claims.iter().map(|judged| {
        let under: Under<'_> = Box::new(|reading| {
            let same = |other: &&Judged| other.claim.says == judged.claim.says;
            let Judged { ours, verdict, .. } = reading.claims.iter().find(same)?;
            let text = format!("{:.2}, {}", ours.mean, verdict.words());
            Some(Cell::text(text).toned(tone(*verdict)))
        });
        let paper = said(judged).map(|paper| fixed(paper, 2));
        (&judged.claim.case, &*judged.claim.says, paper, under)
    });
    let mut table = Table::of(figures.chain(claims))
        .column(Column::text("case"), |(case, ..)| case.as_str())
        .column(Column::text("figure"), |(_, figure, ..)| *figure)
        .column(Column::text("paper"), |(_, _, paper, _)| paper.clone());
    for reading in &done.read {
        let column = Column::text(named(done, reading).0);
        table = table.column(column, |(.., under)| under(reading));
    }
    table.into()
}

/// The live runs against the virtual ones.
pub(super) fn live(done: &Finished) -> Table {
    let off = |x: f64, than: f64| format!("{:+.1} %", (x / than - 1.0) * 100.0);
    Table::of(&done.live)
        .column(Column::text("case"), |(run, _)| run.case())
        .column(Column::count("seed"), |(run, _)| run.seed)
        .column(Column::text("emulation"), |(run, _)| run.fidelity())
        .column(Column::seconds("makespan"), |(run, _)| run.makespan_s)
        .column(Column::dollars("cost"), |(run, _)| run.cost_usd)
        .column(Column::text("virtual, same seed").named("same_seed"), |(run, against)| {
            let Some(against) = against else { return "no such cell here".to_owned() };
            let Some((makespan, cost)) = against.same else { return "none".to_owned() };
            let live = run.makespan_s.map(|s| format!(" ({})", off(s, makespan)));
            let live = live.unwrap_or_default();
            format!("{makespan:.0} s{live}, ${cost:.4} ({})", off(run.cost_usd, cost))
        })
        .column(Column::text("virtual, all seeds").named("all_seeds"), |(_, against)| {
            let Some(against) = against else { return String::new() };
            let (m, c) = (against.makespan.range, against.cost.range);
            format!("{:.0} to {:.0} s, ${:.4} to ${:.4}", m.0, m.1, c.0, c.1)
        })
        .into()
}

/// How many figures are beyond their tolerance and how many claims hold, in a line.
pub(super) fn summary(done: &Finished) -> String {
    let figures = match beyond(&done.ours.rows, None) {
        (_, 0) => String::new(),
        (off, of) => format!("{off} of {of} figures are beyond their tolerance; "),
    };
    let [hold, fail, open] =
        [Verdict::Holds, Verdict::Fails, Verdict::Open].map(|verdict| done.ours.count(verdict));
    let judged = done.ours.judged();
    format!("  {figures}of {judged} claims {hold} hold, {fail} fail, {open} are open")
}

/// The records of prices that are odd, and how.
pub(super) fn price_records(done: &Finished) -> Table {
    Table::of(done.odd_records())
        .column(Column::text("file"), |record| record.file.as_str())
        .column(Column::text("what is odd"), |record| record.notes.join("; "))
        .into()
}
