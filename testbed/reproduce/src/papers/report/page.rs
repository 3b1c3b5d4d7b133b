//! The page `report.html`.

use std::collections::BTreeSet;

use dormouse_estimate::RULE;
use dormouse_view::plot::PanelChart;
use dormouse_view::{HtmlPage, PageAnswer, PageBlock, TableColumn, TypedTable, number};
use maud::{Markup, html};

use super::super::figures::{FigureRow, FigureTally};
use super::super::finished::FinishedReproduction;
use super::super::paper::PaperPlot;
use super::super::tolerance::TOLERANCE_RULE;
use super::super::{FigureSource, opie};
use super::{best, holds, plots, tables};

/// Explanation of the drawings beside claims.
const ABOUT_RANGES: &str = "Beside a claim: a band where it holds, a ring at the paper's figure, and our mean with its 95 % \
    interval. All claims in per cent have the same axis. A claim holds if the whole interval is in the band, fails if none of \
    it is, and is open between.";

/// What a reader of a screen does with the list of claims.
const CLICK_CLAIM: &str = "A click on a claim shows the paper's words, and how it was judged.";

/// Place of the column of verdicts in a page's table of figures: within sight on a phone.
const VERDICT: usize = 2;

/// Explanation of the table of factors.
const TRIED: &str = "Each factor was changed alone, under the same seeds, and all figures and claims \
    judged again; the numbers are those of the claims. A factor explains a difference if all claims that fail \
    without it hold with it, none fails that held, and no more figures are beyond their tolerance; else it is a lead, \
    and no more. A counterfactual shows what something costs, and explains nothing. These experiments have fewer \
    samples than the tables above, and so has their line \"none\".";

/// Explanation of the table of readings.
const READ: &str = "A reading changes how the text is read in every experiment at once. No change, each \
    alone, each two, and the best of these with more were tried under a few seeds. Here are those that \
    explained most, and most of those that the text allows, under all seeds; then what the authors' code \
    does otherwise. A score is the printed figures and the claims that our runs do not contradict, less three for each \
    change.";

/// Explanation of the table of combinations of factors.
const COMBINED: &str = "Every combination of these factors, in every experiment at once, under all seeds. A score is the \
    printed costs and makespans and the claims that our runs do not contradict, less three for each change.";

/// Explanation of the table of presets.
const PRESETS: &str = "What the text says and what the authors' code does, each in every experiment at once \
    under the same seeds. A score is the costs and makespans and the claims that our runs do not contradict, less \
    three for each change.";

/// The page of a reproduction.
pub(super) fn page(done: &FinishedReproduction) -> HtmlPage {
    let mut page =
        HtmlPage::new(format!("{} ({})", done.paper.title, done.what), done.paper.source.clone());
    page.answers = answers(done);
    let claims = holds::marks(done);
    let (together, single): (Vec<_>, Vec<_>) =
        done.paper.plots.iter().partition(|plot| plot.metrics.len() > 1);
    let drawn = |plots: Vec<&PaperPlot>| -> Vec<Markup> {
        plots.into_iter().filter_map(|plot| plots::of_cells(done, plot)).collect()
    };
    let (mut plots, mut by_run) = (drawn(together), drawn(single));
    if plots.is_empty() {
        std::mem::swap(&mut plots, &mut by_run);
    }
    let figures_of_parts = figures_of_parts(done);
    let about_plots = match plots.is_empty() {
        true => "",
        false => {
            "A bar through one of our means is its 95 % interval, where that is longer than the mark."
        }
    };
    page.section(
        "Charts: the paper's points and ours",
        [PageBlock::ClaimStrip(claims.clone())]
            .into_iter()
            .chain(figures_of_parts)
            .chain([PageBlock::Plots(plots), PageBlock::text(about_plots)]),
    );
    let has_range = claims.iter().any(|claim| claim.range.is_some());
    let about = if has_range { ABOUT_RANGES } else { "" };
    page.section(
        "Claims: the paper's words, and ours",
        [
            PageBlock::text(about),
            PageBlock::Hint(if claims.is_empty() { "" } else { CLICK_CLAIM }.to_owned()),
            PageBlock::Claims(claims),
        ],
    );
    page.section("Figures: printed and ours", figures(done));
    page.detail("Charts of single runs", [PageBlock::Plots(by_run)]);
    page.detail("What was made, and how", done.paper.about.iter().map(PageBlock::text));
    let missing =
        done.without.iter().map(|(_, needs)| PageBlock::text(format!("Left out: {needs}.")));
    page.section("What is not here", missing);
    if done.parts().any(|part| part.own == Some(FigureSource::HostTables)) {
        page.detail("The host tables", opie::blocks());
    }
    page.detail(
        "How each claim was judged",
        [
            PageBlock::text(RULE),
            PageBlock::text(TOLERANCE_RULE),
            PageBlock::Table(tables::claims(done)),
        ]
        .into_iter()
        .chain(tables::former_in_words(&done.ours).map(PageBlock::text)),
    );
    page.detail("Under the best reading, and beside simple rules", best::blocks(done));
    page.detail("Text and code beside the paper", presets(done));
    page.detail("What could explain a difference", explained(done));
    page.detail("Live runs", live(done));
    let every = tables::figures(done).with_column_at("verdict", VERDICT);
    page.detail("Every figure, with its interval", [PageBlock::Table(every)]);
    page.detail("The records of prices", price_records(done));
    page.detail("A representative run of each cell", runs(done));
    page.printed_detail("Reproduce", [
        PageBlock::Command(done.command.clone()),
        PageBlock::text(made_by(done)),
        PageBlock::text(format!("The last command into this folder took {}.", done.origin.took())),
        PageBlock::text(
            "Each cell by itself: the table.csv of this command has its figures to the last digit, and \
             dormouse run with the same settings and one of the seeds makes a single run of it.",
        ),
        PageBlock::Folded("The command of each cell".to_owned(), vec![PageBlock::Table(commands(done))]),
    ]);
    page
}

/// Sentence on the program, host, seeds and input files.
fn made_by(done: &FinishedReproduction) -> String {
    let (first, last) = done.seeds;
    let inputs = done.inputs.iter().map(|of| format!("{} (SHA-256 {})", of.file, of.sha256));
    let inputs = match inputs.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "no file".to_owned(),
        some => some,
    };
    let fewer = done.under_fewer_seeds().into_iter();
    let fewer: String = fewer.map(|(part, seeds)| format!(" ({part}: {seeds} seeds)")).collect();
    format!("Made by {}, under seeds {first} to {last}{fewer}, of {inputs}.", done.origin.made_by())
}

/// The answers at the beginning: which claims hold, how near the printed figures are, and what was made.
fn answers(done: &FinishedReproduction) -> Vec<PageAnswer> {
    let mut answers = Vec::from_iter(holds::answer(done));
    let tally = FigureTally::new(&done.ours.rows, None, false);
    if tally.all() > 0 {
        let tolerances: BTreeSet<_> = done
            .ours
            .rows
            .iter()
            .filter(|row| row.verdict.is_some() && !row.is_input)
            .filter_map(|row| row.paper.map(|(_, t)| tables::tolerated(t)))
            .collect();
        let tolerances = tolerances.into_iter().collect::<Vec<_>>().join(" or ");
        let near = format!(
            "Of {} printed figures, each with a tolerance of {tolerances}, to which our 95 % interval is compared:",
            tally.all()
        );
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let mut answer = PageAnswer::new("How near are our figures?", near)
            .count(
                count(tally.within),
                ["is near: the whole interval is within", "are near: the whole interval is within"],
            )
            .count(
                count(tally.beyond),
                ["is far: the whole interval is outside", "are far: the whole interval is outside"],
            )
            .count(
                count(tally.open),
                ["is open: more samples may decide", "are open: more samples may decide"],
            );
        if let Some(words) = tables::printable_in_words(&done.ours) {
            answer = answer.item("To the last digit:", words);
        }
        answers.push(answer);
    }
    let (first, last) = done.seeds;
    let samples = match done.parts().any(|part| part.own.is_some()) {
        true => "samples, of all cells",
        false => "runs, in virtual time",
    };
    let made = PageAnswer::new("What was run?", "")
        .item(done.cells.len().to_string(), format!("cells, {}", done.paper.samples))
        .item(number::grouped(&done.results.count().to_string()), samples)
        .item(format!("{first} to {last}"), "are the seeds");
    answers.push(made);
    answers
}

/// The figures of the paper's parts: each a title and its panels.
fn figures_of_parts(done: &FinishedReproduction) -> Vec<PageBlock> {
    let parts = done.parts().filter(|part| !part.lines.is_empty());
    let charts = parts.map(|part| plots::over_load(done, part));
    let is_there = |chart: &PanelChart| {
        chart.panels.iter().flat_map(|panel| &panel.series).any(|s| !s.points.is_empty())
    };
    let blocks = |chart: PanelChart| {
        [PageBlock::text(chart.title.clone()), PageBlock::Plots(chart.to_markup())]
    };
    charts.filter(is_there).flat_map(blocks).collect()
}

fn figures(done: &FinishedReproduction) -> Vec<PageBlock> {
    let printed = tables::printed(done).with_column_at("verdict", VERDICT);
    if printed.is_empty() {
        return Vec::new();
    }
    let rows = done.ours.rows.iter().filter(|row| row.verdict.is_some());
    let mut seen = BTreeSet::new();
    let tally =
        |row: &FigureRow| FigureTally::new(&done.ours.rows, Some(&row.metric), row.is_input);
    let table = TypedTable::with_rows(rows.filter(|row| seen.insert((&row.metric, row.is_input))))
        .column(TableColumn::text("figure"), |row| {
            let name = done.paper.words_of(&row.metric).0;
            if row.is_input { format!("{name} (input)") } else { name.to_owned() }
        })
        .column(TableColumn::count("within"), |row| tally(row).within)
        .column(TableColumn::count("beyond"), |row| tally(row).beyond)
        .column(TableColumn::count("open"), |row| tally(row).open)
        .column(TableColumn::count("printed"), |row| tally(row).all())
        .column(TableColumn::text("as few runs").named("as_printed"), |row| {
            let FigureTally { as_printed, of_few_runs, .. } = tally(row);
            (of_few_runs > 0).then(|| format!("{as_printed} of {of_few_runs} possible"))
        })
        .column(TableColumn::text("tolerance"), |row| row.paper.map(|(_, t)| tables::tolerated(t)));
    let about = "How many of our figures are within or beyond the tolerance of the printed ones with their whole 95 % \
                 interval. Each has the unit that the paper prints it in.";
    let inputs = "Inputs go into a run and do not come out of it: they are judged apart and once for each experiment.";
    let has_inputs = done.ours.rows.iter().any(|row| row.is_input && row.verdict.is_some());
    let inputs = PageBlock::text(if has_inputs { inputs } else { "" });
    let mut blocks = vec![PageBlock::text(about), inputs, PageBlock::Table(table.into())];
    let reasons: Vec<_> = done.paper.reasons().into_iter().map(PageBlock::text).collect();
    blocks.push(PageBlock::Folded("Why these tolerances".to_owned(), reasons));
    blocks.push(PageBlock::Folded("Figure by figure".to_owned(), vec![PageBlock::Table(printed)]));
    blocks
}

fn explained(done: &FinishedReproduction) -> Vec<PageBlock> {
    if done.is_search() {
        let about = if done.is_combination() { COMBINED } else { READ };
        return read(done, about, "Every figure and claim under each reading");
    }
    let factors = tables::factors(done);
    let tried = if factors.is_empty() { "No factors were tried." } else { TRIED };
    vec![PageBlock::text(tried), PageBlock::Table(factors)]
}

fn presets(done: &FinishedReproduction) -> Vec<PageBlock> {
    match done.is_search() || done.read.is_empty() {
        true => Vec::new(),
        false => read(done, PRESETS, "Every figure and claim beside the paper's"),
    }
}

fn read(done: &FinishedReproduction, about: &str, each: &str) -> Vec<PageBlock> {
    let all = vec![PageBlock::Table(tables::under_readings(done))];
    let all = PageBlock::Folded(each.to_owned(), all);
    vec![PageBlock::text(about), PageBlock::Table(tables::readings(done)), all]
}

fn live(done: &FinishedReproduction) -> Vec<PageBlock> {
    let about = "Real processes under a dilated clock, beside virtual runs of the same cell. The figures of both are made by the same \
                 program from their logs; the range is that of the virtual runs under all seeds. Diamonds in the plots.";
    let table = tables::live(done);
    if table.is_empty() {
        Vec::new()
    } else {
        vec![PageBlock::text(about), PageBlock::Table(table)]
    }
}

fn runs(done: &FinishedReproduction) -> Vec<PageBlock> {
    if done.charts.is_empty() {
        return Vec::new();
    }
    let chart = |(name, file): &(String, String)| {
        let image = html! {
            img src=(file) alt={ "Gantt chart of " (name) } loading="lazy" style="width:100%";
        };
        PageBlock::Folded(name.clone(), vec![PageBlock::Plots(vec![image])])
    };
    let about = PageBlock::text("The run whose makespan is the median of its cell.");
    std::iter::once(about).chain(done.charts.iter().map(chart)).collect()
}

fn price_records(done: &FinishedReproduction) -> Vec<PageBlock> {
    if done.price_records.is_empty() {
        return Vec::new();
    }
    let about = format!(
        "Of {} records {} are odd in some way: rows that are not in order or there twice, times of several \
         zones, long times without a price. Below it is said what was done about it.",
        done.price_records.len(),
        done.odd_records().count()
    );
    let table = PageBlock::Table(tables::price_records(done));
    let all = PageBlock::Folded("What is odd about each".to_owned(), vec![table]);
    vec![PageBlock::text(about), all]
}

fn commands(done: &FinishedReproduction) -> TypedTable {
    TypedTable::with_rows(&done.cells)
        .column(TableColumn::text("cell"), |(case, _)| case.clone())
        .column(TableColumn::text("command"), |(_, command)| command.clone())
        .into()
}
