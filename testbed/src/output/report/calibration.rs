//! "Speed-up": why a live run had its own, and what its host was measured to do.

use super::html::{paragraph, section, table};
use crate::calibration::{Came, Cell, HEAD};
use crate::output::Header;

/// The section; nothing where nobody asked.
pub(crate) fn speedup(header: &Header) -> String {
    let Some(choice) = &header.speedup else { return String::new() };
    let mut text = paragraph(&format!("It ran at {choice}."));
    if let Some(calibration) = &choice.calibration {
        let host = &calibration.host;
        text += &paragraph(&format!(
            "Tasks against their virtual twins, as measured on this host by dormouse calibrate \
             until {} ({} cores, kernel {}): (live − virtual) / virtual of their times. A load is \
             the vCPUs busy at once as a part of those that the host holds at 1/24 of a core each.",
            calibration.made,
            f64::from(host.millicores) / 1e3,
            host.kernel
        ));
        let rows: Vec<_> = calibration.cells.iter().map(|cell| cell.columns().to_vec()).collect();
        text += &table(&HEAD, 0, &rows);
        text += &calibration.cells.iter().filter_map(refusal).collect::<String>();
    }
    section("Speed-up", &text)
}

fn refusal(cell: &Cell) -> Option<String> {
    let Cell { speedup, load, came, .. } = cell;
    match came {
        Came::Refused { why } => {
            Some(paragraph(&format!("Speed-up {speedup} at load {load} was refused: {why}")))
        }
        Came::Measured { .. } => None,
    }
}
