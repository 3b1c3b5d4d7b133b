//! Report of a reproduction: `table.csv`, `results.json`, `claims.json`, `claims.md`, `report.html`, a file for each
//! figure, `readings.csv` of a search, and the text for a terminal.

mod best;
mod holds;
mod page;
mod plots;
mod tables;

use std::collections::BTreeMap;

use dormouse_view::Terminal;
use serde_json::{Value, json};

use super::finished::FinishedReproduction;
use super::markdown::CLAIM_TABLES;
use super::origin::RESULTS;
use super::price_notes::{NO_PRICES, PriceNotes};
use super::reference::CLAIMS;
use crate::sweep::{SweepError, SweepFolder};

/// Writes all files of the report into the folder.
pub(super) fn write(
    done: &FinishedReproduction,
    folder: &mut SweepFolder,
) -> Result<(), SweepError> {
    folder.write("table.csv", &tables::all(done).to_csv())?;
    if done.is_search() {
        folder.write("readings.csv", &tables::readings(done).to_csv())?;
    }
    let best = best::table(done);
    if !best.is_empty() {
        folder.write("best.csv", &best.to_csv())?;
    }
    let claims = done.claim_list();
    folder.write(CLAIMS, &format!("{:#}\n", json!(claims)))?;
    folder.write(CLAIM_TABLES, &claims.to_markdown())?;
    folder.write(RESULTS, &format!("{:#}\n", done.json()))?;
    folder.write("report.html", &page::page(done).to_html())?;
    for part in done.parts().filter(|part| !part.lines.is_empty()) {
        let chart = plots::over_load(done, part);
        folder.write(&format!("{}.svg", part.name), &chart.to_svg())?;
    }
    Ok(())
}

impl FinishedReproduction {
    /// All results as JSON.
    pub fn json(&self) -> Value {
        json!({
            "paper": self.paper.source,
            "what": self.what,
            "command": self.command,
            "origin": self.origin,
            "default_reading": self.default,
            "seeds": self.seeds,
            "under_fewer_seeds": self.under_fewer_seeds().into_iter().collect::<BTreeMap<_, _>>(),
            "inputs": self.inputs,
            "figures": tables::figures(self).to_json(),
            "claims": tables::claims(self).to_json(),
            "factors": tables::factors(self).to_json(),
            "readings": tables::readings(self).to_json(),
            "best": best::table(self).to_json(),
            "rule_against_printed": best::against_printed(self).to_json(),
            "under_readings": tables::under_readings(self).to_json(),
            "live": tables::live(self).to_json(),
            "price_records": records_json(self),
            "left_out": self.without.iter().map(|(_, needs)| needs).collect::<Vec<_>>(),
        })
    }
}

/// Price records with their oddities, as JSON.
fn records_json(done: &FinishedReproduction) -> Value {
    let record = |of: &PriceNotes| json!({ "file": of.file, "notes": of.notes });
    done.price_records.iter().map(record).collect()
}

/// Text for people: printed figures, claims, factors and live runs.
pub fn table(done: &FinishedReproduction, terminal: Terminal) -> String {
    let mut text = String::new();
    let read = match done.is_search() {
        true => "readings of the text, everywhere at once",
        false => "the text, and the rules of the authors' code",
    };
    for (heading, table) in [
        ("", tables::printed(done)),
        ("claims of the text, and how each was judged", tables::claims_in_short(done)),
        ("what could explain a difference, each changed alone", tables::factors(done)),
        (read, tables::readings(done)),
        ("simple rules against the printed figures", best::against_printed(done)),
        ("live runs", tables::live(done)),
    ] {
        if !table.is_empty() {
            let heading =
                if heading.is_empty() { String::new() } else { format!("\n  {heading}\n") };
            text += &format!("{}{}\n", terminal.dim(&heading), table.to_text(terminal));
        }
    }
    text += "\n";
    text += &tables::summary(done);
    for line in best::words(done) {
        text += &format!("\n  {line}");
    }
    let (odd, all) = (done.odd_records().count(), done.price_records.len());
    if odd > 0 {
        text += &format!("\n  {odd} of {all} records of prices are odd: report.html says how");
    }
    for record in done.price_records.iter().filter(|record| record.notes == [NO_PRICES]) {
        text += &format!("\n  {}: {NO_PRICES}", record.file);
    }
    for (part, seeds) in done.under_fewer_seeds() {
        text += &format!("\n  {part}: {seeds} seeds, as more take long and show no more");
    }
    for (_, needs) in &done.without {
        text += &format!("\n  left out: {needs}");
    }
    if let Some(resumed) = done.origin.resumed() {
        text += &format!("\n  {resumed}");
    }
    text
}
