//! The printed numbers (means of three runs on EC2).

use dormouse_policies::BagSchedulerName::{self, BurstHads, Hads, IlsOnDemand};

/// The jobs, as experiments are named.
pub(crate) const JOBS: [&str; 4] = ["j60", "j80", "j100", "ed200"];

/// The scenarios of Table V.
pub(crate) const SCENARIOS: [&str; 5] = ["sc1", "sc2", "sc3", "sc4", "sc5"];

/// The schedulers, in the order of Table IV.
pub(crate) const SCHEDULERS: [BagSchedulerName; 3] = [BurstHads, Hads, IlsOnDemand];

/// Table IV: dollars and seconds of each scheduler, by job.
pub(crate) const TABLE_4: [[(f64, f64); 3]; 4] = [
    [(0.112, 1274.0), (0.067, 2290.0), (0.271, 1112.0)],
    [(0.151, 1329.0), (0.104, 2295.0), (0.312, 1190.0)],
    [(0.176, 1660.0), (0.112, 2332.0), (0.371, 1462.0)],
    [(0.357, 2275.0), (0.267, 2580.0), (0.698, 1887.0)],
];

/// A row of Table VI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row6 {
    pub(crate) hibernations: f64,
    pub(crate) resumes: f64,
    /// Regular on-demand VMs launched by the dynamic module: Burst-HADS, HADS.
    pub(crate) on_demand: [f64; 2],
    /// Dollars and seconds: Burst-HADS, HADS.
    pub(crate) figures: [(f64, f64); 2],
}

const fn row(
    hibernations: f64,
    resumes: f64,
    on_demand: [f64; 2],
    burst: (f64, f64),
    hads: (f64, f64),
) -> Row6 {
    Row6 { hibernations, resumes, on_demand, figures: [burst, hads] }
}

/// Table VI, by job and scenario.
pub(crate) const TABLE_6: [[Row6; 5]; 4] = [
    [
        row(0.66, 0.00, [0.00, 0.00], (0.119, 1274.0), (0.091, 2620.0)),
        row(3.33, 0.00, [1.33, 2.33], (0.204, 1277.0), (0.257, 2549.0)),
        row(2.33, 2.33, [1.33, 0.00], (0.127, 1752.0), (0.101, 2539.0)),
        row(5.33, 4.00, [1.67, 0.00], (0.142, 1857.0), (0.119, 2634.0)),
        row(2.66, 1.00, [1.33, 2.00], (0.150, 1445.0), (0.169, 2359.0)),
    ],
    [
        row(1.00, 0.00, [1.33, 0.33], (0.167, 1419.0), (0.150, 2581.0)),
        row(5.00, 0.00, [1.00, 3.00], (0.210, 2267.0), (0.298, 2591.0)),
        row(3.00, 1.00, [1.67, 1.00], (0.164, 1367.0), (0.147, 2602.0)),
        row(9.66, 7.66, [1.00, 2.00], (0.244, 2488.0), (0.212, 2607.0)),
        row(3.00, 1.00, [1.33, 3.00], (0.195, 1589.0), (0.246, 2529.0)),
    ],
    [
        row(2.00, 0.00, [0.00, 0.00], (0.191, 1798.0), (0.157, 2332.0)),
        row(7.00, 0.00, [1.33, 3.00], (0.212, 1900.0), (0.353, 2518.0)),
        row(6.00, 3.00, [1.67, 1.00], (0.201, 1925.0), (0.166, 2636.0)),
        row(11.00, 9.00, [1.00, 0.00], (0.286, 2453.0), (0.278, 2591.0)),
        row(3.66, 2.00, [1.00, 2.50], (0.166, 1547.0), (0.189, 2543.0)),
    ],
    [
        row(3.00, 0.00, [1.00, 0.33], (0.388, 2327.0), (0.314, 2680.0)),
        row(8.00, 0.00, [2.00, 5.00], (0.482, 2448.0), (0.512, 2676.0)),
        row(6.66, 4.00, [2.33, 1.00], (0.427, 2345.0), (0.387, 2672.0)),
        row(9.00, 6.00, [2.00, 1.00], (0.411, 2560.0), (0.389, 2690.0)),
        row(4.33, 2.33, [1.67, 3.00], (0.367, 2342.0), (0.467, 2674.0)),
    ],
];

/// What the text says of Table IV, in per cent: how much lower Burst-HADS's makespan is than
/// HADS's, by job.
pub(crate) const FASTER_THAN_HADS: [f64; 4] = [44.37, 42.09, 28.82, 11.82];

/// How much higher its cost is.
pub(crate) const DEARER_THAN_HADS: [f64; 4] = [66.34, 44.54, 57.55, 33.71];

#[cfg(test)]
mod tests {
    use super::*;

    /// Slips of copying would show: the text's own averages of Table VI come out again.
    #[test]
    fn the_texts_averages_follow_from_the_table() {
        let rows = || TABLE_6.iter().flatten();
        let mean = |f: &dyn Fn(&Row6) -> f64| rows().map(f).sum::<f64>() / 20.0;
        let faster = mean(&|r| 100.0 * (1.0 - r.figures[0].1 / r.figures[1].1));
        let dearer = mean(&|r| 100.0 * (r.figures[0].0 / r.figures[1].0 - 1.0));
        assert!((faster - 25.87).abs() < 0.1, "{faster}");
        assert!((dearer - 1.92).abs() < 0.1, "{dearer}");
        let against_ils = |n: usize| {
            let all = TABLE_6.iter().zip(&TABLE_4).flat_map(|(rows, job)| {
                rows.iter().map(move |r| 100.0 * (1.0 - r.figures[n].0 / job[2].0))
            });
            all.sum::<f64>() / 20.0
        };
        assert!((against_ils(0) - 41.80).abs() < 0.3, "{}", against_ils(0));
        assert!((against_ils(1) - 39.65).abs() < 0.5, "{}", against_ils(1));
        // Its percentages come from unrounded figures.
        for (job, said) in TABLE_4.iter().zip(FASTER_THAN_HADS) {
            assert!((100.0 * (1.0 - job[0].1 / job[1].1) - said).abs() < 0.2);
        }
        for (job, said) in TABLE_4.iter().zip(DEARER_THAN_HADS) {
            assert!((100.0 * (job[0].0 / job[1].0 - 1.0) - said).abs() < 1.5);
        }
    }
}
