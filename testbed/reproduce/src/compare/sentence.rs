//! One sentence for each experiment of a comparison: which scheduler is better by how much, and
//! whether that may be chance.

use dormouse_analysis::BetterSide;
use dormouse_estimate::FEWEST;
use dormouse_view::number::fixed;

use super::{FigurePair, SchedulerComparison};
use crate::sweep::Samples;

impl SchedulerComparison {
    /// One sentence for each experiment and each scheduler after the first, in this order.
    pub fn sentences(&self, samples: &Samples) -> Vec<String> {
        let pairs = self.pairs(samples, &self.measures(samples).told);
        let cells = self.on.iter().flat_map(|on| {
            let others = self.schedulers.iter().skip(1);
            others.map(move |scheduler| (on.as_str(), scheduler.as_str()))
        });
        let of_cell = |(on, scheduler)| {
            let own = pairs.iter().filter(|pair| (pair.on, pair.scheduler) == (on, scheduler));
            sentence_on((on, scheduler), self.first(), &own.collect::<Vec<_>>())
        };
        cells.filter_map(of_cell).collect()
    }
}

/// A sentence on the figures of a scheduler for which lower or higher is better, beside the first
/// scheduler's.
fn sentence_on(
    (on, scheduler): (&str, &str),
    first: &str,
    pairs: &[&FigurePair<'_>],
) -> Option<String> {
    let judged = pairs.iter().filter_map(|pair| {
        let difference = pair.difference?;
        Some((*pair, pair.measure.metric.better?, difference))
    });
    let judged: Vec<_> = judged.collect();
    let seeds = judged.iter().filter(|(pair, ..)| !pair.are_batches).map(|(.., d)| d.n).max();
    if let Some(seeds) = seeds.filter(|seeds| *seeds < FEWEST) {
        let many = if seeds == 1 { "one seed is".to_owned() } else { format!("{seeds} seeds are") };
        return Some(format!(
            "On {on} {many} too few to tell {scheduler} from {first}: every difference may be chance. \
             Take --seeds {FEWEST} or more."
        ));
    }
    // In the order of the figures, of which makespan and cost come first.
    let mut parts = Vec::new();
    for (pair, good, difference) in judged {
        let name = pair.measure.name();
        if difference.ci95 == Some((0.0, 0.0)) {
            parts.push((false, format!("the same {name}")));
        } else if !pair.is_shown() {
            parts.push((true, name.to_owned()));
        } else {
            let (side, word) = match difference.mean < 0.0 {
                true => (BetterSide::Lower, "lower"),
                false => (BetterSide::Higher, "higher"),
            };
            let judgement = if side == good { "better" } else { "worse" };
            let by = by_how_much(pair, difference.mean);
            parts.push((false, format!("{name} {by} {word} ({judgement})")));
        }
    }
    if parts.is_empty() {
        return None;
    }
    // Neighbours that may differ by chance alone are told together.
    let together = parts.chunk_by(|(before, _), (after, _)| *before && *after);
    let told = together.map(|these| {
        let names: Vec<_> = these.iter().map(|(_, text)| text.clone()).collect();
        (these.iter().any(|(may_be_chance, _)| *may_be_chance), join_names(&names))
    });
    let told: Vec<_> = told.collect();
    if let [(true, names)] = told.as_slice() {
        let differences = if parts.len() == 1 { "difference" } else { "differences" };
        return Some(format!(
            "On {on} neither {scheduler} nor {first} is clearly better: the {differences} in {names} may be chance."
        ));
    }
    let told = told.into_iter().map(|(may_be_chance, text)| match may_be_chance {
        true => format!("no clear difference in {text}"),
        false => text,
    });
    let told: Vec<_> = told.collect();
    Some(format!("On {on}, {scheduler} against {first}: {}.", told.join(", ")))
}

/// Size of a difference: in per cent of the first scheduler's mean, or in the figure's unit if that mean is zero.
fn by_how_much(pair: &FigurePair<'_>, difference: f64) -> String {
    if let Some(relative) = pair.relative {
        return format!("{} %", size_in_words(relative.mean * 100.0, 1));
    }
    let size = size_in_words(pair.measure.value(difference), pair.measure.digits());
    let heading = pair.measure.heading();
    match heading.strip_prefix(pair.measure.name()).and_then(|rest| rest.strip_prefix(", ")) {
        Some("$") => format!("${size}"),
        Some(unit) => format!("{size} {unit}"),
        None => size,
    }
}

/// A size with this many decimals; a size that rounds to zero is described as less than the last decimal.
fn size_in_words(of: f64, digits: usize) -> String {
    let text = fixed(of.abs(), digits);
    let is_nothing = !text.contains(|digit: char| ('1'..='9').contains(&digit));
    if is_nothing {
        format!("less than {}", fixed(10_f64.powf(-(digits as f64)), digits))
    } else {
        text
    }
}

/// Names joined by commas and "and".
fn join_names(names: &[String]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => names.join(""),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;
    use crate::sweep::{OwnProgram, SharedInputs};
    use dormouse_analysis::RunSample;

    /// Sentences of a comparison of two schedulers on j60. `runs` has the makespan and cost of both schedulers under
    /// each seed; the number of checkpoints follows from the makespan.
    fn said(runs: &[[(f64, f64); 2]]) -> Vec<String> {
        said_with("checkpoints", runs)
    }

    /// Sentences of a comparison of two schedulers on j60, whose runs have a makespan, a cost, and `figure`, which is a
    /// tenth of the makespan, less 10.
    fn said_with(figure: &str, runs: &[[(f64, f64); 2]]) -> Vec<String> {
        let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (on, schedulers) = (words(&["j60"]), words(&["burst-hads", "hads"]));
        let comparison = SchedulerComparison::new(
            (&on, &OwnProgram::default()),
            &schedulers,
            &[],
            &SharedInputs::default(),
        );
        let comparison = comparison.unwrap();
        let sample = |(makespan, cost): (f64, f64)| RunSample {
            figures: [
                ("makespan_s".to_owned(), makespan),
                ("cost_usd".to_owned(), cost),
                (figure.to_owned(), makespan / 10.0 - 10.0),
            ]
            .into(),
            batches: [].into(),
            steps: 0,
            decisions: String::new(),
        };
        let of = |n: usize| runs.iter().map(|run| sample(run[n])).collect::<Vec<_>>();
        comparison.sentences(&vec![of(0), of(1)])
    }

    /// The second scheduler takes ten seconds more under every seed, at costs that differ by chance; then it is better
    /// in makespan; then nothing differs but by chance.
    #[test]
    fn a_comparison_says_what_is_better_by_how_much_and_what_may_be_chance() {
        let cheaper = [0.9, 1.1, 1.0, 0.95, 1.05, 1.02];
        let runs: Vec<_> = (0..6)
            .zip(cheaper)
            .map(|(n, cost)| [(100.0 + f64::from(n), 1.0), (110.0 + f64::from(n), cost)])
            .collect();
        assert_eq!(
            said(&runs),
            [
                "On j60, hads against burst-hads: makespan 9.8 % higher (worse), no clear difference in cost."
            ]
        );
        let better: Vec<_> = (0..6).map(|n| [(100.0 + f64::from(n), 1.0), (90.0, 1.0)]).collect();
        assert_eq!(
            said(&better),
            ["On j60, hads against burst-hads: makespan 12.2 % lower (better), the same cost."]
        );
        let luck: Vec<_> = cheaper.iter().map(|by| [(100.0, 1.0), (100.0 * by, *by)]).collect();
        assert_eq!(
            said(&luck),
            [
                "On j60 neither hads nor burst-hads is clearly better: the differences in makespan and cost may be chance."
            ]
        );
    }

    /// The first scheduler loses no work and the second one ten seconds: a per cent of zero makes no sense, so that the
    /// difference is printed in seconds.
    #[test]
    fn a_difference_from_nothing_has_its_unit() {
        let runs: Vec<_> = (0..6).map(|_| [(100.0, 1.0), (200.0, 1.0)]).collect();
        assert_eq!(
            said_with("work_lost_s", &runs),
            [
                "On j60, hads against burst-hads: makespan 100.0 % higher (worse), the same cost, work lost 10 s higher \
                 (worse)."
            ]
        );
    }

    /// The second scheduler takes one second more in ten thousand under every seed: the difference is real, but rounds
    /// to 0.0 %.
    #[test]
    fn a_difference_that_rounds_to_nothing_is_not_said_to_be_zero() {
        let runs: Vec<_> = (0..6)
            .map(|n| [(10_000.0 + f64::from(n), 1.0), (10_001.0 + f64::from(n), 1.0)])
            .collect();
        let said = said(&runs);
        assert!(said[0].contains("makespan less than 0.1 % higher (worse)"), "{said:?}");
        assert_eq!(
            [
                size_in_words(0.04, 1),
                size_in_words(-0.06, 1),
                size_in_words(0.2, 0),
                size_in_words(3.0, 0)
            ],
            ["less than 0.1", "0.1", "less than 1", "3"]
        );
    }

    #[test]
    fn under_five_seeds_every_difference_may_be_chance() {
        let runs = [[(100.0, 1.0), (200.0, 2.0)], [(101.0, 1.0), (201.0, 2.0)]];
        assert_eq!(
            said(&runs),
            [
                "On j60 2 seeds are too few to tell hads from burst-hads: every difference may be chance. Take \
             --seeds 5 or more."
            ]
        );
        assert!(said(&runs[..1])[0].starts_with("On j60 one seed is too few"));
    }
}
