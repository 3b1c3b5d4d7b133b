//! The page of a sweep.

use std::collections::BTreeSet;

use dormouse_view::{HtmlPage, PageBlock};

use super::{ParameterSweep, Samples};
use crate::runs::FILES;

impl ParameterSweep {
    /// Builds the page `report.html` of a sweep from the samples.
    pub fn page(&self, samples: &Samples, command: &str) -> HtmlPage {
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
        let mut page = HtmlPage::new(title, lead);
        let measures = Self::measures(samples);
        page.section(
            "Figures",
            [
                PageBlock::Table(self.table(samples)),
                PageBlock::text(measures.interval_note().unwrap_or_default()),
                PageBlock::text(measures.left_out().unwrap_or_default()),
            ],
        );
        page.section("Plots", [PageBlock::Plots(self.plot(samples).to_markup())]);
        page.section(
            "In this folder",
            [PageBlock::text(format!(
                "table.csv has every figure's mean and interval. {FILES} plot.svg is the plots."
            ))],
        );
        page.section("Reproduce", [PageBlock::Command(command.to_owned())]);
        page
    }
}
