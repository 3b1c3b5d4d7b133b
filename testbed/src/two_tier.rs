//! Results of measuring two VMs that share one processor of this host, as files and for people: the figures of
//! [`dormouse_host::two_tier`], written by `dormouse reproduce measy/two-tier`.

use std::path::Path;

use dormouse_host::two_tier::{
    LOSS, LOST, Metric, PaperComparison, ProcessCase, SHARE, TwoTierError, TwoTierResults,
    UTILISATION, utilisation,
};
use dormouse_view::plot::{
    AxisScale, ChartPanel, PanelChart, PlotAxis, PointLook, PointSeries, SeriesPoint,
};
use dormouse_view::{
    FigureCard, HtmlPage, PageBlock, TableCell, TableColumn, Terminal, TypedTable,
};

/// Fraction of the processors' time from which on other programs disturb the measurement: as much as the largest loss
/// that the paper found.
const DISTURBED: f64 = 0.04;

/// Name of the file with the measured distributions, which the model of virtual runs reads.
const SHARING: &str = "two-tier.json";

/// Writes `table.csv`, `plot.svg`, `report.html` and `two-tier.json` into an existing folder.
pub(crate) fn write(
    measured: &TwoTierResults,
    command: &str,
    folder: &Path,
) -> Result<(), TwoTierError> {
    for (name, text) in [
        ("table.csv", figures(&measured.rows(), false).to_csv()),
        ("report.html", page(measured, command)),
        ("plot.svg", chart(measured).to_svg()),
        (SHARING, measured.to_json(command)),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(TwoTierError::io("write", &path))?;
    }
    Ok(())
}

/// A table of figures; files give the number of samples together with the mean, the text for people in a column of its
/// own.
fn figures<'a>(
    rows: impl IntoIterator<Item = &'a PaperComparison>,
    is_for_people: bool,
) -> TypedTable {
    let table = TypedTable::with_rows(rows)
        .column(TableColumn::text("case"), |row| &*row.case)
        .column(TableColumn::text("figure").named("metric"), |row| row.metric)
        .column(TableColumn::number("paper").digits(1), |row| {
            TableCell::maybe(row.paper, TableCell::number)
        })
        .column(
            TableColumn::mean("ours [95 % CI of the mean]").named("ours").file_digits(4),
            |PaperComparison { ours, .. }| TableCell::mean(ours.mean, ours.ci95, ours.n),
        );
    if is_for_people {
        table.column(TableColumn::count("n"), |row| TableCell::count(row.ours.n))
    } else {
        table
    }
    .into()
}

/// The figures of two-tier sharing as a table in text.
pub(crate) fn table(measured: &TwoTierResults, terminal: Terminal) -> String {
    let table = figures(&measured.rows(), true).to_text(terminal);
    format!("{table}\n  {}", quiet(measured))
}

/// A sentence on how much other programs on the host disturbed the measurement.
fn quiet(measured: &TwoTierResults) -> String {
    let remark = if measured.elsewhere() > DISTURBED {
        ": too much to trust these figures; measure again on a quiet host"
    } else {
        ""
    };
    let again = match measured.again {
        0 => String::new(),
        n => format!("; {n} disturbed measurements were made again"),
    };
    let percent = 100.0 * measured.elsewhere();
    format!("{percent:.1} % of the processors' time went to others meanwhile{again}{remark}")
}

fn chart(measured: &TwoTierResults) -> PanelChart {
    let line = |name: &str, colour: usize, case: ProcessCase, of: Metric| {
        let at = |usage: u32| {
            let y = measured.at(case, usage, of)?;
            Some(SeriesPoint { interval: y.ci95, ..SeriesPoint::new(f64::from(usage), y.mean) })
        };
        let points = measured.usages(case).into_iter().filter_map(at).collect();
        PointSeries { name: name.to_owned(), colour, look: PointLook::Line, points }
    };
    let paper = |name: &str, colour: usize, y: f64| PointSeries {
        name: name.to_owned(),
        colour,
        look: PointLook::Line,
        points: [40.0, 100.0].map(|x| SeriesPoint::new(x, y)).into(),
    };
    let panel = |title: &str, y: &str, series: Vec<PointSeries>| ChartPanel {
        title: title.to_owned(),
        x: PlotAxis::new("foreground CPU usage, %", AxisScale::Linear),
        y: PlotAxis::new(y, AxisScale::FromZero),
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        ..ChartPanel::default()
    };
    let background = |case: ProcessCase, processes: &str| {
        let (least, most) = utilisation(case);
        panel(
            &format!("Background, {processes}"),
            "part of the idle cycles, %",
            vec![
                line("utilisation", 0, case, UTILISATION),
                line("CPU share", 1, case, SHARE),
                paper("the paper's least", 2, least),
                paper("the paper's most", 3, most),
            ],
        )
    };
    let loss = panel(
        "Foreground loss",
        "loss of speed, %",
        vec![
            line("one process", 0, ProcessCase::Single, LOST),
            line("two processes", 1, ProcessCase::Several, LOST),
            paper("the paper's least", 2, LOSS.0),
            paper("the paper's most", 3, LOSS.1),
        ],
    );
    let backgrounds = [
        background(ProcessCase::Single, "one process"),
        background(ProcessCase::Several, "two processes"),
    ];
    PanelChart {
        title: "Two VMs on one processor".to_owned(),
        panels: [loss].into_iter().chain(backgrounds).collect(),
    }
}

fn page(measured: &TwoTierResults, command: &str) -> String {
    let rows = measured.rows();
    let (points, summary): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.case.contains('/'));
    let pairs = measured.all.iter().map(|m| m.seed).max().unwrap_or(0);
    let title = "Two VMs on one processor, ours beside the MEASY paper's";
    let mut page = HtmlPage::new(title, quiet(measured));
    page.cards = vec![
        FigureCard::new("Measurements", measured.all.len().to_string(), "each of about 2 s"),
        FigureCard::new("Pairs of jobs", pairs.to_string(), "in each case"),
        FigureCard::new(
            "Other processes",
            format!("{:.1} %", 100.0 * measured.elsewhere()),
            "of the processors' time",
        ),
    ];
    let about = DEFINITIONS.map(PageBlock::text).into_iter();
    let table = PageBlock::Table(figures(summary, true));
    page.section("Our figures beside the paper's", about.chain([table]));
    page.section(
        "Loss and background work by the usage of the foreground",
        [PageBlock::Plots(chart(measured).to_markup())],
    );
    page.section("Every usage", [PageBlock::Table(figures(points, true))]);
    page.section("Reproduce", [PageBlock::Command(command.to_owned())]);
    page.to_html()
}

/// Definitions of the figures, for the page.
const DEFINITIONS: [&str; 5] = [
    "Loss: 1 − T(alone) / T(with a background neighbour) of the same foreground work. The paper's \
     .5 to 4 % is a range of averages, so ours is the least and the most of the means by usage.",
    "More CPU: by how much more CPU time the same foreground work took, because its neighbour used \
     its caches; the rest of a loss is waiting for the processor. A loss below 0 is no error: a \
     neighbour keeps the processor awake, which alone has to be woken at every barrier.",
    "Utilisation: the x of the paper's model, in which a background process progresses at \
     x · (1 − u_fg) / u_bg: the part of the idle cycles that became progress. Its ranges are of \
     single jobs, and so are ours; a range has no interval.",
    "Share: the part of the idle cycles that the kernel gave to the background job, whether it \
     made progress or waited for its slowest process at the next barrier.",
    "Foregrounds above 96 % have a loss but no utilisation: next to nothing is idle, and the \
     paper has no background job there.",
];

#[cfg(test)]
mod tests {
    use dormouse_host::two_tier::Measurement;

    use super::*;

    /// Results for tests: two measurements of each case at 50 % usage, with rates computed from 0.88 and 0.9.
    fn measured() -> TwoTierResults {
        let pair = |case: ProcessCase, seed, x: f64| Measurement {
            case,
            seed,
            usage: 50,
            foreground_usage: 0.5,
            loss: 0.01,
            more_cpu: 0.001,
            rate: x * 0.5 / case.background_usage(),
            background_usage: case.background_usage(),
            background_cpu: 0.95 * 0.5,
            elsewhere: 0.003,
        };
        let all = ProcessCase::ALL.map(|case| [pair(case, 1, 0.88), pair(case, 2, 0.9)]);
        TwoTierResults { all: all.concat(), again: 0 }
    }

    #[test]
    fn the_table_has_the_columns_that_all_tables_have() {
        let csv = figures(&measured().rows(), false).to_csv();
        let mut lines = csv.lines();
        let head = "case,metric,paper,ours_mean,ours_ci95_low,ours_ci95_high,n";
        assert_eq!(lines.next(), Some(head));
        assert!(lines.all(|line| line.split(',').count() == 7), "{csv}");
        assert!(csv.contains("single,background_utilisation_least_pct,80,88.0000,,,2\n"), "{csv}");
        assert!(csv.contains("several/usage-50,background_share_pct,,95.0000,95.0000,95.0000,2\n"));
    }

    #[test]
    fn a_host_that_was_not_quiet_is_told_of() {
        let said = |measured: &TwoTierResults| table(measured, Terminal::PLAIN);
        let quiet = said(&measured());
        assert!(
            quiet.ends_with("0.3 % of the processors' time went to others meanwhile"),
            "{quiet}"
        );
        let mut disturbed = measured();
        disturbed.all.iter_mut().for_each(|m| m.elsewhere = 0.3);
        disturbed.again = 8;
        let told = said(&disturbed);
        assert!(told.contains("; 8 disturbed measurements were made again: too much"), "{told}");
        assert!(told.ends_with("measure again on a quiet host"), "{told}");
    }

    #[test]
    fn what_is_written_is_what_the_model_reads() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        write(&measured(), "dormouse reproduce measy/two-tier <1>", path).expect("written");
        let sharing = dormouse_experiment::read_sharing(&path.join(SHARING)).expect("read");
        let ours = measured().sharing();
        assert_eq!((sharing.loss, sharing.single), (ours.loss, ours.single));
        assert_eq!(sharing.several_normal, ours.several_normal);
        let page = std::fs::read_to_string(path.join("report.html")).expect("read");
        assert!(page.contains("two-tier &lt;1&gt;") && page.contains("76.6"), "{page}");
        assert!(!page.contains("NaN"), "{page}");
    }
}
