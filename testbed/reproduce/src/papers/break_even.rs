//! Break-even cost of a scheme, at the first or the last of several loads.

use dormouse_estimate::{Estimate, Series};

use super::claim::CellCombination;

/// Cost at which a gain vanishes, at the load where that is soonest ([`CellCombination::Least`]) or latest
/// ([`CellCombination::Most`]).
///
/// `gains` has for each load the gain at each of the ascending `costs`, sample by sample; a gain is positive. A gain
/// can only fall with its cost, so at each load the means are replaced by the nearest non-increasing ones (least
/// squares, by pooling adjacent violators; Ayer and others 1955), and the cost is where the straight lines between them
/// cross 0. So a gain that is negative by chance at one cost, and positive at the next three, does not put the
/// break-even there. The interval is the jackknife's over the samples, which repeats the choice of the load. A crossing
/// outside the costs counts as the first or last cost. The series has the jackknife's samples. `None` if no sample has
/// every gain; a single sample has no interval.
pub(super) fn break_even(
    gains: &[Vec<Series>],
    costs: &[f64],
    over: CellCombination,
) -> Option<(Estimate, Series)> {
    let all = || gains.iter().flatten();
    let count = all().map(|series| series.each.len()).min()?;
    let whole: Vec<usize> =
        (0..count).filter(|sample| all().all(|series| series.each[*sample].is_some())).collect();
    let at = |without: Option<usize>| {
        let left = || whole.iter().filter(move |sample| Some(**sample) != without);
        let mean = |series: &Series| {
            let sum: f64 = left().filter_map(|sample| series.each[*sample]).sum();
            sum / number(left().count())
        };
        let of_load = |load: &Vec<Series>| {
            crossing_cost(&never_rising(load.iter().map(mean).collect()), costs)
        };
        let pick = if over == CellCombination::Most { f64::max } else { f64::min };
        gains.iter().filter_map(of_load).reduce(pick)
    };
    let n = whole.len();
    let ours = if n == 0 { None } else { at(None) }?;
    if n == 1 {
        return Some((Estimate::exact(ours, 1), Series::of_runs(vec![Some(ours)])));
    }
    let pseudo = |sample: &usize| Some(number(n) * ours - number(n - 1) * at(Some(*sample))?);
    let pseudo: Vec<f64> = whole.iter().map(pseudo).collect::<Option<_>>()?;
    let (least, most) = (*costs.first()?, *costs.last()?);
    let of_tried = |x: f64| x.clamp(least, most);
    let estimate = Estimate::from_samples(&pseudo)?;
    let is_saturated = all().any(|series| series.is_saturated);
    let ci95 = estimate.ci95.filter(|_| !is_saturated);
    let ci95 = ci95.map(|(low, high)| (of_tried(low), of_tried(high)));
    let estimate = Estimate { mean: of_tried(estimate.mean), ci95, is_saturated, ..estimate };
    Some((estimate, Series::of_runs(pseudo.into_iter().map(Some).collect())))
}

/// The nearest non-increasing values: neighbours that rise are replaced by their mean.
fn never_rising(values: Vec<f64>) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for value in values {
        let mut pool = (value, 1);
        while let Some(before) = pools.pop_if(|before| mean(*before) < mean(pool)) {
            pool = (before.0 + pool.0, before.1 + pool.1);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|pool| std::iter::repeat_n(mean(pool), pool.1)).collect()
}

fn mean((sum, count): (f64, usize)) -> f64 {
    sum / number(count)
}

/// Cost at which falling gains reach 0; the first cost if no gain is above 0, and the last cost if all gains are. `None` without
/// gains.
fn crossing_cost(gains: &[f64], costs: &[f64]) -> Option<f64> {
    let mut last: Option<(f64, f64)> = None;
    for (&cost, &gain) in costs.iter().zip(gains) {
        if gain <= 0.0 {
            return Some(last.map_or(cost, |(c, g)| c + (cost - c) * g / (g - gain)));
        }
        last = Some((cost, gain));
    }
    last.map(|(cost, _)| cost)
}

#[expect(clippy::cast_precision_loss, reason = "a count of samples")]
const fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: [f64; 5] = [20.0, 120.0, 480.0, 900.0, 1500.0];

    /// The gains of a load: at each cost those of all samples.
    fn load(gains: [&[f64]; 5]) -> Vec<Series> {
        let series = |each: &[f64]| Series::of_runs(each.iter().copied().map(Some).collect());
        gains.map(series).into()
    }

    #[test]
    fn neighbours_that_rise_are_pooled() {
        assert_eq!(never_rising(vec![5.0, 3.0, 3.0, 1.0]), [5.0, 3.0, 3.0, 1.0]);
        assert_eq!(never_rising(vec![5.0, -1.0, 3.0, 1.0, -2.0]), [5.0, 1.0, 1.0, 1.0, -2.0]);
        assert_eq!(never_rising(vec![1.0, 2.0, 6.0]), [3.0, 3.0, 3.0]);
    }

    #[test]
    fn a_gain_is_gone_where_its_line_crosses_zero() {
        assert_eq!(crossing_cost(&[3.0, 2.0, 1.0, -1.0, -2.0], &COSTS), Some(690.0));
        assert_eq!(crossing_cost(&[-1.0, -2.0, -3.0, -4.0, -5.0], &COSTS), Some(20.0));
        assert_eq!(crossing_cost(&[5.0, 4.0, 3.0, 2.0, 1.0], &COSTS), Some(1500.0));
        assert_eq!(crossing_cost(&[], &[]), None);
    }

    /// The gain of a load is negative by chance at a cost of 120 s, positive at 480 s, and really gone at about 980 s.
    /// Plain lines between the means would put the break-even cost at 70 s.
    #[test]
    fn a_gain_that_is_lost_once_by_chance_is_not_gone() {
        let noisy = load([&[1.0, 1.2], &[-0.9, -1.3], &[2.4, 2.0], &[0.3, 0.1], &[-1.4, -1.2]]);
        let (least, _) = break_even(&[noisy], &COSTS, CellCombination::Least).expect("two samples");
        let (low, high) = least.ci95.expect("two samples");
        assert!((950.0..1_000.0).contains(&least.mean), "{least:?}");
        assert!(low < least.mean && least.mean < high && least.n == 2, "{least:?}");
    }

    /// Ten samples of two loads whose gains are gone at 600 s and at 1,200 s but for some noise.
    #[test]
    fn the_soonest_and_the_latest_load_have_intervals_around_the_truth() {
        let noise = [0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1, 0.4, -0.3, 0.05];
        let until = |gone: f64, turn: usize| {
            let at = |k: usize, cost: f64| -> Vec<f64> {
                let noise = |n: usize| noise[(n * 3 + k + turn) % noise.len()];
                (0..10).map(|n| (gone - cost) / 300.0 + noise(n)).collect()
            };
            let gains: Vec<Vec<f64>> =
                COSTS.iter().enumerate().map(|(k, cost)| at(k, *cost)).collect();
            load([&gains[0], &gains[1], &gains[2], &gains[3], &gains[4]])
        };
        let loads = [until(600.0, 0), until(1_200.0, 1)];
        for (over, truth) in [(CellCombination::Least, 600.0), (CellCombination::Most, 1_200.0)] {
            let (ours, _) = break_even(&loads, &COSTS, over).expect("ten samples");
            let (low, high) = ours.ci95.expect("ten samples");
            assert!(low < truth && truth < high && high - low < 200.0, "{over:?}: {ours:?}");
        }
    }

    #[test]
    fn one_sample_has_no_interval_and_a_torn_one_does_not_count() {
        let one = load([&[3.0], &[2.0], &[1.0], &[-1.0], &[-2.0]]);
        let one_load = std::slice::from_ref(&one);
        let (ours, _) = break_even(one_load, &COSTS, CellCombination::Least).expect("a sample");
        assert_eq!((ours.mean, ours.ci95, ours.n), (690.0, None, 1));
        let mut torn = load([&[3.0, 9.0], &[2.0, 9.0], &[1.0, 9.0], &[-1.0, 9.0], &[-2.0, 9.0]]);
        torn[2].each[1] = None;
        assert_eq!(break_even(&[torn], &COSTS, CellCombination::Least).map(|of| of.0), Some(ours));
        let mut nothing = one;
        nothing[0].each[0] = None;
        assert_eq!(break_even(&[nothing], &COSTS, CellCombination::Least), None);
    }
}
