//! The book's figures of what was measured: each is what its committed data draw. `SNAPSHOTS=overwrite` draws
//! them anew.

use std::fs;
use std::path::{Path, PathBuf};

use dormouse_view::plot::{Axis, Chart, Look, Panel, Point, Scale, Series};
use serde_json::Value;

fn figures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures")
}

/// Rows of a benchmark's file.
fn rows(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(figures().join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn line(name: &str, colour: usize, rows: &[Value], (x, y): (&str, &str)) -> Series {
    let at = |row: &Value, key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
    let points = rows.iter().map(|row| Point::new(at(row, x), at(row, y))).collect();
    Series { name: name.to_owned(), colour, look: Look::Line, points }
}

fn panel(title: &str, (x, y): (&str, &str), scale: Scale, series: Vec<Series>) -> Panel {
    let (x, y) = (Axis::new(x, Scale::FromZero), Axis::new(y, scale));
    Panel { title: title.to_owned(), x, y, series, ..Panel::default() }
}

/// What a coordinator needs for more workers, and for more ends of tasks in a second.
fn scale() -> Chart {
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
    Chart {
        title: "A coordinator with 10 to 200 workers".to_owned(),
        panels: vec![
            panel("Decisions", (workers, ms), Scale::FromZero, latencies(&by_workers, many)),
            panel("Processor", (workers, percent), Scale::FromZero, processor(&by_workers, many)),
            panel("Memory", (workers, "MiB"), Scale::FromZero, memory),
            panel("Log", (workers, "bytes a second"), Scale::FromZero, journal),
            panel(
                "Decisions, 200 workers",
                (load, ms),
                Scale::Logarithmic,
                latencies(&by_load, ends),
            ),
            panel(
                "Processor, 200 workers",
                (load, percent),
                Scale::FromZero,
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
