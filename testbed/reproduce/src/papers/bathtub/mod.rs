//! Temporally constrained preemptions: Kadupitiya, Jadhao, Sharma, "Modeling The Temporally
//! Constrained Preemptions of Transient Cloud VMs" (HPDC 2020), Figures 1, 2 and 4 to 9.
//!
//! Figures 1, 2 and 7 use a record of lifetimes; Figures 4 to 6 and 8 use laws alone; Figure 9 uses
//! experiments. A case names the figure and its parameters; the words of a figure name the age or
//! length.

mod checkpoints;
mod draw;
mod evidence;
mod laws;
mod lifetimes;
mod order;
mod reuse;
mod running_time;

use std::collections::BTreeMap;

use dormouse_analysis::RESAMPLED;

use draw::RecordDraw;
pub(super) use evidence::LifetimeEvidence;

/// Data file of this paper: its experiments, printed values and claims.
pub(super) const DATA: &str = include_str!("paper.toml");

/// Figures of a case by their names, such as `WORD/NAME`.
type Figures = BTreeMap<String, f64>;

/// Figures of a case that do not depend on a seed: from the whole record, or from the published laws. `None` if there
/// is no such case.
pub(super) fn exact(case: &str, evidence: &LifetimeEvidence) -> Option<Figures> {
    figures(case, evidence, RecordDraw::Whole)
}

/// Figures of a case that depend on a seed: from a resample of the record, or from a law fitted to
/// lifetimes drawn from a published law, each named like the exact figure with the suffix
/// [`RESAMPLED`]; and simulated figures. `None` if there is no such case.
pub(super) fn drawn(case: &str, evidence: &LifetimeEvidence, seed: u64) -> Option<Figures> {
    if let Some(mode) = case.strip_prefix("simulated/") {
        return checkpoints::simulated(mode, evidence, seed);
    }
    let resampled = figures(case, evidence, RecordDraw::Resample(seed)).unwrap_or_default();
    Some(resampled.into_iter().map(|(name, x)| (name + RESAMPLED, x)).collect())
}

fn figures(case: &str, evidence: &LifetimeEvidence, draw: RecordDraw) -> Option<Figures> {
    let (what, of) = case.split_once('/')?;
    match what {
        "cdf" => lifetimes::taken(of, evidence, draw),
        "fit" => lifetimes::fits(of, evidence, draw),
        "order" => order::order(of, evidence, draw),
        "waste" => running_time::wasted_by_length(of, evidence, draw),
        "start" => reuse::by_start(of, evidence, draw),
        "length" => reuse::by_length(of, evidence, draw),
        "sooner" => reuse::sooner_by_length(of, evidence, draw),
        "wrong" => reuse::by_a_wrong_model(of, evidence, draw),
        "begin" => checkpoints::by_start(of, evidence, draw),
        "takes" => checkpoints::by_length(of, evidence, draw),
        "schedule" => checkpoints::schedule(of, evidence, draw),
        "simulated" => Some(Figures::new()),
        _ => None,
    }
}

/// A number as floating point.
#[expect(clippy::cast_precision_loss, reason = "hours, minutes and VMs are few")]
const fn number(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dormouse_cloud::lifetimes::span_of_hours;
    use dormouse_fit::{Record, RecordedLife};
    use dormouse_units::RandomStream;

    use super::super::named;
    use super::super::own::FigureSource;
    use super::*;

    /// Sixty VMs of each type and zone that the figures are about, drawn from the authors' law.
    fn evidence() -> LifetimeEvidence {
        let law = laws::published("authors").expect("a law").lifetimes;
        let mut chance = RandomStream::new(1, "test", 0);
        let mut lives = Vec::new();
        for kind in [2, 4, 8, 16, 32] {
            for zone in ["us-central1-c", "us-east1-b"] {
                lives.extend((0..60).filter_map(|n: u32| {
                    Some(RecordedLife {
                        span: law.law().draw_lifetime(&mut chance)?,
                        was_taken: !n.is_multiple_of(7),
                        kind: format!("n1-highcpu-{kind}"),
                        zone: zone.to_owned(),
                        workload: if n.is_multiple_of(9) { "idle" } else { "non-idle" }.to_owned(),
                        hour: (n % 24).to_string(),
                        day: "Monday".to_owned(),
                    })
                }));
            }
        }
        LifetimeEvidence::new(Some(Record { lives, ..Record::default() }))
    }

    /// Every figure that depends on recorded VMs, or on a law fitted to them, is also computed from resamples, and
    /// differs between resamples: so every such figure of the paper has an interval.
    #[test]
    fn every_figure_that_rests_on_a_fit_is_resampled() {
        let (paper, _) = named("bathtub").expect("it is right");
        let evidence = evidence();
        let own = paper.parts.iter().filter(|part| part.own == Some(FigureSource::Lifetimes));
        let cells = own.flat_map(|part| paper.cells_of(part));
        let cases: BTreeSet<String> =
            cells.filter_map(|cell| Some(cell.rsplit_once('/')?.0.to_owned())).collect();
        // The authors' recursion takes long, and is looked at by itself.
        let quick = cases.iter().filter(|case| !case.contains("dp-artifact"));
        let chanceless =
            ["waste/uniform", "begin/young-daly-artifact", "takes/young-daly-artifact"];
        for case in quick.filter(|case| !case.starts_with("simulated/")) {
            let whole = exact(case, &evidence).unwrap_or_else(|| panic!("{case} is no case"));
            let drawn = [1, 2].map(|seed| drawn(case, &evidence, seed).expect("a case"));
            let resampled = |name: &String| {
                drawn
                    .iter()
                    .map(|figures| figures.get(&format!("{name}{RESAMPLED}")))
                    .collect::<Vec<_>>()
            };
            let counts = ["/vms", "/vms_within", "/work_min", "/sum_min"];
            let (mut missing, mut moved) = (Vec::new(), 0);
            for (name, x) in &whole {
                let all = resampled(name);
                if all.contains(&None) && !counts.iter().any(|count| name.ends_with(count)) {
                    missing.push(name);
                }
                moved += usize::from(all.iter().flatten().any(|other| *other != x));
            }
            assert_eq!(missing, Vec::<&String>::new(), "{case}");
            let is_exact = chanceless.contains(&case.as_str()) || case == "schedule/as-read-out";
            assert_eq!(moved == 0, is_exact, "{case}: {moved} of {} figures move", whole.len());
        }
    }

    #[test]
    fn resamples_of_one_seed_are_those_of_one_fit() {
        let evidence = evidence();
        let of = |case: &str, seed, name: &str| {
            drawn(case, &evidence, seed).expect("a case")[&format!("{name}{RESAMPLED}")]
        };
        // Eq. 7 by what is lost: both figures are of the same law, or their difference would be of two.
        for seed in [1, 2, 3] {
            let law = evidence.law("n1-highcpu-16", RecordDraw::Resample(seed)).expect("a law");
            let increase = of("waste/n1-highcpu-16", seed, "job-6/increase_h");
            let wasted = of("waste/n1-highcpu-16", seed, "job-6/wasted_h");
            let failure = of("start/memoryless", seed, "age-0/failure");
            assert!((wasted * failure - increase).abs() < 1e-9, "{wasted} {failure} {increase}");
            assert!((law.law().cdf(6.0) - failure).abs() < 1e-12);
        }
        let [one, other] = [1, 2].map(|seed| of("waste/n1-highcpu-16", seed, "job-6/increase_h"));
        assert!((one - other).abs() > 1e-6, "{one} {other}");
    }

    #[test]
    fn without_a_record_there_are_the_published_laws_alone() {
        let none = LifetimeEvidence::default();
        for (case, is) in [
            ("waste/n1-highcpu-16", true),
            ("length/conditional@all", true),
            ("begin/dp@n1-highcpu-16", true),
            ("waste/n1-highcpu-16@us-east1-b", false),
            ("cdf/all/preempted", false),
            ("fit/all", false),
            ("order/night-over-day", false),
            ("wrong/own-model", false),
            ("wrong/memoryless", false),
            ("start/sideways", false),
        ] {
            assert_eq!(exact(case, &none).is_some(), is, "{case}");
        }
        let same = span_of_hours(24.0);
        let law = none.law("authors", RecordDraw::Whole);
        assert!(
            matches!(law, Some(dormouse_cloud::Lifetimes::Bathtub(law)) if Some(law.b) == same)
        );
    }
}
