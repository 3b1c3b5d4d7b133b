//! What the text says of its tables, checked on ours.

use dormouse_policies::BagSchedulerName::{self, BurstHads, Hads, IlsOnDemand};

use super::compare::below;
use super::paper::{DEARER_THAN_HADS, FASTER_THAN_HADS, JOBS, SCENARIOS};
use super::targets::{Results, costs, makespans};
use crate::sweep::Sample;
use dormouse_workload::Estimate;

/// Per cent of ours may be this many points from per cent of the paper's.
const POINTS: f64 = 15.0;

/// A claim of the text and what became of it.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claim in words.
    pub text: String,
    /// Ours.
    pub ours: String,
    /// Whether ours agrees.
    pub holds: bool,
}

fn claim(holds: bool, text: impl Into<String>, ours: impl Into<String>) -> Claim {
    Claim { text: text.into(), ours: ours.into(), holds }
}

/// A claim of a percentage: the sign and, within 15 points, the size.
fn percentage(text: &str, said: f64, ours: f64) -> Claim {
    let holds = ours.signum() == said.signum() && (ours - said).abs() <= POINTS;
    let text = format!("{text}: {said:.2} % (holds within {POINTS:.0} points)");
    claim(holds, text, format!("{ours:.2} %"))
}

fn mean(values: &[f64]) -> Option<f64> {
    Estimate::of(values).map(|e| e.mean)
}

/// Every claim that these results speak of.
pub(crate) fn claims(results: &Results) -> Vec<Claim> {
    let mut all = table_4(results);
    all.extend(table_6(results));
    all
}

type Figures = fn(&[Sample]) -> Vec<f64>;

/// By how many per cent a scheduler is below another in one cell.
fn gain(
    results: &Results,
    (job, scenario): (&str, Option<&str>),
    who: BagSchedulerName,
    whom: BagSchedulerName,
    figures: Figures,
) -> Option<f64> {
    // ILS on-demand has no spot VMs: Table IV's runs stand for every scenario.
    let scenario_of = |who| if who == IlsOnDemand { None } else { scenario };
    let ours = figures(results.of(job, scenario_of(who), who)?);
    let theirs = figures(results.of(job, scenario_of(whom), whom)?);
    below(&ours, &theirs).map(|e| e.mean)
}

fn table_4(results: &Results) -> Vec<Claim> {
    let mut all = Vec::new();
    let gains = |whom, figures: Figures| -> Vec<f64> {
        let of = |job| gain(results, (job, None), BurstHads, whom, figures);
        JOBS.into_iter().filter_map(of).collect()
    };
    let (faster, cheaper) = (gains(Hads, makespans), gains(Hads, costs));
    for ((job, said), ours) in JOBS.iter().zip(FASTER_THAN_HADS).zip(faster) {
        let text = format!("{job}, no hibernation: Burst-HADS's makespan is below HADS's by");
        all.push(percentage(&text, said, ours));
    }
    for ((job, said), ours) in JOBS.iter().zip(DEARER_THAN_HADS).zip(cheaper) {
        let text = format!("{job}, no hibernation: Burst-HADS costs more than HADS by");
        all.push(percentage(&text, said, -ours));
    }
    if let Some(ours) = mean(&gains(IlsOnDemand, costs)) {
        all.push(percentage(
            "no hibernation: Burst-HADS costs less than ILS on-demand, on average by",
            52.0,
            ours,
        ));
    }
    if let Some(ours) = mean(&gains(IlsOnDemand, makespans)) {
        all.push(percentage(
            "no hibernation: Burst-HADS takes longer than ILS on-demand, on average by",
            15.0,
            -ours,
        ));
    }
    all
}

fn table_6(results: &Results) -> Vec<Claim> {
    let cases: Vec<_> =
        JOBS.into_iter().flat_map(|job| SCENARIOS.map(|sc| (job, Some(sc)))).collect();
    let gains = |who, whom, figures: Figures| -> Vec<((&str, Option<&str>), f64)> {
        let of = |&case| Some((case, gain(results, case, who, whom, figures)?));
        cases.iter().filter_map(of).collect()
    };
    let faster = gains(BurstHads, Hads, makespans);
    if faster.is_empty() {
        return Vec::new();
    }
    let values = |all: &[(_, f64)]| all.iter().map(|&(_, v)| v).collect::<Vec<f64>>();
    let cheaper = gains(BurstHads, Hads, costs);
    let mut all = vec![deadlines(results)];

    let lower = faster.iter().filter(|(_, v)| *v > 0.0).count();
    let least = values(&faster).into_iter().fold(f64::INFINITY, f64::min);
    all.push(claim(
        lower == faster.len(),
        "with hibernations: Burst-HADS is faster than HADS in every cell",
        format!("in {lower} of {}, at least by {least:.2} %", faster.len()),
    ));
    all.extend(
        mean(&values(&faster)).map(|ours| {
            percentage("with hibernations: faster than HADS, on average by", 25.87, ours)
        }),
    );
    all.extend(
        mean(&values(&cheaper)).map(|ours| {
            percentage("with hibernations: dearer than HADS, on average by", 1.92, -ours)
        }),
    );
    for (job, said) in [("j60", 40.10), ("ed200", 10.24)] {
        let of_job: Vec<_> =
            faster.iter().filter(|((j, _), _)| *j == job).map(|&(_, v)| v).collect();
        let text = format!("{job}, with hibernations: faster than HADS, on average by");
        all.extend(mean(&of_job).map(|ours| percentage(&text, said, ours)));
    }
    for scenario in ["sc2", "sc5"] {
        let there: Vec<_> = cheaper.iter().filter(|((_, sc), _)| *sc == Some(scenario)).collect();
        let figures: Vec<_> =
            there.iter().map(|((job, _), v)| format!("{job} {v:+.1} %")).collect();
        all.push(claim(
            there.iter().all(|(_, v)| *v > 0.0),
            format!("{scenario}: Burst-HADS is cheaper than HADS on every job"),
            format!("below by: {}", figures.join(", ")),
        ));
        all.push(fewer_on_demand(results, scenario));
    }
    all.push(near_the_deadline(results, &cases));
    for (who, said) in [(BurstHads, 41.80), (Hads, 39.65)] {
        let against = gains(who, IlsOnDemand, costs);
        if against.is_empty() {
            continue;
        }
        let lower = against.iter().filter(|(_, v)| *v > 0.0).count();
        all.push(claim(
            lower == against.len(),
            format!("{who} is cheaper than ILS on-demand in every cell of Table VI"),
            format!("in {lower} of {}", against.len()),
        ));
        let text = format!("{who} is cheaper than ILS on-demand, on average by");
        all.extend(mean(&values(&against)).map(|ours| percentage(&text, said, ours)));
    }
    for (who, said) in [(BurstHads, 30.96), (Hads, 26.66)] {
        let ours = gain(results, ("ed200", Some("sc2")), who, IlsOnDemand, costs);
        let text = format!("ed200-sc2: {who} is cheaper than ILS on-demand by");
        all.extend(ours.map(|ours| percentage(&text, said, ours)));
    }
    all
}

fn deadlines(results: &Results) -> Claim {
    let samples = || results.all.iter().flat_map(|(_, samples)| samples);
    let (met, total) = (samples().filter(|s| s.deadline_met).count(), samples().count());
    claim(met == total, "the deadline is met in every run", format!("in {met} of {total}"))
}

fn fewer_on_demand(results: &Results, scenario: &str) -> Claim {
    let launched = |job, who| {
        let samples = results.of(job, Some(scenario), who)?;
        mean(&samples.iter().map(|s| f64::from(s.on_demand_later)).collect::<Vec<_>>())
    };
    let pairs: Vec<_> = JOBS
        .iter()
        .filter_map(|job| Some((job, launched(job, BurstHads)?, launched(job, Hads)?)))
        .collect();
    let figures: Vec<_> =
        pairs.iter().map(|(job, b, h)| format!("{job} {b:.2} against {h:.2}")).collect();
    claim(
        pairs.iter().all(|(_, b, h)| b < h),
        format!("{scenario}: Burst-HADS launches fewer regular on-demand VMs than HADS"),
        figures.join(", "),
    )
}

/// "HADS's makespan gets closer to the deadline whenever a hibernation occurs."
fn near_the_deadline(results: &Results, cases: &[(&str, Option<&str>)]) -> Claim {
    let hit = |s: &&Sample| s.hibernations > 0;
    let ends: Vec<_> = cases
        .iter()
        .filter_map(|&(job, sc)| results.of(job, sc, Hads))
        .flat_map(|samples| makespans(&samples.iter().filter(hit).cloned().collect::<Vec<_>>()))
        .collect();
    let ours = mean(&ends).unwrap_or(0.0);
    claim(
        ours > 2_500.0,
        "HADS's makespan comes close to the deadline when VMs hibernate (2571 s on average; \
         holds above 2500 s)",
        format!("{ours:.0} s on average of the runs with a hibernation"),
    )
}
