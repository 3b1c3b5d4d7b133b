//! What the paper says in words, with our figure for each.

use dormouse_batch::Algorithm;

use super::cell::{Cell, Outcome, Variant};
use super::figures::{COSTS, cost_variant};
use super::grid::{LOADS, Results};
use super::workloads::Source;
use crate::batch_means::{BatchMeans, Estimate};

/// A statement of the paper, or one like it about a workload that the paper does not have.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) case: String,
    pub(super) metric: &'static str,
    /// The paper's figure, if it gives one.
    pub(super) paper: Option<f64>,
    pub(super) ours: Estimate,
}

type Metric = (&'static str, &'static str, fn(&Outcome) -> &BatchMeans, f64, f64);

/// Metric names for mean and best, and the paper's figures for them.
const METRICS: [Metric; 2] = [
    ("response_improvement_mean_%", "response_improvement_best_%", |o| &o.response, 23.1, 41.1),
    ("slowdown_improvement_mean_%", "slowdown_improvement_best_%", |o| &o.slowdown, 69.3, 82.9),
];

pub(super) fn all(results: &Results) -> Vec<Claim> {
    let mut claims = Vec::new();
    let paper = [Source::FwLike, Source::JwLike];
    let has = |source: &Source| results.keys().any(|cell| cell.source == *source);
    if paper.iter().all(has) {
        let case = "fw-like and jw-like/measy over easy";
        improvements(results, case, &paper, Algorithm::Measy, true, &mut claims);
    }
    for source in Source::ALL {
        for algorithm in [Algorithm::Keasy, Algorithm::Reasy, Algorithm::Measy] {
            let case = format!("{}/{algorithm} over easy", source.name());
            improvements(results, &case, &[source], algorithm, false, &mut claims);
        }
        for variant in [Variant::NoUsage, Variant::FullUsage] {
            robustness(results, source, variant, &mut claims);
        }
        break_even(results, source, &mut claims);
        for variant in [Variant::Standard, Variant::ExactEstimates, Variant::EachProcess] {
            order(results, source, variant, &mut claims);
        }
    }
    claims
}

/// Percent by which `cell` is below the cell that it is measured against.
fn below(results: &Results, cell: Cell, than: Cell, of: Metric) -> Option<Estimate> {
    let (ours, theirs) = (results.get(&cell)?, results.get(&than)?);
    Some(of.2(ours).percent_below(of.2(theirs)))
}

/// Mean and best improvement over EASY, over all loads.
fn improvements(
    results: &Results,
    case: &str,
    sources: &[Source],
    algorithm: Algorithm,
    is_papers: bool,
    claims: &mut Vec<Claim>,
) {
    for metric in METRICS {
        let each: Vec<Estimate> = sources
            .iter()
            .flat_map(|&source| LOADS.map(|load| (source, load)))
            .filter_map(|(source, load)| {
                let cell = Cell { source, variant: Variant::Standard, load, algorithm };
                below(results, cell, Cell { algorithm: Algorithm::Easy, ..cell }, metric)
            })
            .collect();
        let Some(best) = each.iter().copied().max_by(|a, b| a.mean.total_cmp(&b.mean)) else {
            return;
        };
        let means: Vec<f64> = each.iter().map(|e| e.mean).collect();
        let (mean_name, best_name, _, mean, most) = metric;
        let case = case.to_owned();
        let paper = is_papers.then_some(mean);
        claims.push(Claim {
            case: case.clone(),
            metric: mean_name,
            paper,
            ours: Estimate::of(&means),
        });
        let paper = is_papers.then_some(most);
        claims.push(Claim { case, metric: best_name, paper, ours: best });
    }
}

/// "Both MEASY and KEASY outperform EASY", "MEASY is always better than KEASY": the least
/// improvement over all loads; above zero is the claim.
fn robustness(results: &Results, source: Source, variant: Variant, claims: &mut Vec<Claim>) {
    for (ours, theirs) in [
        (Algorithm::Keasy, Algorithm::Easy),
        (Algorithm::Measy, Algorithm::Easy),
        (Algorithm::Measy, Algorithm::Keasy),
    ] {
        let their_variant = if theirs == Algorithm::Easy { Variant::Standard } else { variant };
        let least = LOADS
            .iter()
            .filter_map(|&load| {
                let cell = Cell { source, variant, load, algorithm: ours };
                let than = Cell { variant: their_variant, algorithm: theirs, ..cell };
                below(results, cell, than, METRICS[0])
            })
            .min_by(|a, b| a.mean.total_cmp(&b.mean));
        if let Some(ours_least) = least {
            let case = format!("{}/{}/{ours} over {theirs}", source.name(), variant.name());
            let metric = "response_improvement_least_%";
            claims.push(Claim { case, metric, paper: None, ours: ours_least });
        }
    }
}

/// At how many of the loads one scheduler's mean response is below another's: "REASY
/// produces the worst performance among our algorithms. For JWload, it is even worse than
/// EASY", "the best performance is achieved by MEASY".
fn order(results: &Results, source: Source, variant: Variant, claims: &mut Vec<Claim>) {
    use Algorithm::{Easy, Keasy, Measy, Reasy};
    for (one, other) in [(Measy, Keasy), (Measy, Reasy), (Keasy, Reasy), (Reasy, Easy)] {
        let is_below: Vec<f64> = LOADS
            .iter()
            .filter_map(|&load| {
                let cell = Cell { source, variant, load, algorithm: one };
                // One tier has no utilisation.
                let same = other != Easy || variant != Variant::EachProcess;
                let than = if same { variant } else { Variant::Standard };
                let than = Cell { algorithm: other, variant: than, ..cell };
                let below = below(results, cell, than, METRICS[0])?;
                Some(if below.mean > 0.0 { 1.0 } else { 0.0 })
            })
            .collect();
        if !is_below.is_empty() {
            let count = is_below.iter().sum();
            let ours = Estimate { mean: count, low: count, high: count, n: is_below.len() };
            let case = format!("{}/{}/{one} below {other}", source.name(), variant.name());
            claims.push(Claim { case, metric: "loads", paper: None, ours });
        }
    }
}

/// The migration cost at which MEASY's response is no longer below KEASY's: the least over
/// all loads ("better can always be obtained" below it) and the greatest.
fn break_even(results: &Results, source: Source, claims: &mut Vec<Claim>) {
    let costs: Vec<f64> = LOADS
        .iter()
        .filter_map(|&load| {
            let keasy =
                Cell { source, variant: Variant::Standard, load, algorithm: Algorithm::Keasy };
            crossing(results, keasy)
        })
        .collect();
    if costs.is_empty() {
        return;
    }
    let (paper_low, paper_high) = match source {
        Source::FwLike => (Some(900.0), Some(1500.0)),
        Source::JwLike => (Some(480.0), Some(900.0)),
        Source::Kth => (None, None),
    };
    let case = format!("{}/measy against keasy", source.name());
    for (metric, paper, cost) in [
        ("break_even_cost_least_s", paper_low, costs.iter().copied().fold(f64::MAX, f64::min)),
        ("break_even_cost_most_s", paper_high, costs.iter().copied().fold(0.0, f64::max)),
    ] {
        let ours = Estimate { mean: cost, low: cost, high: cost, n: costs.len() };
        claims.push(Claim { case: case.clone(), metric, paper, ours });
    }
}

/// By straight lines between the costs; the largest cost where MEASY is ahead at all of them.
fn crossing(results: &Results, keasy: Cell) -> Option<f64> {
    let bar = results.get(&keasy)?.response.estimate().mean;
    let mut last: Option<(f64, f64)> = None;
    for cost in COSTS {
        let cell = Cell { variant: cost_variant(cost), algorithm: Algorithm::Measy, ..keasy };
        let over = results.get(&cell)?.response.estimate().mean - bar;
        let cost = f64::from(cost);
        if over >= 0.0 {
            return Some(last.map_or(cost, |(c, o)| c + (cost - c) * -o / (over - o)));
        }
        last = Some((cost, over));
    }
    last.map(|(cost, _)| cost)
}
