//! IS: ranks of integer keys by counting.

use super::input::KernelInput;
use super::random::{NasRandom, SEED};
use super::{RepeatedKernel, with_computed};
use crate::class::ProblemClass;
use crate::meter::{EnoughWork, WorkMeter};
use crate::result::Figure;

/// Number of rankings of the keys per repetition; before each ranking two keys change.
const ITERATIONS: usize = 10;
/// Number of keys or counters per unit of work.
const BLOCK: usize = 1 << 15;

/// A class's problem and its answer (NPB3.3-SER `IS/is.c`).
struct IsProblem {
    log2_keys: u32,
    log2_max_key: u32,
    /// Positions of the test keys, whose ranks are compared with published ones in every iteration.
    positions: [usize; 5],
    /// Published ranks of the test keys, before [`rank_drift`] is added.
    ranks: [i64; 5],
}

fn class_problem(class: ProblemClass) -> IsProblem {
    match class {
        ProblemClass::S => IsProblem {
            log2_keys: 16,
            log2_max_key: 11,
            positions: [48_427, 17_148, 23_627, 62_548, 4_431],
            ranks: [0, 18, 346, 64_917, 65_463],
        },
        ProblemClass::W => IsProblem {
            log2_keys: 20,
            log2_max_key: 16,
            positions: [357_773, 934_767, 875_723, 898_999, 404_505],
            ranks: [1_249, 11_698, 1_039_987, 1_043_896, 1_048_018],
        },
        ProblemClass::A => IsProblem {
            log2_keys: 23,
            log2_max_key: 19,
            positions: [2_112_377, 662_041, 5_336_171, 3_642_833, 4_250_760],
            ranks: [104, 17_523, 123_928, 8_288_932, 8_388_264],
        },
        ProblemClass::B => IsProblem {
            log2_keys: 25,
            log2_max_key: 21,
            positions: [41_869, 812_306, 5_102_857, 18_232_239, 26_860_214],
            ranks: [33_422_937, 10_244, 59_149, 33_135_281, 99],
        },
    }
}

/// Returns by how much the published rank of test key `i` changes in iteration `it`, as two keys change before each ranking.
fn rank_drift(class: ProblemClass, i: usize, it: i64) -> i64 {
    match class {
        ProblemClass::S if i <= 2 => it,
        ProblemClass::W if i < 2 => it - 2,
        ProblemClass::A if i <= 2 => it - 1,
        ProblemClass::A => 1 - it,
        ProblemClass::B if matches!(i, 1 | 2 | 4) => it,
        _ => -it,
    }
}

/// Returns IS's figures with their expected values, which are the same for every NAS class; the computed values are still missing.
pub(crate) fn key_references() -> Vec<Figure> {
    vec![
        Figure::expected_figure("right ranks of test keys", Some(50.0), 0.0),
        Figure::expected_figure("keys out of order", Some(0.0), 0.0),
    ]
}

/// The NAS kernel IS: it ranks and sorts integers.
pub(crate) struct IsKernel {
    class: ProblemClass,
    problem: IsProblem,
    seed: u64,
    keys: Vec<u32>,
    /// For each value, the number of keys that are at most equal to it; valid after a ranking.
    ranks: Vec<u32>,
    sorted: Vec<u32>,
    /// Ranks of the test keys, iteration by iteration.
    found: Vec<u64>,
}

impl IsKernel {
    pub(crate) fn new(class: ProblemClass) -> Self {
        let problem = class_problem(class);
        Self {
            class,
            keys: vec![0; 1 << problem.log2_keys],
            ranks: vec![0; 1 << problem.log2_max_key],
            sorted: vec![0; 1 << problem.log2_keys],
            found: Vec::with_capacity(5 * ITERATIONS),
            problem,
            seed: SEED,
        }
    }

    fn generate_keys(&mut self, seed: u64, meter: &mut WorkMeter) -> Result<(), EnoughWork> {
        let quarter = (self.ranks.len() / 4) as f64;
        let mut random = NasRandom::new(seed);
        for block in self.keys.chunks_mut(BLOCK) {
            for key in block {
                let sum = random.next() + random.next() + random.next() + random.next();
                *key = (quarter * sum) as u32;
            }
            meter.count_work(1)?;
        }
        Ok(())
    }

    fn rank_keys(&mut self, meter: &mut WorkMeter) -> Result<(), EnoughWork> {
        self.ranks.fill(0);
        for block in self.keys.chunks(BLOCK) {
            for key in block {
                self.ranks[*key as usize] += 1;
            }
            meter.count_work(1)?;
        }
        let mut sum = 0;
        for block in self.ranks.chunks_mut(BLOCK) {
            for count in block {
                sum += *count;
                *count = sum;
            }
            meter.count_work(1)?;
        }
        Ok(())
    }

    /// Returns the number of test keys with the published rank in iteration `it`; also stores the ranks.
    fn right_ranks(&mut self, it: usize, tested: &[u32; 5]) -> u32 {
        let mut right = 0;
        for (i, key) in tested.iter().enumerate() {
            let below = key.checked_sub(1).map_or(0, |k| self.ranks[k as usize]);
            let expected = self.problem.ranks[i] + rank_drift(self.class, i, it as i64);
            right += u32::from(i64::from(below) == expected);
            self.found.push(below.into());
        }
        right
    }

    /// Sorts the keys by rank and counts neighbours in the wrong order.
    fn out_of_order(&mut self, meter: &mut WorkMeter) -> Result<u64, EnoughWork> {
        for block in self.keys.chunks(BLOCK) {
            for key in block {
                let rank = &mut self.ranks[*key as usize];
                *rank -= 1;
                self.sorted[*rank as usize] = *key;
            }
            meter.count_work(1)?;
        }
        let (mut wrong, mut last) = (0, 0);
        for block in self.sorted.chunks(BLOCK) {
            for key in block {
                wrong += u64::from(*key < last);
                last = *key;
            }
            meter.count_work(1)?;
        }
        Ok(wrong)
    }
}

impl RepeatedKernel for IsKernel {
    fn units(&self) -> u64 {
        let key_blocks = self.keys.len().div_ceil(BLOCK);
        let rank_blocks = self.ranks.len().div_ceil(BLOCK);
        (key_blocks * (ITERATIONS + 3) + rank_blocks * ITERATIONS) as u64
    }

    fn run(
        &mut self,
        input: KernelInput,
        meter: &mut WorkMeter,
    ) -> Result<Vec<Figure>, EnoughWork> {
        self.generate_keys(input.seed(self.seed), meter)?;
        self.found.clear();
        let mut right = 0;
        for it in 1..=ITERATIONS {
            self.keys[it] = it as u32;
            self.keys[it + ITERATIONS] = (self.ranks.len() - it) as u32;
            let tested = self.problem.positions.map(|at| self.keys[at]);
            self.rank_keys(meter)?;
            right += self.right_ranks(it, &tested);
        }
        let wrong = self.out_of_order(meter)?;
        Ok(with_computed(key_references(), [f64::from(right), wrong as f64]))
    }

    fn traces(&self) -> &[u64] {
        &self.found
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn class_s_verifies() {
        check::verifies_again(&mut IsKernel::new(ProblemClass::S));
    }

    #[test]
    fn a_drawn_input_is_another_problem() {
        check::hangs_on_its_input(&mut IsKernel::new(ProblemClass::S));
    }

    #[test]
    fn class_w_verifies() {
        check::verifies(&mut IsKernel::new(ProblemClass::W));
    }

    #[test]
    fn class_a_verifies() {
        check::verifies(&mut IsKernel::new(ProblemClass::A));
    }

    #[test]
    fn another_seed_does_not_verify() {
        let mut is = IsKernel::new(ProblemClass::S);
        is.seed += 2;
        check::fails(&mut is);
    }
}
