//! The page of a comparison.

use dormouse_view::{FigureCard, HtmlPage, PageBlock};

use super::SchedulerComparison;
use crate::runs::FILES;
use crate::sweep::Samples;

impl SchedulerComparison {
    /// Builds the page `report.html` of a comparison from the samples.
    pub fn page(&self, samples: &Samples, (seeds, command): (u64, &str)) -> HtmlPage {
        let first = self.first();
        let under =
            if seeds == 1 { "the same seed".to_owned() } else { format!("the same {seeds} seeds") };
        let lead = format!(
            "{}, each under {under}, in virtual time. A difference is between two runs of the same seed, so that \
             luck that both have cancels out; its interval is that of these differences.",
            self.schedulers.join(" and ")
        );
        let said = self.sentences(samples).join(" ");
        let lead = if said.is_empty() { lead } else { format!("{said} {lead}") };
        let mut page = HtmlPage::new(self.schedulers.join(" and "), lead);
        let measures = self.measures(samples);
        let pairs = self.pairs(samples, &measures.told);
        let differ = pairs.iter().filter(|pair| pair.difference.is_some());
        let (shown, all) =
            differ.fold((0, 0), |(n, all), pair| (n + usize::from(pair.is_shown()), all + 1));
        page.cards.push(FigureCard::new(
            "Experiments",
            self.on.len().to_string(),
            self.on.join(", "),
        ));
        let which = match seeds {
            1 => "the same for all: 1".to_owned(),
            _ => format!("the same for all: 1 to {seeds}"),
        };
        page.cards.push(FigureCard::new("Seeds", seeds.to_string(), which));
        let remark = format!("of {all}: those whose 95 % interval leaves out 0");
        page.cards.push(FigureCard::new("Clear differences", shown.to_string(), remark));
        let plots = self.plots(samples).iter().flat_map(|chart| chart.to_markup()).collect();
        page.section(format!("Every seed, and its difference from {first}"), [
            PageBlock::Plots(plots),
            PageBlock::text(format!(
                "A small point is a seed, a large one the mean of all seeds with its 95 % interval. A \
                 difference in per cent is a part of the mean under {first}."
            )),
        ]);
        page.section(
            "Every figure",
            [
                PageBlock::Table(self.table(samples)),
                PageBlock::text(measures.interval_note().unwrap_or_default()),
                PageBlock::text(measures.left_out().unwrap_or_default()),
            ],
        );
        page.section("In this folder", [PageBlock::text(format!(
            "table.csv has the table, with every digit. {FILES} plot-1.svg and those after it are the plots."
        ))]);
        page.section("Reproduce", [PageBlock::Command(command.to_owned())]);
        page
    }
}
