//! The page of a comparison.

use std::collections::BTreeSet;

use dormouse_view::plot::PanelChart;
use dormouse_view::{HtmlPage, PageAnswer, PageBlock};

use super::SchedulerComparison;
use crate::measures::ShownFigure;
use crate::ranked::{best_in_words, decisive, question};
use crate::runs::FILES;
use crate::sweep::Samples;

/// Greatest number of rows of a table that is not folded.
const MOST_ROWS: usize = 24;

impl SchedulerComparison {
    /// Builds the page `report.html` of a comparison from the samples.
    pub fn page(&self, samples: &Samples, (seeds, command): (u64, &str)) -> HtmlPage {
        let first = self.first();
        let under =
            if seeds == 1 { "the same seed".to_owned() } else { format!("the same {seeds} seeds") };
        let lead = format!(
            "Each under {under}, in virtual time. A difference is that of two runs under the same seed, so that luck \
             that both have cancels out; its interval is that of these differences. In per cent it is divided by the mean \
             of {first}."
        );
        let mut page = HtmlPage::new(self.schedulers.join(" and "), lead);
        let measures = self.measures(samples);
        let decisive = decisive(&measures);
        page.answers = decisive.iter().map(|measure| self.best(measure, samples)).collect();
        page.answers.push(self.certainty(samples, seeds));
        let is_decisive = |chart: &PanelChart| {
            let title = chart.panels.first().map_or("", |panel| panel.title.as_str());
            decisive.iter().any(|measure| measure.name() == title)
        };
        let (first_plots, other_plots): (Vec<_>, Vec<_>) =
            self.plots(samples).into_iter().partition(is_decisive);
        let plots = |charts: &[PanelChart]| {
            PageBlock::Plots(charts.iter().flat_map(PanelChart::to_markup).collect())
        };
        let about = "A small point is a run under one seed, a large one the mean of all seeds with its 95 % interval: an \
                     interval of differences without 0 is a clear difference.";
        let about = if first_plots.is_empty() && other_plots.is_empty() { "" } else { about };
        page.section(
            format!("Against {first}, in words"),
            self.sentences(samples).into_iter().map(PageBlock::Text),
        );
        page.section(
            format!("Every seed, and its difference from {first}"),
            [PageBlock::text(about), plots(&first_plots)],
        );
        page.detail("Plots of the other figures", [plots(&other_plots)]);
        let table = self.page_table(samples);
        let is_short = self.pairs(samples, &measures.told).len() <= MOST_ROWS;
        let every = [
            PageBlock::Table(table),
            PageBlock::text(measures.interval_note().unwrap_or_default()),
            PageBlock::text(measures.left_out().unwrap_or_default()),
        ];
        if is_short {
            page.section("Every figure", every);
        } else {
            page.detail("Every figure", every);
        }
        page.detail("In this folder", [PageBlock::text(format!(
            "table.csv has the table, with every digit. {FILES} plot-1.svg and those after it are the plots."
        ))]);
        page.printed_detail("Reproduce", [PageBlock::Command(command.to_owned())]);
        page
    }

    /// The answer which scheduler is best by a figure, on each experiment.
    fn best(&self, measure: &ShownFigure, samples: &Samples) -> PageAnswer {
        let answer = PageAnswer::new(question(measure), "");
        let on_each = self.by_experiment(samples).filter_map(|(on, samples)| {
            let settings = self.schedulers.iter().map(String::as_str);
            let settings: Vec<_> = settings.zip(samples.iter().map(Vec::as_slice)).collect();
            Some((on, best_in_words(measure, &settings)?))
        });
        on_each.fold(answer, |answer, (on, said)| answer.item(format!("{on}:"), said))
    }

    /// The answer how many of the differences are more than chance.
    fn certainty(&self, samples: &Samples, seeds: u64) -> PageAnswer {
        let pairs = self.pairs(samples, &self.measures(samples).told);
        let differ = pairs.iter().filter(|pair| pair.difference.is_some());
        let (shown, all) =
            differ.fold((0, 0), |(n, all), pair| (n + usize::from(pair.is_shown()), all + 1));
        let names = pairs.iter().filter(|pair| pair.difference.is_some() && pair.is_shown());
        let names: BTreeSet<_> = names.map(|pair| pair.measure.name()).collect();
        let names: Vec<_> = names.into_iter().collect();
        let clear =
            if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        let which = match seeds {
            1 => "seed, the same for all: 1".to_owned(),
            _ => format!("seeds, the same for all: 1 to {seeds}"),
        };
        PageAnswer::new("How sure is that?", "")
            .item(
                self.on.len().to_string(),
                match self.on.len() {
                    1 => "experiment",
                    _ => "experiments",
                },
            )
            .item(seeds.to_string(), which)
            .item(
                format!("{shown} of {all}"),
                format!("clear differences from {}{clear}", self.first()),
            )
    }
}
