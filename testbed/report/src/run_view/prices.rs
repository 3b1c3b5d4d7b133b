//! Notes on the recorded spot prices of a run.

use dormouse_analysis::VmHistory;
use dormouse_units::Time;
use dormouse_view::{PageBlock, TableColumn, TimeUnit, TypedTable};
use serde_json::{Value, json};

use super::outcome::RunResults;
use super::{SummaryLine, dates};
use dormouse_experiment::PriceFile;

/// The object `prices` of a summary; `None` if no prices were recorded.
pub(super) fn summary(run: &RunResults<'_>) -> Option<Value> {
    let files = &run.header.experiment.price_files;
    let of = |file: &PriceFile| json!({ "type": file.kind, "file": file.file, "notes": file_notes(run, file, TimeUnit::Second) });
    (!files.is_empty()).then(|| files.iter().map(of).collect())
}

/// One line for each price file that ends before the run. Oddities of a file were reported when it
/// was read.
pub(super) fn lines(run: &RunResults<'_>) -> impl Iterator<Item = SummaryLine> {
    let said = |file: &PriceFile| {
        Some(format!(
            "{}, {}: {}",
            file.kind,
            file.file,
            note_beyond_record(run, file, TimeUnit::Second)?
        ))
    };
    let files = run.header.experiment.price_files.iter();
    files.filter_map(said).map(|note| SummaryLine::plain("prices", note))
}

/// Section "Records of prices": oddities of each file, and whether the run goes beyond it.
pub(super) fn section(run: &RunResults<'_>) -> Vec<PageBlock> {
    let files = &run.header.experiment.price_files;
    if files.is_empty() {
        return Vec::new();
    }
    let unit = run.time_unit();
    let table = TypedTable::with_rows(files)
        .column(TableColumn::text("type"), |file| file.kind.as_str())
        .column(TableColumn::text("file"), |file| file.file.as_str())
        .column(TableColumn::text("remarks"), |file| file_notes(run, file, unit).join("; "));
    vec![PageBlock::Table(table.into())]
}

fn file_notes(run: &RunResults<'_>, file: &PriceFile, unit: TimeUnit) -> Vec<String> {
    file.notes.iter().cloned().chain(note_beyond_record(run, file, unit)).collect()
}

/// A note that the run went on after the last price of a file; `None` if it didn't.
fn note_beyond_record(run: &RunResults<'_>, file: &PriceFile, unit: TimeUnit) -> Option<String> {
    let (last, end) = (run.header.experiment.prices_end(file), last_end(run));
    (end > last).then(|| {
        let (last, after) = (last.since(Time::ZERO), end.since(last));
        let (last, after) = (dates::round(unit, last), dates::round(unit, after));
        format!(
            "its last price is of {last}; the run went on for {after} after that, in which this price held"
        )
    })
}

/// Time at which the last task, VM or request ended.
fn last_end(run: &RunResults<'_>) -> Time {
    let record = run.record.iter();
    let of_vm = |vm: &VmHistory| vm.ended.map(|(at, ..)| at);
    let of_record = record.flat_map(|record| {
        record.makespan().into_iter().chain(record.vms.values().filter_map(of_vm))
    });
    let of_requests = run.requests.iter().map(|own| own.figures.last_end);
    of_record.chain(of_requests).max().unwrap_or_default()
}
