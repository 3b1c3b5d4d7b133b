//! Notes on the recorded spot prices of a run.

use dormouse_analysis::VmHistory;
use dormouse_units::Time;
use dormouse_view::{Block, Column, Table, TimeUnit};
use serde_json::{Value, json};

use super::outcome::Results;
use super::{Line, times};
use dormouse_experiment::PriceFile;

/// The object `prices` of a summary; `None` if no prices were recorded.
pub(super) fn summary(run: &Results<'_>) -> Option<Value> {
    let files = &run.header.experiment.price_files;
    let of = |file: &PriceFile| json!({ "type": file.kind, "file": file.file, "notes": notes(run, file, TimeUnit::Second) });
    (!files.is_empty()).then(|| files.iter().map(of).collect())
}

/// One line for each price file that ends before the run. Oddities of a file were reported when it
/// was read.
pub(super) fn lines(run: &Results<'_>) -> impl Iterator<Item = Line> {
    let said = |file: &PriceFile| {
        Some(format!("{}, {}: {}", file.kind, file.file, beyond(run, file, TimeUnit::Second)?))
    };
    let files = run.header.experiment.price_files.iter();
    files.filter_map(said).map(|note| Line::plain("prices", note))
}

/// Section "Records of prices": oddities of each file, and whether the run goes beyond it.
pub(super) fn section(run: &Results<'_>) -> Vec<Block> {
    let files = &run.header.experiment.price_files;
    if files.is_empty() {
        return Vec::new();
    }
    let unit = run.time_unit();
    let table = Table::with_rows(files)
        .column(Column::text("type"), |file| file.kind.as_str())
        .column(Column::text("file"), |file| file.file.as_str())
        .column(Column::text("remarks"), |file| notes(run, file, unit).join("; "));
    vec![Block::Table(table.into())]
}

fn notes(run: &Results<'_>, file: &PriceFile, unit: TimeUnit) -> Vec<String> {
    file.notes.iter().cloned().chain(beyond(run, file, unit)).collect()
}

/// A note that the run went on after the last price of a file; `None` if it didn't.
fn beyond(run: &Results<'_>, file: &PriceFile, unit: TimeUnit) -> Option<String> {
    let (last, end) = (run.header.experiment.prices_end(file), end(run));
    (end > last).then(|| {
        let (last, after) = (last.since(Time::ZERO), end.since(last));
        let (last, after) = (times::round(unit, last), times::round(unit, after));
        format!(
            "its last price is of {last}; the run went on for {after} after that, in which this price held"
        )
    })
}

/// Time at which the last task, VM or request ended.
fn end(run: &Results<'_>) -> Time {
    let record = run.record.iter();
    let of_vm = |vm: &VmHistory| vm.ended.map(|(at, ..)| at);
    let of_record = record.flat_map(|record| {
        record.makespan().into_iter().chain(record.vms.values().filter_map(of_vm))
    });
    let of_requests = run.requests.iter().map(|own| own.figures.last_end);
    of_record.chain(of_requests).max().unwrap_or_default()
}
