//! Tables of a reproduction.

use std::collections::BTreeSet;

use dormouse_estimate::{Estimate, Verdict};
use dormouse_view::{Cell, Column, Table, TableOf, Tone};

use super::super::as_printed::AsPrinted;
use super::super::cause::Cause;
use super::super::claims::Judged;
use super::super::factor::Ground;
use super::super::figures::{Row, Tally, beyond};
use super::super::finished::Finished;
use super::super::live::{Against, LiveRun};
use super::super::paper::{Part, Tolerance};
use super::super::readings::Reading;

/// The table `table.csv` with every figure and claim, in the same schema for all papers; new
/// columns may be added at the end.
pub(super) fn all(done: &Finished) -> Table {
    let figures = done.ours.rows.iter().map(|row| Line {
        case: &row.case,
        metric: &row.metric,
        paper: row.paper.map(|(paper, _)| paper),
        refit: row.refit,
        ours: row.ours,
        part: &row.part,
        tolerance: row.paper.map(|(_, tolerance)| tolerance),
        verdict: row.word(),
        role: if row.is_input { "input" } else { "figure" },
        as_printed: row.as_printed,
        cause: None,
        claim: None,
    });
    let claims = done.ours.claims.iter().map(|judged| Line {
        case: &judged.claim.case,
        metric: &judged.claim.name,
        paper: said(judged),
        refit: None,
        ours: judged.ours,
        part: "claim",
        tolerance: judged.claim.tolerance(),
        verdict: judged.verdict.words(),
        role: "claim",
        as_printed: judged.as_printed,
        cause: cause(done, judged),
        claim: Some(judged),
    });
    Table::with_rows(figures.chain(claims))
        .column(Column::text("case"), |line| line.case)
        .column(Column::text("metric"), |line| line.metric)
        .column(Column::number("paper").file_digits(6), |line| line.paper)
        .column(Column::mean("ours").file_digits(6), |line| mean(line.ours))
        .column(Column::text("part"), |line| line.part)
        .column(Column::text("tolerance"), |line| line.tolerance.map(tolerated))
        .column(Column::text("verdict"), |line| line.verdict)
        .column(Column::number("refit").file_digits(6), |line| line.refit)
        .column(Column::text("role"), |line| line.role)
        .column(Column::count("runs_averaged"), |line| line.as_printed.map(|few| few.runs as u64))
        .column(Column::number("as_printed_low").file_digits(6), |line| {
            line.as_printed.map(|few| few.range.0)
        })
        .column(Column::number("as_printed_high").file_digits(6), |line| {
            line.as_printed.map(|few| few.range.1)
        })
        .column(Column::text("as_printed"), |line| printable(line.as_printed))
        .column(Column::text("cause"), |line| line.cause.clone())
        .column(Column::text("quote"), |line| line.claim.map(|of| of.claim.quote.clone()))
        .column(Column::text("place"), |line| line.claim.map(|of| of.claim.place.clone()))
        .column(Column::text("other_readings"), |line| line.claim.map(other_readings))
        .into()
}

/// Results of other readings of a claim's words, in words.
fn other_readings(of: &Judged) -> String {
    let read = of.readings.iter().map(|reading| {
        let ours = match reading.ours.ci95 {
            Some((low, high)) => format!("{:.2} [{low:.2}, {high:.2}]", reading.ours.mean),
            // Counts of cells or groups have no interval.
            None => format!("{} of {}", reading.ours.mean, reading.ours.n),
        };
        format!("{}: {ours} {}", reading.name, reading.verdict.words())
    });
    read.collect::<Vec<_>>().join("; ")
}

/// One line of `table.csv`: a figure or a claim.
struct Line<'a> {
    case: &'a str,
    metric: &'a str,
    paper: Option<f64>,
    refit: Option<f64>,
    ours: Estimate,
    part: &'a str,
    tolerance: Option<Tolerance>,
    verdict: &'static str,
    role: &'static str,
    as_printed: Option<AsPrinted>,
    cause: Option<String>,
    /// The claim of the line.
    claim: Option<&'a Judged>,
}

/// Second verdict in a word: whether as few runs as the paper's could print its value.
pub(super) fn printable(few: Option<AsPrinted>) -> &'static str {
    match few {
        Some(few) if few.is_within => "possible",
        Some(_) => "not possible",
        None => "",
    }
}

/// Cause of a claim that does not hold, in words.
pub(super) fn cause(done: &Finished, judged: &Judged) -> Option<String> {
    Cause::find(&done.paper, judged, done.as_trials()).map(|cause| cause.words(&judged.claim.tried))
}

/// Figure of a claim; for a claim about several cells, their number.
fn said(judged: &Judged) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
    let all = (judged.claim.is_about_each() && judged.verdict != Verdict::Silent)
        .then_some(judged.ours.n as f64);
    all.or(judged.claim.figure.first().copied())
}

pub(super) fn tolerated(tolerance: Tolerance) -> String {
    match tolerance {
        Tolerance::Relative(part) => format!("{:.0} %", part * 100.0),
        Tolerance::Points(points) => format!("{points} points"),
        Tolerance::AtMost(part) => format!("at most {:.0} % more", part * 100.0),
    }
}

fn mean(ours: Estimate) -> Cell {
    Cell::mean(ours.mean, ours.ci95, ours.n)
}

/// Table of the figures that the paper printed.
pub(super) fn printed(done: &Finished) -> Table {
    beside(done, done.ours.rows.iter().filter(|row| row.paper.is_some()))
}

/// Table of all figures, ours beside the paper's.
pub(super) fn figures(done: &Finished) -> Table {
    beside(done, done.ours.rows.iter())
}

/// Table of these figures, ours beside the paper's.
fn beside<'a>(done: &Finished, rows: impl Iterator<Item = &'a Row>) -> Table {
    let digits = |row: &Row| done.paper.words_of(&row.metric).1;
    let interval = |row: &Row| match row.ours.ci95 {
        None if row.ours.is_saturated => "none: saturated".to_owned(),
        None => String::new(),
        Some((low, high)) => format!("{low:.d$} to {high:.d$}", d = digits(row)),
    };
    let difference = |row: &Row| {
        // A difference of percentages tells nothing as a ratio.
        let is_part = !matches!(row.paper, Some((_, Tolerance::Points(_))));
        Cell::from(row.difference().filter(|_| is_part)).toned(off(row))
    };
    let rows: Vec<&Row> = rows.collect();
    let has_few_runs = rows.iter().any(|row| row.as_printed.is_some());
    let has_refit = rows.iter().any(|row| row.refit.is_some());
    let mut table = Table::with_rows(rows)
        .column(Column::text("case"), |row| row.case.clone())
        .column(Column::text("figure"), |row| done.paper.words_of(&row.metric).0)
        .column(Column::text("paper"), |row| row.paper.map(|(x, _)| fixed(x, digits(row))))
        .column(Column::text("ours"), |row| fixed(row.ours.mean, digits(row)))
        .column(Column::text("95 % interval").named("interval"), |row| interval(row))
        .column(Column::percent("difference"), |row| difference(row))
        .column(Column::text("verdict"), |row| verdict(row));
    // Few papers have values for these columns.
    if has_few_runs {
        table = table.column(Column::text("as few runs").named("as_printed"), |row| {
            Cell::from(row.as_printed.map(|few| few_runs(few, digits(row)))).toned(few_tone(row))
        });
    }
    if has_refit {
        table = table.column(Column::text("computed, not printed").named("refit"), |row| {
            row.refit.map(|x| fixed(x, digits(row)))
        });
    }
    table.into()
}

/// Verdict on a printed figure, marked if it is an input.
fn verdict(row: &Row) -> Cell {
    let word = if row.is_input && row.verdict.is_some() {
        format!("{}, input", row.word())
    } else {
        row.word().to_owned()
    };
    Cell::text(word).toned(off(row))
}

/// Second verdict with its range: `possible: 1.00 to 2.33`.
fn few_runs(few: AsPrinted, digits: usize) -> String {
    let (low, high) = few.range;
    format!("{}: {low:.digits$} to {high:.digits$}", printable(Some(few)))
}

fn few_tone(row: &Row) -> Tone {
    if row.as_printed.is_some_and(|few| !few.is_within) { Tone::Bad } else { Tone::Plain }
}

fn fixed(x: f64, digits: usize) -> String {
    format!("{x:.digits$}")
}

fn off(row: &Row) -> Tone {
    if row.is_beyond() == Some(true) { Tone::Bad } else { Tone::Plain }
}

/// Numbered claims, for a terminal.
pub(super) fn claims_in_short(done: &Finished) -> Table {
    let mut table = judged_claims(done);
    if has_few_runs(done) {
        table = table.column(Column::text("as few runs").named("as_printed"), |(_, of)| {
            printable(of.as_printed)
        });
    }
    table.column(Column::text("how it was judged").named("how"), |(_, of)| of.how.clone()).into()
}

/// Numbered claims with all details.
pub(super) fn claims(done: &Finished) -> Table {
    let mut table = judged_claims(done);
    if has_few_runs(done) {
        table = table.column(Column::text("as few runs").named("as_printed"), |(_, of)| {
            of.as_printed.map(|few| few_runs(few, 2))
        });
    }
    table
        .column(Column::text("how it was judged").named("how"), |(_, of)| of.how.clone())
        .column(Column::text("tolerance, and why").named("because"), |(_, of)| {
            let tolerance = of.claim.tolerance().map(tolerated);
            [tolerance.unwrap_or_default(), of.claim.because.clone()].join(" ").trim().to_owned()
        })
        .column(Column::text("cause"), |(_, of)| cause(done, of))
        .column(Column::text("in its own words").named("quote"), |(_, of)| of.claim.quote.clone())
        .column(Column::text("where").named("place"), |(_, of)| of.claim.place.clone())
        .column(Column::text("under other readings").named("other_readings"), |(_, of)| {
            other_readings(of)
        })
        .into()
}

/// Whether any claim has the second verdict, because the paper tells its number of runs.
fn has_few_runs(done: &Finished) -> bool {
    done.ours.claims.iter().any(|of| of.as_printed.is_some())
}

/// Columns at the beginning of both tables of claims.
fn judged_claims(done: &Finished) -> TableOf<(u64, &Judged)> {
    Table::with_rows((1_u64..).zip(&done.ours.claims))
        .column(Column::count("no."), |(n, _)| *n)
        .column(Column::text("verdict"), |(_, of)| {
            Cell::text(of.verdict.words()).toned(tone(of.verdict))
        })
        .column(Column::text("the paper says").named("says"), |(_, of)| of.claim.says.clone())
        .column(Column::number("paper"), |(_, of)| said(of))
        .column(Column::mean("ours"), |(_, of)| mean(of.ours))
}

const fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Holds => Tone::Good,
        Verdict::Fails => Tone::Bad,
        Verdict::Open => Tone::Plain,
        Verdict::Silent | Verdict::Undecidable => Tone::Dim,
    }
}

fn part_of((part, all): (usize, usize)) -> String {
    format!("{part} of {all}")
}

/// Table of all factors, over all figures and claims.
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
    let mut table = Table::with_rows(&done.trials)
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

/// Name and changes of a reading; the text itself is one of the presets.
fn named(done: &Finished, reading: &Reading) -> (String, String) {
    if reading.factors.is_empty() && !done.is_search() {
        return ("text".to_owned(), "the text, where it and the code differ".to_owned());
    }
    (reading.name(), reading.about())
}

/// Table of all readings, with the number of statements that each explains.
pub(super) fn readings(done: &Finished) -> Table {
    Table::with_rows(&done.read)
        .column(Column::text("reading"), |reading| named(done, reading).0)
        .column(Column::text("what it changes").named("about"), |reading| named(done, reading).1)
        .column(Column::text("based on").named("ground"), |reading| {
            reading.ground().map_or("", Ground::words)
        })
        .column(Column::text("figures not beyond tolerance").named("within"), |reading| {
            part_of(reading.within)
        })
        .column(Column::text("claims that hold").named("claims_hold"), |reading| held(reading))
        .column(Column::text("not contradicted").named("explained"), |reading| {
            part_of((reading.explained.count(), reading.explained.total()))
        })
        .column(Column::text("score"), |reading| reading.score().to_string())
        .column(Column::text("all figures: beyond tolerance").named("figures_off"), |reading| {
            part_of(beyond(&reading.rows, None))
        })
        .into()
}

/// Table of all printed figures, then all claims, under each reading.
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
    let mut table = Table::with_rows(figures.chain(claims))
        .column(Column::text("case"), |(case, ..)| case.as_str())
        .column(Column::text("figure"), |(_, figure, ..)| *figure)
        .column(Column::text("paper"), |(_, _, paper, _)| paper.clone());
    for reading in &done.read {
        let column = Column::text(named(done, reading).0);
        table = table.column(column, |(.., under)| under(reading));
    }
    table.into()
}

/// A figure of a live run.
struct LiveFigure<'a> {
    run: &'a LiveRun,
    metric: String,
    ours: f64,
    against: Option<Against>,
}

/// Table of the live runs' figures beside those of virtual runs.
pub(super) fn live(done: &Finished) -> Table {
    let parts: Vec<&Part> = done.parts().collect();
    let figures = done.live.iter().flat_map(|run| {
        let figure = |(metric, ours): (String, f64)| LiveFigure {
            against: run.against(&metric, (&done.results, done.seeds.0)),
            run,
            metric,
            ours,
        };
        run.shown_figures(&done.paper, &parts).into_iter().map(figure).collect::<Vec<_>>()
    });
    let digits = |row: &LiveFigure<'_>| done.paper.words_of(&row.metric).1;
    Table::with_rows(figures)
        .column(Column::text("case"), |row| row.run.case())
        .column(Column::count("seed"), |row| row.run.seed)
        .column(Column::text("figure"), |row| done.paper.words_of(&row.metric).0.to_owned())
        .column(Column::text("live"), |row| fixed(row.ours, digits(row)))
        .column(Column::text("virtual, same seed").named("same_seed"), |row| {
            row.against.and_then(|of| of.same).map(|same| fixed(same, digits(row)))
        })
        .column(Column::percent("difference"), |row| {
            let same = row.against.and_then(|of| of.same).filter(|same| *same != 0.0);
            same.map(|same| row.ours / same - 1.0)
        })
        .column(Column::text("virtual, all seeds").named("all_seeds"), |row| match row.against {
            Some(Against { all, .. }) => {
                let (low, high) = all.range;
                format!("{low:.d$} to {high:.d$}", d = digits(row))
            }
            None => "no such cell here".to_owned(),
        })
        .column(Column::text("emulation"), |row| row.run.fidelity())
        .into()
}

/// Counts of claims by verdict, of figures by tolerance, and of what few runs could print, one line
/// each.
pub(super) fn summary(done: &Finished) -> String {
    let mut lines = vec![format!("  {}", held_in_words(&done.ours))];
    let figures = Tally::new(&done.ours.rows, None, false);
    if figures.all() > 0 {
        let Tally { within, beyond, open, .. } = figures;
        let all = figures.all();
        lines.push(format!(
            "  of {all} printed figures {within} are within their tolerance, {beyond} beyond, {open} open"
        ));
    }
    lines.extend(printable_in_words(&done.ours).map(|words| format!("  {words}")));
    lines.join("\n")
}

/// Number of a reading's claims that hold, fail, are open, and are undecidable, in words.
pub(super) fn held_in_words(reading: &Reading) -> String {
    let [hold, fail, open, undecidable] =
        [Verdict::Holds, Verdict::Fails, Verdict::Open, Verdict::Undecidable]
            .map(|verdict| reading.count(verdict));
    let judged = reading.judged();
    let beside = match undecidable {
        0 => String::new(),
        1 => "; 1 is undecidable with this data".to_owned(),
        n => format!("; {n} are undecidable with this data"),
    };
    format!("of {judged} claims {hold} hold, {fail} fail, {open} are open{beside}")
}

/// Number of printed figures and of claims' figures that as few of our runs as the paper's could
/// print, in words; `None` if the paper does not tell its number of runs.
pub(super) fn printable_in_words(reading: &Reading) -> Option<String> {
    let figures = Tally::new(&reading.rows, None, false);
    let claims: Vec<AsPrinted> = reading.claims.iter().filter_map(|of| of.as_printed).collect();
    let within = claims.iter().filter(|few| few.is_within).count();
    let runs = claims.first().or(reading.rows.iter().find_map(|row| row.as_printed.as_ref()))?.runs;
    Some(format!(
        "as means of {runs} runs ours could be {} of {} printed figures and {within} of {} figures of claims",
        figures.as_printed,
        figures.of_few_runs,
        claims.len()
    ))
}

/// Table of the price records with oddities.
pub(super) fn price_records(done: &Finished) -> Table {
    Table::with_rows(done.odd_records())
        .column(Column::text("file"), |record| record.file.as_str())
        .column(Column::text("what is odd"), |record| record.notes.join("; "))
        .into()
}
