//! Tables of a reproduction.

use std::collections::BTreeSet;

use dormouse_estimate::{Estimate, Verdict};
use dormouse_view::{TableCell, TableColumn, TableOf, TextTone, TypedTable};

use super::super::as_printed::AsPrinted;
use super::super::cause::ClaimCause;
use super::super::claims::JudgedClaim;
use super::super::factor::FactorGround;
use super::super::figures::{FigureRow, FigureTally, beyond};
use super::super::finished::FinishedReproduction;
use super::super::live::{LiveRun, VirtualFigure};
use super::super::paper::{FigureTolerance, PaperPart};
use super::super::readings::PaperReading;

/// The table `table.csv` with every figure and claim, in the same schema for all papers; new
/// columns may be added at the end.
pub(super) fn all(done: &FinishedReproduction) -> TypedTable {
    let figures = done.ours.rows.iter().map(|row| TableLine {
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
    let claims = done.ours.claims.iter().map(|judged| TableLine {
        case: &judged.claim.case,
        metric: &judged.claim.name,
        paper: claim_figure(judged),
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
    TypedTable::with_rows(figures.chain(claims))
        .column(TableColumn::text("case"), |line| line.case)
        .column(TableColumn::text("metric"), |line| line.metric)
        .column(TableColumn::number("paper").file_digits(6), |line| line.paper)
        .column(TableColumn::mean("ours").file_digits(6), |line| mean(line.ours))
        .column(TableColumn::text("part"), |line| line.part)
        .column(TableColumn::text("tolerance"), |line| line.tolerance.map(tolerated))
        .column(TableColumn::text("verdict"), |line| line.verdict)
        .column(TableColumn::number("refit").file_digits(6), |line| line.refit)
        .column(TableColumn::text("role"), |line| line.role)
        .column(TableColumn::count("runs_averaged"), |line| {
            line.as_printed.map(|few| few.runs as u64)
        })
        .column(TableColumn::number("as_printed_low").file_digits(6), |line| {
            line.as_printed.map(|few| few.range.0)
        })
        .column(TableColumn::number("as_printed_high").file_digits(6), |line| {
            line.as_printed.map(|few| few.range.1)
        })
        .column(TableColumn::text("as_printed"), |line| printable(line.as_printed))
        .column(TableColumn::text("cause"), |line| line.cause.clone())
        .column(TableColumn::text("quote"), |line| line.claim.map(|of| of.claim.quote.clone()))
        .column(TableColumn::text("place"), |line| line.claim.map(|of| of.claim.place.clone()))
        .column(TableColumn::text("other_readings"), |line| line.claim.map(other_readings))
        .into()
}

/// Results of other readings of a claim's words, in words.
fn other_readings(of: &JudgedClaim) -> String {
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
struct TableLine<'a> {
    case: &'a str,
    metric: &'a str,
    paper: Option<f64>,
    refit: Option<f64>,
    ours: Estimate,
    part: &'a str,
    tolerance: Option<FigureTolerance>,
    verdict: &'static str,
    role: &'static str,
    as_printed: Option<AsPrinted>,
    cause: Option<String>,
    /// The claim of the line; `None` for the line of a figure.
    claim: Option<&'a JudgedClaim>,
}

/// Whether the printed value could be the mean of as few of our runs as the paper averaged, in a word; empty if unknown.
pub(super) fn printable(few: Option<AsPrinted>) -> &'static str {
    match few {
        Some(few) if few.is_within => "possible",
        Some(_) => "not possible",
        None => "",
    }
}

/// Cause of a claim that does not hold, in words; `None` if the claim needs no cause.
pub(super) fn cause(done: &FinishedReproduction, judged: &JudgedClaim) -> Option<String> {
    ClaimCause::find(&done.paper, judged, done.as_trials())
        .map(|cause| cause.words(&judged.claim.tried))
}

/// Figure of a claim; for a claim about each of several cells, their number. `None` if the claim has neither.
fn claim_figure(judged: &JudgedClaim) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
    let all = (judged.claim.is_about_each() && judged.verdict != Verdict::Silent)
        .then_some(judged.ours.n as f64);
    all.or(judged.claim.figure.first().copied())
}

pub(super) fn tolerated(tolerance: FigureTolerance) -> String {
    match tolerance {
        FigureTolerance::Relative(part) => format!("{:.0} %", part * 100.0),
        FigureTolerance::Points(points) => format!("{points} points"),
        FigureTolerance::AtMost(part) => format!("at most {:.0} % more", part * 100.0),
    }
}

fn mean(ours: Estimate) -> TableCell {
    TableCell::mean(ours.mean, ours.ci95, ours.n)
}

/// Table of the figures that the paper printed.
pub(super) fn printed(done: &FinishedReproduction) -> TypedTable {
    comparison_table(done, done.ours.rows.iter().filter(|row| row.paper.is_some()))
}

/// Table of all figures, ours beside the paper's.
pub(super) fn figures(done: &FinishedReproduction) -> TypedTable {
    comparison_table(done, done.ours.rows.iter())
}

/// Table of the figures in `rows`, ours beside the paper's.
fn comparison_table<'a>(
    done: &FinishedReproduction,
    rows: impl Iterator<Item = &'a FigureRow>,
) -> TypedTable {
    let digits = |row: &FigureRow| done.paper.words_of(&row.metric).1;
    let interval = |row: &FigureRow| match row.ours.ci95 {
        None if row.ours.is_saturated => "none: saturated".to_owned(),
        None => String::new(),
        Some((low, high)) => format!("{low:.d$} to {high:.d$}", d = digits(row)),
    };
    let difference = |row: &FigureRow| {
        // A difference of percentages tells nothing as a ratio.
        let is_part = !matches!(row.paper, Some((_, FigureTolerance::Points(_))));
        TableCell::from(row.difference().filter(|_| is_part)).toned(difference_tone(row))
    };
    let rows: Vec<&FigureRow> = rows.collect();
    let has_few_runs = rows.iter().any(|row| row.as_printed.is_some());
    let has_refit = rows.iter().any(|row| row.refit.is_some());
    let mut table = TypedTable::with_rows(rows)
        .column(TableColumn::text("case"), |row| row.case.clone())
        .column(TableColumn::text("figure"), |row| done.paper.words_of(&row.metric).0)
        .column(TableColumn::text("paper"), |row| row.paper.map(|(x, _)| fixed(x, digits(row))))
        .column(TableColumn::text("ours"), |row| fixed(row.ours.mean, digits(row)))
        .column(TableColumn::text("95 % interval").named("interval"), |row| interval(row))
        .column(TableColumn::percent("difference"), |row| difference(row))
        .column(TableColumn::text("verdict"), |row| verdict(row));
    // Few papers have values for these columns.
    if has_few_runs {
        table = table.column(TableColumn::text("as few runs").named("as_printed"), |row| {
            TableCell::from(row.as_printed.map(|few| few_runs(few, digits(row))))
                .toned(few_tone(row))
        });
    }
    if has_refit {
        table = table.column(TableColumn::text("computed, not printed").named("refit"), |row| {
            row.refit.map(|x| fixed(x, digits(row)))
        });
    }
    table.into()
}

/// Verdict on a printed figure, marked if it is an input.
fn verdict(row: &FigureRow) -> TableCell {
    let word = if row.is_input && row.verdict.is_some() {
        format!("{}, input", row.word())
    } else {
        row.word().to_owned()
    };
    TableCell::text(word).toned(difference_tone(row))
}

/// Whether means of few runs could be the printed value, with the range of the means: `possible: 1.00 to 2.33`.
fn few_runs(few: AsPrinted, digits: usize) -> String {
    let (low, high) = few.range;
    format!("{}: {low:.digits$} to {high:.digits$}", printable(Some(few)))
}

fn few_tone(row: &FigureRow) -> TextTone {
    if row.as_printed.is_some_and(|few| !few.is_within) { TextTone::Bad } else { TextTone::Plain }
}

fn fixed(x: f64, digits: usize) -> String {
    format!("{x:.digits$}")
}

fn difference_tone(row: &FigureRow) -> TextTone {
    if row.is_beyond() == Some(true) { TextTone::Bad } else { TextTone::Plain }
}

/// Numbered claims, for a terminal.
pub(super) fn claims_in_short(done: &FinishedReproduction) -> TypedTable {
    let mut table = judged_claims(done);
    if has_few_runs(done) {
        table = table.column(TableColumn::text("as few runs").named("as_printed"), |(_, of)| {
            printable(of.as_printed)
        });
    }
    table
        .column(TableColumn::text("how it was judged").named("how"), |(_, of)| of.how.clone())
        .into()
}

/// Numbered claims with all details.
pub(super) fn claims(done: &FinishedReproduction) -> TypedTable {
    let mut table = judged_claims(done);
    if has_few_runs(done) {
        table = table.column(TableColumn::text("as few runs").named("as_printed"), |(_, of)| {
            of.as_printed.map(|few| few_runs(few, 2))
        });
    }
    table
        .column(TableColumn::text("how it was judged").named("how"), |(_, of)| of.how.clone())
        .column(TableColumn::text("tolerance, and why").named("because"), |(_, of)| {
            let tolerance = of.claim.tolerance().map(tolerated);
            [tolerance.unwrap_or_default(), of.claim.because.clone()].join(" ").trim().to_owned()
        })
        .column(TableColumn::text("cause"), |(_, of)| cause(done, of))
        .column(TableColumn::text("in its own words").named("quote"), |(_, of)| {
            of.claim.quote.clone()
        })
        .column(TableColumn::text("where").named("place"), |(_, of)| of.claim.place.clone())
        .column(TableColumn::text("under other readings").named("other_readings"), |(_, of)| {
            other_readings(of)
        })
        .into()
}

/// Whether any claim was also compared with means of as few of our runs as the paper's, because the paper tells its
/// number of runs.
fn has_few_runs(done: &FinishedReproduction) -> bool {
    done.ours.claims.iter().any(|of| of.as_printed.is_some())
}

/// Table of numbered claims with the columns that the short and the full table of claims begin with.
fn judged_claims(done: &FinishedReproduction) -> TableOf<(u64, &JudgedClaim)> {
    TypedTable::with_rows((1_u64..).zip(&done.ours.claims))
        .column(TableColumn::count("no."), |(n, _)| *n)
        .column(TableColumn::text("verdict"), |(_, of)| {
            TableCell::text(of.verdict.words()).toned(tone(of.verdict))
        })
        .column(TableColumn::text("the paper says").named("says"), |(_, of)| of.claim.says.clone())
        .column(TableColumn::number("paper"), |(_, of)| claim_figure(of))
        .column(TableColumn::mean("ours"), |(_, of)| mean(of.ours))
}

const fn tone(verdict: Verdict) -> TextTone {
    match verdict {
        Verdict::Holds => TextTone::Good,
        Verdict::Fails => TextTone::Bad,
        Verdict::Open => TextTone::Plain,
        Verdict::Silent | Verdict::Undecidable => TextTone::Dim,
    }
}

fn part_of((part, all): (usize, usize)) -> String {
    format!("{part} of {all}")
}

/// Table of all factors, over all figures and claims.
pub(super) fn factors(done: &FinishedReproduction) -> TypedTable {
    let Some(without) = done.trials.first() else { return TypedTable::default() };
    let metrics: BTreeSet<&String> = without.rows.iter().map(|row| &row.metric).collect();
    let metrics = metrics.into_iter().filter(|m| beyond(&without.rows, Some(m)).1 > 0);
    let numbers = |all: Vec<&str>| {
        let number = |says: &&str| done.ours.claims.iter().position(|c| c.claim.says == *says);
        let numbers = all.iter().filter_map(number).map(|n| (n + 1).to_string());
        numbers.collect::<Vec<_>>().join(", ")
    };
    let counts = |trial: &PaperReading, metric: Option<&str>| {
        Some(beyond(&trial.rows, metric)).filter(|(_, of)| *of > 0).map(part_of)
    };
    let mut table = TypedTable::with_rows(&done.trials)
        .column(TableColumn::text("factor"), |trial| trial.name())
        .column(TableColumn::text("what it changes").named("about"), |trial| trial.about());
    for metric in metrics {
        let heading = format!("{}: beyond tolerance", done.paper.words_of(metric).0);
        let column = TableColumn::text(heading).named(format!("{metric}_off"));
        table = table.column(column, |trial| counts(trial, Some(metric)).unwrap_or_default());
    }
    table
        .column(TableColumn::text("all figures: beyond tolerance").named("figures_off"), |trial| {
            counts(trial, None).unwrap_or_default()
        })
        .column(TableColumn::text("claims that hold").named("claims_hold"), |trial| {
            held_counts(trial)
        })
        .column(TableColumn::text("claims that it mends").named("mends"), |trial| {
            numbers(trial.mends(without))
        })
        .column(TableColumn::text("claims that it breaks").named("breaks"), |trial| {
            numbers(trial.breaks(without))
        })
        .column(TableColumn::text("verdict").named("word"), |trial| trial.word(without))
        .into()
}

fn held_counts(reading: &PaperReading) -> String {
    part_of((reading.count(Verdict::Holds), reading.judged()))
}

/// Name and changes of a reading; the reading without factors that is not made by a search is called `text`.
fn name_and_changes(done: &FinishedReproduction, reading: &PaperReading) -> (String, String) {
    if reading.factors.is_empty() && !done.is_search() {
        let but = match done.default.join(", ") {
            none if none.is_empty() => String::new(),
            names => format!(", but for {names}"),
        };
        return ("text".to_owned(), format!("the text, where it and the code differ{but}"));
    }
    (reading.name(), reading.about())
}

/// Table of all readings, with the number of statements that each explains.
pub(super) fn readings(done: &FinishedReproduction) -> TypedTable {
    TypedTable::with_rows(&done.read)
        .column(TableColumn::text("reading"), |reading| name_and_changes(done, reading).0)
        .column(TableColumn::text("what it changes").named("about"), |reading| {
            name_and_changes(done, reading).1
        })
        .column(TableColumn::text("based on").named("ground"), |reading| {
            reading.ground().map_or("", FactorGround::words)
        })
        .column(TableColumn::text("figures not beyond tolerance").named("within"), |reading| {
            part_of(reading.within)
        })
        .column(TableColumn::text("claims that hold").named("claims_hold"), |reading| {
            held_counts(reading)
        })
        .column(TableColumn::text("not contradicted").named("explained"), |reading| {
            part_of((reading.explained.count(), reading.explained.total()))
        })
        .column(TableColumn::text("score"), |reading| reading.score().to_string())
        .column(
            TableColumn::text("all figures: beyond tolerance").named("figures_off"),
            |reading| part_of(beyond(&reading.rows, None)),
        )
        .into()
}

/// Table of all printed figures, then all claims, under each reading.
pub(super) fn under_readings(done: &FinishedReproduction) -> TypedTable {
    type Under<'a> = Box<dyn Fn(&PaperReading) -> Option<TableCell> + 'a>;
    let Some(ours) = done.read.first() else { return TypedTable::default() };
    let figures = ours.rows.iter().filter_map(|row| {
        let (figure, digits) = done.paper.words_of(&row.metric);
        let under: Under<'_> = Box::new(move |reading| {
            let same = |r: &&FigureRow| r.case == row.case && r.metric == row.metric;
            let row = reading.rows.iter().find(same)?;
            Some(TableCell::text(fixed(row.ours.mean, digits)).toned(difference_tone(row)))
        });
        Some((&row.case, figure, Some(fixed(row.paper?.0, digits)), under))
    });
    let claims = ours.claims.iter().map(|judged| {
        let under: Under<'_> = Box::new(|reading| {
            let same = |other: &&JudgedClaim| other.claim.says == judged.claim.says;
            let JudgedClaim { ours, verdict, .. } = reading.claims.iter().find(same)?;
            let text = format!("{:.2}, {}", ours.mean, verdict.words());
            Some(TableCell::text(text).toned(tone(*verdict)))
        });
        let paper = claim_figure(judged).map(|paper| fixed(paper, 2));
        (&judged.claim.case, &*judged.claim.says, paper, under)
    });
    let mut table = TypedTable::with_rows(figures.chain(claims))
        .column(TableColumn::text("case"), |(case, ..)| case.as_str())
        .column(TableColumn::text("figure"), |(_, figure, ..)| *figure)
        .column(TableColumn::text("paper"), |(_, _, paper, _)| paper.clone());
    for reading in &done.read {
        let column = TableColumn::text(name_and_changes(done, reading).0);
        table = table.column(column, |(.., under)| under(reading));
    }
    table.into()
}

/// A figure of a live run.
struct LiveFigure<'a> {
    run: &'a LiveRun,
    metric: String,
    ours: f64,
    against: Option<VirtualFigure>,
}

/// Table of the live runs' figures beside those of virtual runs.
pub(super) fn live(done: &FinishedReproduction) -> TypedTable {
    let parts: Vec<&PaperPart> = done.parts().collect();
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
    TypedTable::with_rows(figures)
        .column(TableColumn::text("case"), |row| row.run.case())
        .column(TableColumn::count("seed").as_name(), |row| row.run.seed)
        .column(TableColumn::text("figure"), |row| done.paper.words_of(&row.metric).0.to_owned())
        .column(TableColumn::text("live"), |row| fixed(row.ours, digits(row)))
        .column(TableColumn::text("virtual, same seed").named("same_seed"), |row| {
            row.against.and_then(|of| of.same).map(|same| fixed(same, digits(row)))
        })
        .column(TableColumn::percent("difference"), |row| {
            let same = row.against.and_then(|of| of.same).filter(|same| *same != 0.0);
            same.map(|same| row.ours / same - 1.0)
        })
        .column(TableColumn::text("virtual, all seeds").named("all_seeds"), |row| {
            match row.against {
                Some(VirtualFigure { all, .. }) => {
                    let (low, high) = all.range;
                    format!("{low:.d$} to {high:.d$}", d = digits(row))
                }
                None => "no such cell here".to_owned(),
            }
        })
        .column(TableColumn::text("emulation"), |row| row.run.fidelity())
        .into()
}

/// Counts of claims by verdict, of figures by tolerance, and of printed values that could be the mean of as few of our runs as the
/// paper averaged; one line each.
pub(super) fn summary(done: &FinishedReproduction) -> String {
    let mut lines = vec![format!("  {}", held_in_words(&done.ours))];
    let figures = FigureTally::new(&done.ours.rows, None, false);
    if figures.all() > 0 {
        let FigureTally { within, beyond, open, .. } = figures;
        let all = figures.all();
        lines.push(format!(
            "  of {all} printed figures {within} are within their tolerance, {beyond} beyond, {open} open"
        ));
    }
    lines.extend(printable_in_words(&done.ours).map(|words| format!("  {words}")));
    lines.extend(former_in_words(&done.ours).map(|words| format!("  {words}")));
    lines.join("\n")
}

/// Claims that get a different verdict by the earlier rule, with that verdict and the reason, in words; `None` if no
/// claim does.
pub(super) fn former_in_words(reading: &PaperReading) -> Option<String> {
    let changed = (1..).zip(&reading.claims).filter_map(|(n, judged)| {
        let former = judged.former.as_ref().filter(|of| of.verdict != judged.verdict)?;
        Some(format!("{n} {} ({})", former.verdict.words(), former.because))
    });
    let changed: Vec<String> = changed.collect();
    (!changed.is_empty()).then(|| {
        format!(
            "by the rule of before November 2026 these had another verdict: {}",
            changed.join("; ")
        )
    })
}

/// Number of a reading's claims that hold, fail, are open, and are undecidable, in words.
pub(super) fn held_in_words(reading: &PaperReading) -> String {
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

/// How many printed figures, and how many figures of claims, could be the mean of as few of our runs as the paper averaged, in
/// words; `None` if the paper does not tell its number of runs.
pub(super) fn printable_in_words(reading: &PaperReading) -> Option<String> {
    let figures = FigureTally::new(&reading.rows, None, false);
    let claims: Vec<AsPrinted> = reading.claims.iter().filter_map(|of| of.as_printed).collect();
    let within = claims.iter().filter(|few| few.is_within).count();
    let runs = claims.first().or(reading.rows.iter().find_map(|row| row.as_printed.as_ref()))?.runs;
    Some(format!(
        "{} of {} figures of tables, and {within} of {} of claims, may be means of {runs} of our runs",
        figures.as_printed,
        figures.of_few_runs,
        claims.len()
    ))
}

/// Table of the price records with oddities.
pub(super) fn price_records(done: &FinishedReproduction) -> TypedTable {
    TypedTable::with_rows(done.odd_records())
        .column(TableColumn::text("file"), |record| record.file.as_str())
        .column(TableColumn::text("what is odd"), |record| record.notes.join("; "))
        .into()
}
