//! EP: pairs of Gaussian deviates by the polar method, counted by square annulus.

use super::input::KernelInput;
use super::random::NasRandom;
use super::{RepeatedKernel, with_computed};
use crate::class::ProblemClass;
use crate::meter::{EnoughWork, WorkMeter};
use crate::result::Figure;

const SEED: u64 = 271_828_183;
/// Pairs of random numbers per unit of work.
const BLOCK: u64 = 1 << 12;
const TOLERANCE: f64 = 1e-8;

/// A class's problem and its answer (NPB3.3-SER `EP/ep.f`; the counts are what that program
/// prints).
struct EpProblem {
    log2_pairs: u32,
    sums: [f64; 2],
    accepted: Option<f64>,
    annuli: Option<[u64; 10]>,
}

fn class_problem(class: ProblemClass) -> EpProblem {
    match class {
        ProblemClass::S => EpProblem {
            log2_pairs: 24,
            sums: [-3.247_834_652_034_74e3, -6.958_407_078_382_297e3],
            accepted: Some(13_176_389.0),
            annuli: Some([6_140_517, 5_865_300, 1_100_361, 68_546, 1_648, 17, 0, 0, 0, 0]),
        },
        ProblemClass::W => EpProblem {
            log2_pairs: 25,
            sums: [-2.863_319_731_645_753e3, -6.320_053_679_109_499e3],
            accepted: Some(26_354_769.0),
            annuli: Some([12_281_576, 11_729_692, 2_202_726, 137_368, 3_371, 36, 0, 0, 0, 0]),
        },
        ProblemClass::A => EpProblem {
            log2_pairs: 28,
            sums: [-4.295_875_165_629_892e3, -1.580_732_573_678_431e4],
            accepted: Some(210_832_767.0),
            annuli: Some([98_257_395, 93_827_014, 17_611_549, 1_110_028, 26_536, 245, 0, 0, 0, 0]),
        },
        ProblemClass::B => EpProblem {
            log2_pairs: 30,
            sums: [4.033_815_542_441_498e4, -2.660_669_192_809_235e4],
            accepted: None,
            annuli: None,
        },
    }
}

impl EpProblem {
    fn tally_figures(&self) -> Vec<Figure> {
        let Self { sums, accepted, annuli, .. } = self;
        let mut figures = vec![
            Figure::expected_figure("sum of X", Some(sums[0]), TOLERANCE),
            Figure::expected_figure("sum of Y", Some(sums[1]), TOLERANCE),
        ];
        if let (Some(accepted), Some(annuli)) = (accepted, annuli) {
            figures.push(Figure::expected_figure("Gaussian pairs", Some(*accepted), 0.0));
            for (l, reference) in annuli.iter().enumerate() {
                let name = format!("pairs in annulus {l}");
                figures.push(Figure::expected_figure(&name, Some(*reference as f64), 0.0));
            }
        }
        figures
    }
}

/// Returns EP's figures for a NAS class with their published values; the computed values are still missing.
pub(crate) fn class_references(class: ProblemClass) -> Vec<Figure> {
    class_problem(class).tally_figures()
}

/// The NAS kernel EP: it counts Gaussian deviates that are made from pairs of random numbers.
pub(crate) struct EpKernel {
    problem: EpProblem,
    seed: u64,
}

impl EpKernel {
    pub(crate) fn new(class: ProblemClass) -> Self {
        Self { problem: class_problem(class), seed: SEED }
    }
}

impl RepeatedKernel for EpKernel {
    fn units(&self) -> u64 {
        (1 << self.problem.log2_pairs) / BLOCK
    }

    fn run(
        &mut self,
        input: KernelInput,
        meter: &mut WorkMeter,
    ) -> Result<Vec<Figure>, EnoughWork> {
        let mut random = NasRandom::new(input.seed(self.seed));
        let mut tally = PairTally::default();
        for _ in 0..self.units() {
            for _ in 0..BLOCK {
                tally.add(2.0 * random.next() - 1.0, 2.0 * random.next() - 1.0);
            }
            meter.count_work(1)?;
        }
        let count = tally.annuli.iter().sum::<u64>() as f64;
        let annuli = tally.annuli.iter().map(|ours| *ours as f64);
        let ours = tally.sums.into_iter().chain([count]).chain(annuli);
        Ok(with_computed(self.problem.tally_figures(), ours))
    }
}

/// Sums and counts of the accepted pairs.
#[derive(Default)]
struct PairTally {
    sums: [f64; 2],
    annuli: [u64; 10],
}

impl PairTally {
    /// Counts a random point of the square; points outside the unit circle are rejected.
    #[inline]
    fn add(&mut self, x: f64, y: f64) {
        let t = x * x + y * y;
        if t <= 1.0 {
            let scale = (-2.0 * t.ln() / t).sqrt();
            let (gx, gy) = (x * scale, y * scale);
            self.annuli[gx.abs().max(gy.abs()) as usize] += 1;
            self.sums[0] += gx;
            self.sums[1] += gy;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn class_s_verifies() {
        check::verifies_again(&mut EpKernel::new(ProblemClass::S));
    }

    #[test]
    fn a_drawn_input_is_another_problem() {
        check::hangs_on_its_input(&mut EpKernel::new(ProblemClass::S));
    }

    #[test]
    fn class_w_verifies() {
        check::verifies(&mut EpKernel::new(ProblemClass::W));
    }

    #[test]
    fn another_seed_does_not_verify() {
        let mut ep = EpKernel::new(ProblemClass::S);
        ep.seed += 2;
        check::fails(&mut ep);
    }
}
