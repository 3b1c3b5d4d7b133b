//! The best reading of a paper beside the default one: from this search, or recorded from an
//! earlier one.

use std::collections::BTreeMap;

use dormouse_estimate::Estimate;
use dormouse_view::{PageBlock, TableCell, TableColumn, TextTone, TypedTable};

use super::super::cause::in_runs;
use super::super::figures::FigureRow;
use super::super::finished::FinishedReproduction;
use super::super::readings::{PaperReading, recommended};
use super::tables;

/// The best known reading: from this search, or recorded in the paper's data file; `None` if no reading is known.
fn known_best(done: &FinishedReproduction) -> Option<&PaperReading> {
    match done.is_search() {
        true => recommended(&done.read),
        false => done.best.as_ref(),
    }
}

/// Lines on the best reading for a terminal; empty if none is known.
pub(super) fn words(done: &FinishedReproduction) -> Vec<String> {
    let source = done.paper.best.as_ref().map(|best| best.command.as_str());
    match known_best(done) {
        Some(best) if done.is_search() => {
            let ours = done.read.iter().find(|reading| reading.factors.is_empty());
            let than = ours.map(|ours| format!(", ours {}", explained(ours))).unwrap_or_default();
            vec![format!("best reading: {}; it explains {}{than}", best.name(), explained(best))]
        }
        None if done.is_search() => vec![
            "no reading explains more than ours by more than its changes cost and chance does"
                .to_owned(),
        ],
        Some(best) => {
            let by = source.map(|command| format!(", found by {command}")).unwrap_or_default();
            let runs = in_runs(&done.trial_set);
            let mut lines = vec![
                format!("under the best reading ({}{by}){runs}:", best.name()),
                format!("  {}", tables::held_in_words(best)),
            ];
            lines.extend(tables::printable_in_words(best).map(|words| format!("  {words}")));
            lines
        }
        None => Vec::new(),
    }
}

/// Blocks of the page on the best reading, with its figures and claims beside those of the default reading.
pub(super) fn blocks(done: &FinishedReproduction) -> Vec<PageBlock> {
    let (words, figures) = (words(done), table(done));
    if figures.is_empty() {
        return words.into_iter().map(PageBlock::text).collect();
    }
    let about = known_best(done).map(|best| format!("What it changes: {}.", best.about()));
    let mut blocks: Vec<PageBlock> = words.into_iter().chain(about).map(PageBlock::text).collect();
    blocks.push(PageBlock::Folded("Figure by figure".to_owned(), vec![PageBlock::Table(figures)]));
    blocks.push(PageBlock::Table(claim_table(done)));
    let against = against_printed(done);
    if !against.is_empty() {
        blocks.push(PageBlock::text(
            "Simple rules against the figures that the paper prints, over the cells that have both. The rules were run here and \
             the paper's figures were measured: what our runs cost less than machines would counts for the rules.",
        ));
        blocks.push(PageBlock::Table(against));
    }
    blocks
}

fn explained(reading: &PaperReading) -> String {
    let of = &reading.explained;
    format!("{} of {} figures and claims (score {})", of.count(), of.total(), reading.score())
}

/// A printed figure with our estimates under the default and the best reading.
struct ComparedReadings<'a> {
    default: &'a FigureRow,
    best: Option<&'a FigureRow>,
    /// Estimates by schedulers that are not in the paper, from the same experiment, shown beside the figure; `None` for a scheduler
    /// that was not run.
    beside: Vec<Option<Estimate>>,
}

/// Table of printed figures: the paper's value, ours under the default and the best reading, and those of schedulers that are not
/// in the paper. It is empty if neither the best reading nor such a scheduler has figures.
pub(super) fn table(done: &FinishedReproduction) -> TypedTable {
    let best = known_best(done);
    let of_best: BTreeMap<_, &FigureRow> = best.map_or_else(BTreeMap::new, |best| {
        best.rows.iter().map(|row| ((&row.case, &row.metric), row)).collect()
    });
    let figures_of_others = |row: &FigureRow| {
        let experiment = row.case.rsplit_once('/').map_or("", |(experiment, _)| experiment);
        let figure =
            |rule: &String| done.results.ours(&format!("{experiment}/{rule}"), &row.metric);
        done.paper.beside.iter().map(figure).collect()
    };
    let default = match done.is_search() {
        true => done.read.iter().find(|reading| reading.factors.is_empty()),
        false => Some(&done.ours),
    };
    let rows = default.iter().flat_map(|reading| &reading.rows);
    let printed = rows.filter(|row| row.paper.is_some() && !row.is_input);
    let rows = printed.map(|default| {
        let best = of_best.get(&(&default.case, &default.metric)).copied();
        ComparedReadings { default, best, beside: figures_of_others(default) }
    });
    let rows: Vec<ComparedReadings<'_>> = rows.collect();
    let has_best = rows.iter().any(|row| row.best.is_some());
    let known = |n: &usize| rows.iter().any(|row| row.beside[*n].is_some());
    let beside: Vec<usize> = (0..done.paper.beside.len()).filter(known).collect();
    if !has_best && beside.is_empty() {
        return TypedTable::default();
    }
    let digits = |row: &FigureRow| done.paper.words_of(&row.metric).1;
    let mut table = TypedTable::with_rows(rows)
        .column(TableColumn::text("case"), |row| row.default.case.clone())
        .column(TableColumn::text("figure"), |row| done.paper.words_of(&row.default.metric).0)
        .column(TableColumn::text("paper"), |row| {
            let digits = digits(row.default);
            row.default.paper.map(|(paper, _)| format!("{paper:.digits$}"))
        })
        .column(TableColumn::text("default reading").named("default"), |row| {
            shown_cell(row.default, digits(row.default))
        });
    if has_best {
        table = table.column(TableColumn::text("best reading").named("best"), |row| {
            row.best.map(|best| shown_cell(best, digits(best)))
        });
    }
    for n in beside {
        let rule = done.paper.beside[n].clone();
        table = table.column(TableColumn::text(rule.clone()).named(rule), move |row| {
            let digits = digits(row.default);
            row.beside[n].map(|ours| estimate(&ours, digits))
        });
    }
    table.into()
}

/// A printed figure of a scheduler in all its cells, with our mean of an additional scheduler (a rule that is not in
/// the paper) in the same experiments.
struct AgainstPrinted<'a> {
    rule: &'a str,
    scheduler: String,
    metric: String,
    /// Printed figure and the rule's mean for each experiment.
    pairs: Vec<(f64, f64)>,
}

/// Table of the schedulers that are not in the paper (rules), each compared with the printed figures of all schedulers;
/// empty if there is no rule, or none was run.
pub(super) fn against_printed(done: &FinishedReproduction) -> TypedTable {
    let of_rules = done.paper.beside.iter().flat_map(|rule| of_rule(done, rule));
    let all: Vec<AgainstPrinted<'_>> = of_rules.collect();
    let digits = |of: &AgainstPrinted| done.paper.words_of(&of.metric).1;
    TypedTable::with_rows(all)
        .column(TableColumn::text("printed of").named("scheduler"), |of| of.scheduler.clone())
        .column(TableColumn::text("figure"), |of| done.paper.words_of(&of.metric).0.to_owned())
        .column(TableColumn::text("rule"), |of| of.rule)
        .column(TableColumn::text("printed, mean").named("printed"), |of| {
            format!("{:.*}", digits(of), of.mean(|(printed, _)| printed))
        })
        .column(TableColumn::text("the rule's, mean").named("ours"), |of| {
            format!("{:.*}", digits(of), of.mean(|(_, ours)| ours))
        })
        .column(TableColumn::percent("the rule's is above by").named("above"), |of| {
            let printed = of.mean(|(printed, _)| printed);
            (printed != 0.0).then(|| of.mean(|(_, ours)| ours) / printed - 1.0)
        })
        .column(TableColumn::text("lower in cells").named("lower"), |of| {
            let lower = of.pairs.iter().filter(|(printed, ours)| ours < printed).count();
            format!("{lower} of {}", of.pairs.len())
        })
        .into()
}

/// Our figures of one scheduler that is not in the paper (a rule), each paired with the printed figures of all
/// schedulers.
fn of_rule<'a>(done: &FinishedReproduction, rule: &'a str) -> Vec<AgainstPrinted<'a>> {
    let mut all: Vec<AgainstPrinted<'a>> = Vec::new();
    for row in done.ours.rows.iter().filter(|row| !row.is_input) {
        let Some((experiment, scheduler)) = row.case.rsplit_once('/') else { continue };
        let ours = done.results.ours(&format!("{experiment}/{rule}"), &row.metric);
        let Some(pair) = row.paper.map(|(printed, _)| printed).zip(ours.map(|of| of.mean)) else {
            continue;
        };
        let same =
            |of: &&mut AgainstPrinted<'_>| of.scheduler == scheduler && of.metric == row.metric;
        match all.iter_mut().find(same) {
            Some(of) => of.pairs.push(pair),
            None => all.push(AgainstPrinted {
                rule,
                scheduler: scheduler.to_owned(),
                metric: row.metric.clone(),
                pairs: vec![pair],
            }),
        }
    }
    all
}

impl AgainstPrinted<'_> {
    #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
    fn mean(&self, of: impl Fn((f64, f64)) -> f64) -> f64 {
        self.pairs.iter().copied().map(of).sum::<f64>() / self.pairs.len() as f64
    }
}

/// Our estimate with its interval, marked if the printed figure could not be the mean of as few of our runs as the paper averaged.
/// If that is unknown, the estimate is marked if it is beyond the tolerance.
fn shown_cell(row: &FigureRow, digits: usize) -> TableCell {
    let is_off = row.as_printed.map_or(row.is_beyond() == Some(true), |few| !few.is_within);
    let tone = if is_off { TextTone::Bad } else { TextTone::Plain };
    TableCell::text(estimate(&row.ours, digits)).toned(tone)
}

fn estimate(ours: &Estimate, digits: usize) -> String {
    let interval = ours.ci95.map(|(low, high)| format!(" [{low:.digits$}, {high:.digits$}]"));
    format!("{:.digits$}{}", ours.mean, interval.unwrap_or_default())
}

/// Table of claims under the default and the best reading.
fn claim_table(done: &FinishedReproduction) -> TypedTable {
    let Some(best) = known_best(done) else { return TypedTable::default() };
    let default = match done.is_search() {
        true => done.read.iter().find(|reading| reading.factors.is_empty()),
        false => Some(&done.ours),
    };
    let pairs = default.iter().flat_map(|reading| &reading.claims).filter_map(|judged| {
        let same = best.claims.iter().find(|other| other.claim.says == judged.claim.says);
        Some((judged, same?))
    });
    let verdict = |judged: &super::super::claims::JudgedClaim| {
        format!("{} {}", judged.verdict.words(), tables::printable(judged.as_printed))
    };
    TypedTable::with_rows(pairs)
        .column(TableColumn::text("the paper says").named("says"), |(judged, _)| {
            judged.claim.says.clone()
        })
        .column(TableColumn::number("paper"), |(judged, _)| judged.claim.figure.first().copied())
        .column(TableColumn::text("default reading").named("default"), |(judged, _)| {
            format!("{}: {}", estimate(&judged.ours, 2), verdict(judged).trim())
        })
        .column(TableColumn::text("best reading").named("best"), |(_, best)| {
            format!("{}: {}", estimate(&best.ours, 2), verdict(best).trim())
        })
        .into()
}
