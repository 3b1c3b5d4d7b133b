//! The page of a sweep.

use std::collections::BTreeSet;

use dormouse_view::number::capitalise;
use dormouse_view::{HtmlPage, PageAnswer, PageBlock};

use super::plots::{SweepPanel, differences};
use super::{ParameterSweep, Samples};
use crate::measures::ShownFigure;
use crate::ranked::{best_in_words, decisive, question};
use crate::runs::FILES;

/// Explanation of the plots of differences.
const ABOUT_DIFFERENCES: &str = "A small point is the difference of two runs under the same seed, so that luck that both have cancels \
    out; a large one is the mean of all seeds with its 95 % interval. An interval without 0 is a clear difference.";

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
        let schedulers = self.cells.iter().map(|cell| cell.experiment.scheduler_name());
        let schedulers: BTreeSet<String> = schedulers.collect();
        let schedulers: Vec<_> = schedulers.into_iter().collect();
        let under = format!("under {}", schedulers.join(", "));
        let lead = format!(
            "{runs} runs in virtual time {under}, of {settings}; means with their 95 % confidence intervals."
        );
        let mut page = HtmlPage::new(title, lead);
        let measures = Self::measures(samples);
        let decisive = decisive(&measures);
        let names: Vec<String> = self.values.iter().map(|values| self.in_words(values)).collect();
        let settings: Vec<_> =
            names.iter().map(String::as_str).zip(samples.iter().map(Vec::as_slice)).collect();
        let best = |measure: &ShownFigure| {
            let said = best_in_words(measure, &settings)?;
            Some(PageAnswer::new(question(measure), capitalise(&said)))
        };
        page.answers = decisive.iter().filter_map(best).collect();
        let has_answers = !page.answers.is_empty();
        page.answers.extend(certainty(samples).filter(|_| has_answers));
        let decides = |metric: &&str| decisive.iter().any(|measure| measure.metric.name == *metric);
        let is_decisive = |it: &SweepPanel| it.metrics.iter().all(decides);
        let (first, others): (Vec<_>, Vec<_>) =
            self.panels(samples).into_iter().partition(is_decisive);
        let plots = |panels: &[SweepPanel]| {
            PageBlock::Plots(panels.iter().map(|it| it.panel.to_markup()).collect())
        };
        page.section("Plots", [plots(&first)]);
        let panels = decisive.iter().filter_map(|measure| differences(measure, &settings));
        let panels: Vec<_> = panels.map(|panel| panel.to_markup()).collect();
        let about = if panels.is_empty() { "" } else { ABOUT_DIFFERENCES };
        page.section(
            "Differences from the best setting",
            [PageBlock::text(about), PageBlock::Plots(panels)],
        );
        page.section(
            "Figures",
            [
                PageBlock::Table(self.table(samples)),
                PageBlock::text(measures.interval_note().unwrap_or_default()),
                PageBlock::text(measures.left_out().unwrap_or_default()),
            ],
        );
        page.detail("Plots of the other figures", [plots(&others)]);
        page.detail(
            "In this folder",
            [PageBlock::text(format!(
                "table.csv has every figure's mean and interval. {FILES} plot.svg is the plots."
            ))],
        );
        page.printed_detail("Reproduce", [PageBlock::Command(command.to_owned())]);
        page
    }

    /// The values of a setting, each with the last word of its key: `alpha 0.5, fixed 20s`; names stand alone.
    fn in_words(&self, values: &[String]) -> String {
        let word = |(key, value): (&String, &String)| match key.rsplit('.').next() {
            Some("name") | None => value.clone(),
            Some(short) => format!("{short} {value}"),
        };
        self.keys.iter().zip(values).map(word).collect::<Vec<_>>().join(", ")
    }
}

/// The answer how a difference between settings is told from chance; `None` if the settings have different numbers of runs.
fn certainty(samples: &Samples) -> Option<PageAnswer> {
    let runs = samples.first()?.len();
    let said = "A difference is clear if the 95 % interval of the differences under the same seeds leaves out 0. More seeds \
                make intervals narrower.";
    let noun = if runs == 1 { "seed for each setting" } else { "seeds for each setting" };
    let are_alike = samples.iter().all(|cell| cell.len() == runs);
    are_alike.then(|| PageAnswer::new("How sure is that?", said).item(runs.to_string(), noun))
}
