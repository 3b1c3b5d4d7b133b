//! The page of a sweep.

use std::collections::BTreeSet;

use dormouse_view::{Block, Page};

use super::{Samples, Sweep};
use crate::runs::FILES;

impl Sweep {
    /// The page of `report.html`.
    pub fn page(&self, samples: &Samples, command: &str) -> Page {
        let names: BTreeSet<&str> = self.cells.iter().map(|cell| cell.name.as_str()).collect();
        let name = names.into_iter().collect::<Vec<_>>().join(", ");
        let title = match self.keys.is_empty() {
            true => name,
            false => format!("{name} over {}", self.keys.join(" and ")),
        };
        let runs: usize = samples.iter().map(Vec::len).sum();
        let settings = match self.cells.len() {
            1 => "one setting".to_owned(),
            n => format!("{n} settings"),
        };
        let lead = format!(
            "{runs} runs in virtual time, of {settings}; means with their 95 % confidence intervals."
        );
        let mut page = Page::new(title, lead);
        let measures = Self::measures(samples);
        page.section(
            "Figures",
            [
                Block::Table(self.table(samples)),
                Block::text(measures.interval_note().unwrap_or_default()),
                Block::text(measures.left_out().unwrap_or_default()),
            ],
        );
        page.section("Plots", [Block::Plots(self.plot(samples).to_markup())]);
        page.section(
            "In this folder",
            [Block::text(format!(
                "table.csv has every figure's mean and interval. {FILES} plot.svg is the plots."
            ))],
        );
        page.section("Reproduce", [Block::Command(command.to_owned())]);
        page
    }
}
