//! The tables of a reproduction.

use std::collections::BTreeSet;

use dormouse_estimate::Estimate;
use dormouse_view::{Cell, Column, Table, Tone};

use super::super::claims::{Judged, Verdict};
use super::super::figures::{Row, beyond};
use super::super::paper::{Ground, Over, Tolerance};
use super::super::readings::Reading;
use super::super::reproduction::Finished;

/// `table.csv`: every figure and claim. The schema of all papers; columns may be added at its end.
pub(super) fn all(done: &Finished) -> Table {
    let mut table = Table::new([
        Column::text("case"),
        Column::text("metric"),
        Column::number("paper").file_digits(6),
        Column::mean("ours").file_digits(6),
        Column::text("part"),
        Column::text("tolerance"),
        Column::text("verdict"),
    ]);
    for row in &done.rows {
        let (paper, tolerance) = row.paper.unzip();
        let verdict = row.is_beyond().map(|beyond| if beyond { "beyond" } else { "within" });
        let verdict = if row.ours.is_saturated { Some("saturated") } else { verdict };
        table.push([
            Cell::text(&*row.case),
            Cell::text(&*row.metric),
            Cell::maybe(paper, Cell::number),
            mean(row.ours),
            Cell::text(&*row.part),
            Cell::maybe(tolerance, |t| Cell::text(tolerated(t))),
            Cell::maybe(verdict, Cell::text),
        ]);
    }
    for Judged { claim, ours, verdict, .. } in &done.claims {
        let relative = claim.relative.filter(|_| !claim.figure.is_empty());
        table.push([
            Cell::text(&*claim.case),
            Cell::text(&*claim.name),
            Cell::maybe(said(claim_of(done, &claim.says)), Cell::number),
            mean(*ours),
            Cell::text("claim"),
            Cell::maybe(relative, |part| Cell::text(tolerated(Tolerance::Relative(part)))),
            Cell::text(verdict.words()),
        ]);
    }
    table
}

fn claim_of<'a>(done: &'a Finished, says: &str) -> Option<&'a Judged> {
    done.claims.iter().find(|judged| judged.claim.says == says)
}

/// The paper's figure; of a claim about several cells, all of them.
fn said(judged: Option<&Judged>) -> Option<f64> {
    let Judged { claim, ours, verdict, .. } = judged?;
    #[expect(clippy::cast_precision_loss, reason = "a count of cells")]
    let all = (claim.over == Over::Each && *verdict != Verdict::Silent).then_some(ours.n as f64);
    claim.figure.first().copied().or(all)
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
    let mut table = Table::new(heads());
    table.extend(done.rows.iter().filter(|row| row.paper.is_some()).map(|row| words(done, row)));
    table
}

/// Every figure.
pub(super) fn figures(done: &Finished) -> Table {
    let mut table = Table::new(heads());
    table.extend(done.rows.iter().map(|row| words(done, row)));
    table
}

fn heads() -> [Column; 6] {
    let number = |heading: &str, name: &str| Column::text(heading).named(name);
    [
        Column::text("case"),
        Column::text("figure"),
        number("paper", "paper"),
        number("ours", "ours"),
        number("95 % interval", "interval"),
        Column::percent("difference"),
    ]
}

fn words(done: &Finished, row: &Row) -> Vec<Cell> {
    let (heading, d) = done.paper.words_of(&row.metric);
    let ours = row.ours;
    let interval = match ours.ci95 {
        None if row.ours.is_saturated => "none: saturated".to_owned(),
        None => String::new(),
        Some((low, high)) => format!("{low:.d$} to {high:.d$}"),
    };
    // A difference of percentages says nothing as a ratio.
    let is_part = !matches!(row.paper, Some((_, Tolerance::Points(_))));
    let tone = if row.is_beyond() == Some(true) { Tone::Bad } else { Tone::Plain };
    vec![
        Cell::text(&*row.case),
        Cell::text(heading),
        Cell::maybe(row.paper, |(paper, _)| Cell::text(format!("{paper:.d$}"))),
        Cell::text(format!("{:.d$}", ours.mean)),
        Cell::text(interval),
        Cell::maybe(row.difference().filter(|_| is_part), Cell::number).toned(tone),
    ]
}

/// The claims, numbered.
pub(super) fn claims(done: &Finished) -> Table {
    let mut table = Table::new([
        Column::count("no."),
        Column::text("verdict"),
        Column::text("the paper says").named("says"),
        Column::number("paper"),
        Column::mean("ours"),
        Column::text("how it was judged").named("how"),
    ]);
    for (n, judged) in (1_u64..).zip(&done.claims) {
        table.push([
            Cell::count(n),
            Cell::text(judged.verdict.words()).toned(tone(judged.verdict)),
            Cell::text(&*judged.claim.says),
            Cell::maybe(said(Some(judged)), Cell::number),
            mean(judged.ours),
            Cell::text(&*judged.how),
        ]);
    }
    table
}

const fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Holds => Tone::Good,
        Verdict::Fails => Tone::Bad,
        Verdict::Open => Tone::Plain,
        Verdict::Silent => Tone::Dim,
    }
}

/// Every factor over all figures and claims.
pub(super) fn factors(done: &Finished) -> Table {
    let Some(without) = done.trials.first() else { return Table::default() };
    let metrics: BTreeSet<&String> = without.rows.iter().map(|row| &row.metric).collect();
    let metrics: Vec<_> =
        metrics.into_iter().filter(|m| beyond(&without.rows, Some(m)).1 > 0).collect();
    let off = |metric: &&String| {
        Column::text(format!("{}, off", done.paper.words_of(metric).0))
            .named(format!("{metric}_off"))
    };
    let columns = [Column::text("factor"), Column::text("what it changes").named("about")];
    let columns = columns.into_iter().chain(metrics.iter().map(off)).chain([
        Column::text("figures off"),
        Column::text("claims that hold").named("claims_hold"),
        Column::text("mends"),
        Column::text("breaks"),
        Column::text("so it is").named("word"),
    ]);
    let mut table = Table::new(columns);
    let number = |says: &&str| done.claims.iter().position(|c| c.claim.says == *says);
    let numbers = |all: Vec<&str>| {
        let numbers = all.iter().filter_map(number).map(|n| (n + 1).to_string());
        numbers.collect::<Vec<_>>().join(", ")
    };
    for trial in &done.trials {
        let counts = |metric: Option<&str>| {
            let (off, of) = beyond(&trial.rows, metric);
            if of == 0 { String::new() } else { format!("{off} of {of}") }
        };
        let head = [trial.name(), trial.about()].into_iter();
        let row = head.chain(metrics.iter().map(|m| counts(Some(m)))).chain([
            counts(None),
            format!("{} of {}", trial.count(Verdict::Holds), trial.judged()),
            numbers(trial.mends(without)),
            numbers(trial.breaks(without)),
            trial.word(without).to_owned(),
        ]);
        table.push(row.map(Cell::text));
    }
    table
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
    let names = [("reading", "reading"), ("what it changes", "about")];
    let figures = [
        ("on the ground of", "ground"),
        ("near the paper's", "within"),
        ("claims that hold", "claims_hold"),
        ("score", "score"),
        ("all figures off", "figures_off"),
    ];
    let column = |(heading, name): (&str, &str)| Column::text(heading).named(name);
    let mut table = Table::new(names.into_iter().chain(figures).map(column));
    for reading in &done.read {
        let of = |(part, all): (usize, usize)| format!("{part} of {all}");
        let (name, about) = named(done, reading);
        let row = [
            name,
            about,
            reading.ground().map_or("", Ground::words).to_owned(),
            of(reading.within),
            of((reading.count(Verdict::Holds), reading.judged())),
            reading.score().to_string(),
            of(beyond(&reading.rows, None)),
        ];
        table.push(row.map(Cell::text));
    }
    table
}

/// Every printed figure, then every claim, under each reading.
pub(super) fn under_readings(done: &Finished) -> Table {
    let Some(ours) = done.read.first() else { return Table::default() };
    let heads = ["case", "figure", "paper"].into_iter().map(Column::text);
    let mut table = Table::new(
        heads.chain(done.read.iter().map(|reading| Column::text(named(done, reading).0))),
    );
    for row in ours.rows.iter().filter(|row| row.paper.is_some()) {
        let (heading, d) = done.paper.words_of(&row.metric);
        let under = |reading: &Reading| {
            let same = |r: &&Row| r.case == row.case && r.metric == row.metric;
            let row = reading.rows.iter().find(same);
            let off = |row: &Row| match row.is_beyond() {
                Some(true) => Tone::Bad,
                _ => Tone::Plain,
            };
            let mean = |row: &Row| format!("{:.d$}", row.ours.mean);
            Cell::maybe(row, |row| Cell::text(mean(row)).toned(off(row)))
        };
        let paper = Cell::maybe(row.paper, |(paper, _)| Cell::text(format!("{paper:.d$}")));
        let head = [Cell::text(&*row.case), Cell::text(heading), paper];
        table.push(head.into_iter().chain(done.read.iter().map(under)));
    }
    for judged in &ours.claims {
        let says = &judged.claim.says;
        let under = |reading: &Reading| {
            let same = reading.claims.iter().find(|judged| judged.claim.says == *says);
            Cell::maybe(same, |judged| {
                let mean = judged.ours.mean;
                let cell = Cell::text(format!("{mean:.2}, {}", judged.verdict.words()));
                cell.toned(tone(judged.verdict))
            })
        };
        let paper = Cell::maybe(said(Some(judged)), |paper| Cell::text(format!("{paper:.2}")));
        let head = [Cell::text(&*judged.claim.case), Cell::text(&**says), paper];
        table.push(head.into_iter().chain(done.read.iter().map(under)));
    }
    table
}

/// The live runs against the virtual ones.
pub(super) fn live(done: &Finished) -> Table {
    let mut table = Table::new([
        Column::text("case"),
        Column::count("seed"),
        Column::text("emulation"),
        Column::seconds("makespan"),
        Column::dollars("cost"),
        Column::text("virtual, same seed").named("same_seed"),
        Column::text("virtual, all seeds").named("all_seeds"),
    ]);
    for (run, against) in &done.live {
        let off = |x: f64, than: f64| format!("{:+.1} %", (x / than - 1.0) * 100.0);
        let none = || if against.is_some() { "none" } else { "no such cell here" }.to_owned();
        let same = against.as_ref().and_then(|a| a.same).map_or_else(none, |(makespan, cost)| {
            let live = run.makespan_s.map_or(String::new(), |s| format!(" ({})", off(s, makespan)));
            format!("{makespan:.0} s{live}, ${cost:.4} ({})", off(run.cost_usd, cost))
        });
        let all = against.as_ref().map_or(String::new(), |a| {
            let (m, c) = (a.makespan.range, a.cost.range);
            format!("{:.0} to {:.0} s, ${:.4} to ${:.4}", m.0, m.1, c.0, c.1)
        });
        table.push([
            Cell::text(run.case()),
            Cell::count(run.seed),
            Cell::text(run.fidelity()),
            Cell::maybe(run.makespan_s, Cell::number),
            Cell::number(run.cost_usd),
            Cell::text(same),
            Cell::text(all),
        ]);
    }
    table
}

/// How many figures are beyond their tolerance and how many claims hold, in a line.
pub(super) fn summary(done: &Finished) -> String {
    let (off, of) = beyond(&done.rows, None);
    let count = |verdict| done.claims.iter().filter(|c| c.verdict == verdict).count();
    let judged = done.claims.len() - count(Verdict::Silent);
    let figures = if of == 0 {
        String::new()
    } else {
        format!("{off} of {of} figures are beyond their tolerance; ")
    };
    format!(
        "  {figures}of {judged} claims {} hold, {} fail, {} are open",
        count(Verdict::Holds),
        count(Verdict::Fails),
        count(Verdict::Open)
    )
}
