//! `dormouse compare`: schedulers on the same experiments under the same seeds, paired seed by seed.

use std::collections::BTreeSet;

use dormouse_analysis::{METRICS, Metric, Sample, series};
use dormouse_estimate::{Estimate, jackknife};
use dormouse_experiment::{label_of, names_a_program};
use dormouse_view::plot::{Axis, Limit, Look, Panel, Point, Scale, Series};
use dormouse_view::{Block, Card, Column, Page, Table};

use crate::sweep::{Cell, Samples, Shared, SweepError};

/// The path at which an experiment names its scheduler.
const SCHEDULER: &str = "scheduler.name";

/// Whether `--set` of this sets what only schedulers that are programs have.
fn is_of_programs(set: &str) -> bool {
    let own = ["parameters", "env", "limit", "label", "processors"];
    let inside = |name| set.strip_prefix(name);
    let key = inside("scheduler.").or_else(|| inside("policy.")).unwrap_or_default();
    let first = key.split(['.', '=']).next().unwrap_or_default().trim();
    own.contains(&first)
}

/// Schedulers on experiments: the first is what the others are compared with.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The experiments: files or built-in names.
    pub on: Vec<String>,
    /// Names of the schedulers, the one that the others are compared with first.
    pub schedulers: Vec<String>,
    /// A cell for each scheduler on each experiment; those of an experiment stand together.
    pub cells: Vec<Cell>,
}

/// A scheduler's figure on an experiment beside the first scheduler's.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// The experiment that both ran on.
    pub on: &'a str,
    /// The scheduler that is compared with the first.
    pub scheduler: &'a str,
    /// The figure that is compared.
    pub metric: &'static Metric,
    /// It, over the runs that have it: one that did not finish has no makespan.
    pub figure: Estimate,
    /// How many runs there are.
    pub runs: usize,
    /// By how much it is higher than the first scheduler's, seed by seed; `None` of that one itself,
    /// and where no seed has both.
    pub difference: Option<Estimate>,
    /// The same as a part of the first scheduler's mean; `None` where that is zero, too.
    pub relative: Option<Estimate>,
    /// Under how many seeds it is lower.
    pub lower: usize,
}

impl Comparison {
    /// The cells of a comparison.
    ///
    /// # Errors
    ///
    /// There are fewer than two schedulers, something is named twice, or an experiment is wrong or
    /// can't be run under a scheduler.
    pub fn of(
        on: &[String],
        schedulers: &[String],
        set: &[String],
        shared: &Shared,
    ) -> Result<Self, SweepError> {
        let bad = |what: String| Err(SweepError::BadInput(what));
        if schedulers.len() < 2 {
            return bad("--schedulers: name two or more, such as burst-hads,hads".to_owned());
        }
        for (option, list) in [("--schedulers", schedulers), ("--on", on)] {
            let mut seen = BTreeSet::new();
            if let Some(twice) = list.iter().find(|name| !seen.insert(*name)) {
                return bad(format!("{option}: {twice} is named twice; leave one out"));
            }
        }
        // A program is called by its file, unless two are called the same.
        let labels: Vec<String> = schedulers.iter().map(|word| label_of(word)).collect();
        let are_different = labels.iter().collect::<BTreeSet<_>>().len() == labels.len();
        let labels = if are_different { labels } else { schedulers.to_vec() };
        for text in set {
            let key = text.split('=').next().unwrap_or_default().trim();
            if ["seed", SCHEDULER].contains(&key) {
                let option = if key == "seed" { "--seeds" } else { "--schedulers" };
                return bad(format!("--set {text}: say it with {option}"));
            }
        }
        let mut cells = Vec::new();
        for name in on {
            for (scheduler, label) in schedulers.iter().zip(&labels) {
                // After it, so that it is set of a program, too.
                let named = [format!("{SCHEDULER}={scheduler}")];
                let is_its = |set: &&String| names_a_program(scheduler) || !is_of_programs(set);
                let set: Vec<_> = named.iter().chain(set.iter().filter(is_its)).cloned().collect();
                let said_with = |set: &str| if set == named[0] { "--schedulers" } else { "--set" };
                let case = format!("{name}/{label}");
                let cell = Cell::load_as_said(&case, name, &set, &said_with)?;
                cell.check(cell.experiment.setup.seed, shared)?;
                cells.push(cell);
            }
        }
        Ok(Self { on: on.to_vec(), schedulers: labels, cells })
    }

    /// Every scheduler on every experiment by every figure that they have, in this order.
    pub fn pairs(&self, samples: &Samples) -> Vec<Pair<'_>> {
        let mut pairs = Vec::new();
        for (on, samples) in self.on.iter().zip(samples.chunks(self.schedulers.len())) {
            let Some(first) = samples.first() else { continue };
            for metric in METRICS.iter().filter(|metric| metric.in_table) {
                for (n, (scheduler, samples)) in self.schedulers.iter().zip(samples).enumerate() {
                    let against = (n > 0).then_some(first.as_slice());
                    pairs.extend(Pair::of((on, scheduler), metric, samples, against));
                }
            }
        }
        pairs
    }

    /// The table for people: what each is, and by how much it differs.
    pub fn table(&self, samples: &Samples) -> Table {
        Table::of(self.pairs(samples))
            .column(Column::text("experiment"), |pair| pair.on)
            .column(Column::text("figure"), |pair| pair.metric.heading)
            .column(Column::text("scheduler"), |pair| pair.scheduler)
            .column(Column::text("mean [95 % interval]"), Pair::figure_in_words)
            .column(Column::text(format!("against {}", self.first())), Pair::in_words)
            .column(Column::text("lower under"), |pair| {
                pair.difference.map(|d| format!("{} of {} seeds", pair.lower, d.n))
            })
            .into()
    }

    /// `table.csv`: the same for programs, exactly.
    pub fn exact(&self, samples: &Samples) -> Table {
        type Of = fn(&Pair<'_>) -> Option<Estimate>;
        let mut table = Table::of(self.pairs(samples))
            .column(Column::text("case"), |pair| format!("{}/{}", pair.on, pair.scheduler))
            .column(Column::text("metric"), |pair| pair.metric.name)
            .column(Column::text("against"), |pair| {
                pair.difference.map(|_| self.first().to_owned())
            });
        let figures: [([&str; 3], Of); 3] = [
            (["mean", "ci95_low", "ci95_high"], |pair| Some(pair.figure)),
            (["difference", "difference_ci95_low", "difference_ci95_high"], |pair| pair.difference),
            (["relative", "relative_ci95_low", "relative_ci95_high"], |pair| pair.relative),
        ];
        for ([mean, low, high], of) in figures {
            table = table
                .column(Column::number(mean), |pair| of(pair).map(|e| e.mean))
                .column(Column::number(low), |pair| Some(of(pair)?.ci95?.0))
                .column(Column::number(high), |pair| Some(of(pair)?.ci95?.1));
        }
        table
            .column(Column::count("lower"), |pair| pair.difference.map(|_| pair.lower))
            .column(Column::count("n"), |pair| pair.figure.n)
            .into()
    }

    /// The scheduler that the others are compared with.
    fn first(&self) -> &str {
        self.schedulers.first().map(String::as_str).unwrap_or_default()
    }

    /// The differences of each figure in per cent, with their intervals; not of figures that never
    /// differ.
    pub fn plots(&self, samples: &Samples) -> Vec<Panel> {
        let pairs = self.pairs(samples);
        let first = self.first();
        let of = |metric: &'static Metric| {
            let of = || pairs.iter().filter(|pair| pair.metric.name == metric.name);
            let differs = of().filter_map(|pair| pair.difference).any(|d| d.range != (0.0, 0.0));
            let compared = of().filter(|pair| pair.relative.is_some());
            let rows: Vec<_> =
                compared.clone().map(|pair| format!("{} {}", pair.on, pair.scheduler)).collect();
            let series =
                (0_u32..).zip(compared).filter_map(|(row, pair)| self.row(row.into(), pair));
            (differs && !rows.is_empty()).then(|| Panel {
                title: metric.heading.to_owned(),
                x: Axis::new(format!("difference from {first}, %"), Scale::Linear),
                series: series.collect(),
                limits: vec![Limit { name: first.to_owned(), at: 0.0 }],
                rows,
                ..Panel::default()
            })
        };
        METRICS.iter().filter_map(of).collect()
    }

    /// The difference of a pair on this row.
    fn row(&self, row: f64, pair: &Pair<'_>) -> Option<Series> {
        let percent = |part: f64| part * 100.0;
        let Estimate { mean, ci95, .. } = pair.relative?;
        let mean = Point {
            interval: ci95.map(|(low, high)| (percent(low), percent(high))),
            name: format!("{} {}, mean difference, %", pair.on, pair.scheduler),
            ..Point::new(percent(mean), row)
        };
        Some(Series {
            name: "mean difference with its 95 % interval".to_owned(),
            colour: self.schedulers.iter().position(|name| name == pair.scheduler)?,
            look: Look::Mean,
            points: vec![mean],
        })
    }

    /// The page of `report.html`.
    pub fn page(&self, samples: &Samples, (seeds, command): (u64, &str)) -> Page {
        let first = self.first();
        let lead = format!(
            "Each scheduler under the same {seeds} seeds, in virtual time. A difference is taken seed by \
             seed, so that what a seed does to all of them cancels; its interval is of these differences."
        );
        let mut page = Page::new(self.schedulers.join(" and "), lead);
        let pairs = self.pairs(samples);
        let differ = pairs.iter().filter(|pair| pair.difference.is_some());
        let (shown, all) =
            differ.fold((0, 0), |(n, all), pair| (n + usize::from(pair.is_shown()), all + 1));
        page.cards.push(Card::new("Experiments", self.on.len().to_string(), self.on.join(", ")));
        page.cards.push(Card::new("Seeds", seeds.to_string(), "1 to that, of every cell"));
        let remark = format!("of {all} figures: their intervals leave out 0");
        page.cards.push(Card::new("Differences shown", shown.to_string(), remark));
        let plots = self.plots(samples).iter().map(Panel::to_markup).collect();
        page.section(format!("Differences from {first}"), [Block::Plots(plots)]);
        page.section("Every figure", [Block::Table(self.table(samples))]);
        page.section("The same again", [Block::Command(command.to_owned())]);
        page
    }
}

impl<'a> Pair<'a> {
    /// A figure of these samples, beside the first scheduler's; `None` where no sample has it.
    fn of(
        (on, scheduler): (&'a str, &'a str),
        metric: &'static Metric,
        samples: &[Sample],
        against: Option<&[Sample]>,
    ) -> Option<Self> {
        let mine = series(samples, metric.name);
        let figure = mine.estimate()?;
        let theirs = against.map_or(Vec::new(), |samples| series(samples, metric.name).each);
        let both = mine.each.iter().zip(&theirs).filter_map(|(a, b)| (*a).zip(*b));
        let (mine, theirs): (Vec<f64>, Vec<f64>) = both.unzip();
        let differences: Vec<f64> = mine.iter().zip(&theirs).map(|(a, b)| a - b).collect();
        let (sum, of) = (mine.iter().sum::<f64>(), theirs.iter().sum::<f64>());
        // As long as the pseudo-values', around the ratio of the means itself.
        let parts = Estimate::of(&jackknife([&mine, &theirs], |[a, b]| a / b - 1.0));
        let relative = parts.filter(|_| of != 0.0).map(|parts| {
            let mean = sum / of - 1.0;
            let ci95 =
                parts.ci95.map(|(low, high)| (low - parts.mean + mean, high - parts.mean + mean));
            Estimate { mean, ci95, ..parts }
        });
        Some(Self {
            on,
            scheduler,
            metric,
            figure,
            runs: samples.len(),
            difference: Estimate::of(&differences),
            relative,
            lower: differences.iter().filter(|d| **d < 0.0).count(),
        })
    }

    /// Whether the interval of the difference, as it is said, leaves out 0.
    pub fn is_shown(&self) -> bool {
        self.relative.or(self.difference).is_some_and(|d| d.ci95.is_some() && !d.covers(0.0))
    }

    fn figure_in_words(&self) -> String {
        let (Estimate { mean, ci95, n, .. }, d) = (self.figure, self.metric.digits);
        let interval = ci95.map(|(low, high)| format!(" [{low:.d$}, {high:.d$}]"));
        let of = (n < self.runs).then(|| format!(", of {n} of {} runs only", self.runs));
        format!("{mean:.d$}{}{}", interval.unwrap_or_default(), of.unwrap_or_default())
    }

    /// By how much it differs, and whether that is more than chance.
    pub fn in_words(&self) -> String {
        let Some(difference) = self.difference else { return String::new() };
        let digits = self.metric.digits;
        let text = match self.relative {
            Some(Estimate { mean, ci95: Some((low, high)), .. }) => {
                let percent = [mean, low, high].map(|part| format!("{:+.1}", part * 100.0));
                format!("{} % [{}, {}]", percent[0], percent[1], percent[2])
            }
            Some(Estimate { mean, .. }) => format!("{:+.1} %", mean * 100.0),
            None => format!("{:+.digits$}", difference.mean),
        };
        match difference.ci95 {
            None => format!("{text}, a single seed"),
            Some((low, high)) if (low, high) == (0.0, 0.0) => "the same".to_owned(),
            Some(_) if self.is_shown() => text,
            Some(_) => format!("{text}, may be chance"),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    fn sample(makespan: f64) -> Sample {
        let figures = [("makespan_s".to_owned(), makespan)].into();
        Sample { figures, batches: [].into(), steps: 0, decisions: String::new() }
    }

    fn pair(mine: &[f64], theirs: &[f64]) -> Pair<'static> {
        let of = |all: &[f64]| all.iter().copied().map(sample).collect::<Vec<_>>();
        let metric = Metric::named("makespan_s").unwrap();
        Pair::of(("j60", "hads"), metric, &of(mine), Some(&of(theirs))).unwrap()
    }

    /// Means that overlap may differ under every seed.
    #[test]
    fn differences_are_taken_seed_by_seed() {
        let pair = pair(&[102.0, 203.0, 302.0, 403.0], &[100.0, 200.0, 300.0, 400.0]);
        assert!(pair.is_shown() && pair.lower == 0, "{pair:?}");
        assert!((pair.difference.unwrap().mean - 2.5).abs() < 1e-9);
        assert!((pair.relative.unwrap().mean - 0.01).abs() < 1e-9, "{pair:?}");
        assert!(pair.in_words().starts_with("+1.0 % ["), "{}", pair.in_words());
        assert!(pair.figure.covers(250.0));
    }

    /// A scheduler is not better for the runs that it did not finish.
    #[test]
    fn runs_without_a_figure_are_told_of() {
        let unfinished = Sample { figures: [].into(), ..sample(0.0) };
        let samples = [sample(100.0), unfinished, sample(102.0)];
        let metric = Metric::named("makespan_s").unwrap();
        let pair = Pair::of(("j60", "hads"), metric, &samples, None).unwrap();
        let said = pair.figure_in_words();
        assert!(said.starts_with("101 [") && said.ends_with(", of 2 of 3 runs only"), "{said}");
    }

    #[test]
    fn what_may_be_chance_is_said() {
        let chance = pair(&[90.0, 115.0, 95.0], &[100.0, 100.0, 100.0]);
        assert!(!chance.is_shown() && chance.lower == 2);
        assert!(chance.in_words().ends_with("may be chance"), "{}", chance.in_words());
        assert_eq!(pair(&[5.0, 6.0], &[5.0, 6.0]).in_words(), "the same");
        assert!(pair(&[5.0], &[4.0]).in_words().ends_with("a single seed"));
    }

    #[test]
    fn what_is_asked_for_has_to_make_sense() {
        let of = |on: &[&str], schedulers: &[&str], set: &[&str]| {
            let [on, schedulers, set] = [on, schedulers, set]
                .map(|l| l.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
            Comparison::of(&on, &schedulers, &set, &Shared::default()).map_err(|e| e.to_string())
        };
        let cells = of(&["j60", "j60-sc2"], &["burst-hads", "hads"], &[]).unwrap().cells;
        let cases: Vec<_> = cells.iter().map(|cell| cell.case.as_str()).collect();
        assert_eq!(cases, ["j60/burst-hads", "j60/hads", "j60-sc2/burst-hads", "j60-sc2/hads"]);
        for (on, schedulers, set, says) in [
            (&["j60"][..], &["hads"][..], &[][..], "two or more"),
            (&["j60"], &["hads", "hads"], &[], "hads is named twice"),
            (&["j60", "j60"], &["hads", "burst-hads"], &[], "j60 is named twice"),
            (&["j60"], &["hads", "burst-hads"], &["seed=3"], "--seeds"),
            (&["j60"], &["hads", "easy"], &[], "easy"),
        ] {
            let error = of(on, schedulers, set).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
