//! The book's figures of measurements are what their committed data give. `SNAPSHOTS=overwrite` draws them again.

use std::fs;
use std::path::{Path, PathBuf};

use dormouse_view::plot::{
    AxisScale, ChartPanel, PanelChart, PlotAxis, PointLook, PointSeries, SeriesPoint,
};
use serde_json::Value;

fn figures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures")
}

/// The rows of a benchmark's file.
fn rows(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(figures().join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn line(name: &str, colour: usize, rows: &[Value], (x, y): (&str, &str)) -> PointSeries {
    let at = |row: &Value, key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
    let points = rows.iter().map(|row| SeriesPoint::new(at(row, x), at(row, y))).collect();
    PointSeries { name: name.to_owned(), colour, look: PointLook::Line, points }
}

fn panel(
    title: &str,
    (x, y): (&str, &str),
    scale: AxisScale,
    series: Vec<PointSeries>,
) -> ChartPanel {
    let (x, y) = (PlotAxis::new(x, AxisScale::FromZero), PlotAxis::new(y, scale));
    ChartPanel { title: title.to_owned(), x, y, series, ..ChartPanel::default() }
}

/// A chart of what a coordinator needs for more workers, and for more task ends per second.
fn scale() -> PanelChart {
    let latencies = |rows: &[Value], x| {
        vec![line("half", 0, rows, (x, "p50_ms")), line("99 of 100", 1, rows, (x, "p99_ms"))]
    };
    let processor = |rows: &[Value], x| {
        vec![
            line("process", 0, rows, (x, "cpu_percent")),
            line("conductor", 1, rows, (x, "conductor_percent")),
        ]
    };
    let (by_workers, by_load) = (rows("scale-workers.json"), rows("scale-load.json"));
    let (workers, load) = ("workers, 250 running tasks each", "ends of tasks in a second");
    let (many, ends) = ("workers", "ends_per_s");
    let ms = "from report to command, ms";
    let journal = vec![line("", 0, &by_workers, (many, "journal_bytes_per_s"))];
    let memory = vec![line("", 0, &by_workers, (many, "memory_mib"))];
    let percent = "of a core, %";
    PanelChart {
        title: "A coordinator with 10 to 200 workers".to_owned(),
        panels: vec![
            panel("Decisions", (workers, ms), AxisScale::FromZero, latencies(&by_workers, many)),
            panel(
                "Processor",
                (workers, percent),
                AxisScale::FromZero,
                processor(&by_workers, many),
            ),
            panel("Memory", (workers, "MiB"), AxisScale::FromZero, memory),
            panel("Log", (workers, "bytes a second"), AxisScale::FromZero, journal),
            panel(
                "Decisions, 200 workers",
                (load, ms),
                AxisScale::Logarithmic,
                latencies(&by_load, ends),
            ),
            panel(
                "Processor, 200 workers",
                (load, percent),
                AxisScale::FromZero,
                processor(&by_load, ends),
            ),
        ],
    }
}

#[test]
fn what_was_measured_is_what_is_drawn() {
    let (path, drawn) = (figures().join("scale.svg"), scale().to_svg());
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        fs::write(&path, &drawn).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    let name = path.display();
    assert!(kept == drawn, "{name} is not what its data draw: SNAPSHOTS=overwrite makes it anew");
}
