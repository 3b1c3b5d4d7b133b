//! The page that shows the figures of records over their commits.

use std::fs;
use std::path::{Path, PathBuf};

use dormouse_view::plot::{
    AxisScale, ChartPanel, PanelChart, PlotAxis, PointLook, PointSeries, SeriesPoint,
};
use dormouse_view::{FigureCard, HtmlPage, PageBlock, TableColumn, TypedTable};

use crate::figure::Figure;
use crate::record::{Record, RecordError};
use crate::summary::{amount, range, ratio};

/// File name of the page.
pub const PAGE: &str = "index.html";

/// Reads the records of a folder and writes a page that shows them into the same folder; returns the page's path.
///
/// # Errors
///
/// A record can't be read, or the page can't be written.
pub fn write_history(folder: &Path) -> Result<PathBuf, RecordError> {
    let page = history(&Record::read_all(folder)?);
    let path = folder.join(PAGE);
    fs::write(&path, page).map_err(|error| RecordError::new(&path, error))?;
    Ok(path)
}

/// The HTML page that shows these records, which are ordered by commit, the oldest first.
#[must_use]
pub fn history(records: &[Record]) -> String {
    let mut page = HtmlPage::new(
        "Benchmarks over commits",
        "How many times worse each figure is than a peer or a floor that was measured in the same run, by turns: \
         below 1 it is better. Times of different hosts can't be compared; ratios can, more or less.",
    );
    let Some(newest) = records.last() else {
        page.section(
            "No record",
            [PageBlock::text(
                "No commit has been measured: scripts/bench --out FILE makes a record.",
            )],
        );
        return page.to_html();
    };
    page.cards = cards(newest, records.len());
    if !newest.findings.is_empty() {
        let findings = newest.findings.iter().map(PageBlock::text);
        page.section(format!("Findings at {}", newest.short_commit()), findings);
    }
    for (benchmark, names) in by_benchmark(records) {
        let blocks = [
            PageBlock::Plots(chart(records, &names).to_markup()),
            PageBlock::Table(figures(newest, &names)),
        ];
        page.section(benchmark, blocks);
    }
    page.section("Commits", [PageBlock::Table(commits(records))]);
    page.to_html()
}

fn cards(newest: &Record, records: usize) -> Vec<FigureCard> {
    let worse = newest.figures.iter().filter(|figure| figure.is_worse()).count();
    let host = &newest.host;
    vec![
        FigureCard::new("newest commit", newest.short_commit(), newest.committed.clone()),
        FigureCard::new(
            "figures",
            newest.figures.len().to_string(),
            format!("of {records} measured commits the newest"),
        ),
        FigureCard::new(
            "worse than allowed",
            worse.to_string(),
            "a ratio past its bound and tolerance",
        )
        .verdict(worse == 0),
        FigureCard::new(
            "not run",
            newest.not_run.len().to_string(),
            "benchmarks without which there is no evidence",
        )
        .verdict(newest.not_run.is_empty()),
        FigureCard::new("host", format!("{} cores", host.cores), format!("Linux {}", host.kernel)),
    ]
}

/// The names of all figures in the records, grouped by benchmark; the order is that of the newest record that has
/// each.
fn by_benchmark(records: &[Record]) -> Vec<(&str, Vec<&str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for figure in records.iter().rev().flat_map(|record| &record.figures) {
        let name = figure.name.as_str();
        match groups.iter_mut().find(|(benchmark, _)| *benchmark == figure.benchmark) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => groups.push((&figure.benchmark, vec![name])),
        }
    }
    groups
}

/// The ratios of these figures over the commits, numbered from 1.
fn chart(records: &[Record], names: &[&str]) -> PanelChart {
    let series = names.iter().enumerate().map(|(n, name)| {
        let points = (1_u32..).zip(records).filter_map(|(number, record)| {
            let figure = figure_of(record, name)?;
            let at = SeriesPoint::new(f64::from(number), figure.ratio.median);
            Some(SeriesPoint { name: format!("{name} at {}", record.short_commit()), ..at })
        });
        PointSeries {
            name: (*name).to_owned(),
            colour: n,
            look: PointLook::Line,
            points: points.collect(),
        }
    });
    let panel = ChartPanel {
        x: PlotAxis::new("commit, oldest first", AxisScale::Linear),
        y: PlotAxis::new("times the peer", AxisScale::Logarithmic),
        series: series.collect(),
        ..ChartPanel::default()
    };
    PanelChart { title: String::new(), panels: vec![panel] }
}

fn figure_of<'a>(record: &'a Record, name: &str) -> Option<&'a Figure> {
    record.figures.iter().find(|figure| figure.name == name)
}

/// A table of those figures of the newest record that have these names.
fn figures(newest: &Record, names: &[&str]) -> TypedTable {
    let shown = names.iter().filter_map(|name| figure_of(newest, name));
    TypedTable::with_rows(shown)
        .column(TableColumn::text("figure"), |figure| figure.name.clone())
        .column(TableColumn::text("what it is"), |figure| figure.what.clone())
        .column(TableColumn::text("value"), |figure| amount(figure.value.median, &figure.unit))
        .column(TableColumn::text("compared with"), |figure| figure.peer.clone())
        .column(TableColumn::text("its value"), |figure| {
            amount(figure.peer_value.median, &figure.unit)
        })
        .column(TableColumn::text("ratio"), ratio)
        .column(TableColumn::text("least to greatest"), |figure| range(figure))
        .column(TableColumn::text("bound"), |figure| figure.bound.to_string())
        .column(TableColumn::count("samples"), |figure| figure.repetitions)
        .into()
}

fn commits(records: &[Record]) -> TypedTable {
    TypedTable::with_rows(records.iter().enumerate())
        .column(TableColumn::count("number"), |(n, _)| n + 1)
        .column(TableColumn::text("commit"), |(_, record)| record.short_commit())
        .column(TableColumn::text("committed"), |(_, record)| record.committed.clone())
        .column(TableColumn::text("measured"), |(_, record)| record.date.clone())
        .column(TableColumn::text("profile"), |(_, record)| record.profile.clone())
        .column(TableColumn::text("host"), |(_, record)| {
            let host = &record.host;
            format!("{} × {}, Linux {}", host.cores, host.processor, host.kernel)
        })
        .column(TableColumn::count("figures"), |(_, record)| record.figures.len())
        .column(TableColumn::count("findings"), |(_, record)| record.findings.len())
        .into()
}

#[cfg(test)]
mod tests {
    use dormouse_samples::Better::Less;

    use super::*;
    use crate::figure::tests::{bound, line};
    use crate::record::NotRun;

    /// A record of figures with these names and times; the peer takes 10 ms in each.
    fn record(commit: &str, committed: &str, figures: &[(&str, f64)]) -> Record {
        let figures = figures.iter().filter_map(|(name, ms)| {
            let (benchmark, _) = name.split_once('-')?;
            Figure::new(benchmark, &line(name, Less, &[*ms], &[10.0]), &bound(name, 1.1), 0.2)
        });
        Record {
            commit: commit.to_owned(),
            committed: committed.to_owned(),
            figures: figures.collect(),
            ..Record::default()
        }
    }

    #[test]
    fn figures_are_shown_by_benchmark_over_the_commits() {
        let records = [
            record("aaaaaaaaaa", "2026-01-01", &[("criu-dump", 11.0), ("criu-old", 12.0)]),
            record("bbbbbbbbbb", "2026-01-02", &[("ils-plan", 5.0), ("criu-dump", 30.0)]),
        ];
        let groups = by_benchmark(&records);
        assert_eq!(groups, [("ils", vec!["ils-plan"]), ("criu", vec!["criu-dump", "criu-old"])]);
        let page = history(&records);
        for shown in [
            "criu-dump at aaaaaaaa: 1.1",
            "criu-dump at bbbbbbbb: 3",
            "ils-plan at bbbbbbbb: 0.5",
            "criu-old at aaaaaaaa: 1.2",
            "<td>30 ms</td>",
        ] {
            assert!(page.contains(shown), "{shown}: {page}");
        }
        let worse = page.split("worse than allowed").nth(1).unwrap_or_default();
        assert!(
            worse.starts_with("</span> <b>1</b>") || worse.starts_with("</span><b>1</b>"),
            "{worse}"
        );
        assert_eq!(page, history(&records), "the same records make the same page");
    }

    #[test]
    fn what_was_not_measured_is_seen() {
        let mut newest = record("cccccccccc", "2026-01-03", &[("criu-dump", 9.0)]);
        newest.not_run.push(NotRun { benchmark: "spawn".into(), why: "not run: no root".into() });
        newest.findings.push("spawn: not run: no root".into());
        let page = history(&[newest]);
        assert!(page.contains("Findings at cccccccc") && page.contains("spawn: not run: no root"));
        assert!(history(&[]).contains("No commit has been measured"));
    }

    /// The committed page shows the committed records: whoever adds a record runs scripts/bench --page docs/bench, or this with
    /// SNAPSHOTS=overwrite.
    #[test]
    fn the_committed_page_shows_the_committed_records() -> Result<(), Box<dyn std::error::Error>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench");
        let page = history(&Record::read_all(&folder)?);
        if std::env::var("SNAPSHOTS").is_ok_and(|what| what == "overwrite") {
            fs::write(folder.join(PAGE), &page)?;
        }
        assert!(
            fs::read_to_string(folder.join(PAGE))? == page,
            "docs/bench/{PAGE} is not of the records beside it: scripts/bench --page docs/bench"
        );
        Ok(())
    }
}
