//! IS: ranks of integer keys by counting.

use super::input::KernelInput;
use super::random::{Random, SEED};
use super::{Kernel, computed};
use crate::class::Class;
use crate::meter::{Enough, Meter};
use crate::result::Figure;

/// Rankings of a repetition; before each, two keys change.
const ITERATIONS: usize = 10;
/// Keys, or counters, per unit of work.
const BLOCK: usize = 1 << 15;

/// The problem and its answer (NPB3.3-SER `IS/is.c`).
struct Problem {
    log2_keys: u32,
    log2_max_key: u32,
    /// Positions whose keys are tested in every iteration.
    positions: [usize; 5],
    /// Their ranks, up to [`drift`].
    ranks: [i64; 5],
}

fn problem(class: Class) -> Problem {
    match class {
        Class::S => Problem {
            log2_keys: 16,
            log2_max_key: 11,
            positions: [48_427, 17_148, 23_627, 62_548, 4_431],
            ranks: [0, 18, 346, 64_917, 65_463],
        },
        Class::W => Problem {
            log2_keys: 20,
            log2_max_key: 16,
            positions: [357_773, 934_767, 875_723, 898_999, 404_505],
            ranks: [1_249, 11_698, 1_039_987, 1_043_896, 1_048_018],
        },
        Class::A => Problem {
            log2_keys: 23,
            log2_max_key: 19,
            positions: [2_112_377, 662_041, 5_336_171, 3_642_833, 4_250_760],
            ranks: [104, 17_523, 123_928, 8_288_932, 8_388_264],
        },
        Class::B => Problem {
            log2_keys: 25,
            log2_max_key: 21,
            positions: [41_869, 812_306, 5_102_857, 18_232_239, 26_860_214],
            ranks: [33_422_937, 10_244, 59_149, 33_135_281, 99],
        },
    }
}

/// The distance by which the rank of test key `i` has moved in iteration `it`, by the keys that changed.
fn drift(class: Class, i: usize, it: i64) -> i64 {
    match class {
        Class::S if i <= 2 => it,
        Class::W if i < 2 => it - 2,
        Class::A if i <= 2 => it - 1,
        Class::A => 1 - it,
        Class::B if matches!(i, 1 | 2 | 4) => it,
        _ => -it,
    }
}

/// The figures of every class, to be computed.
pub(crate) fn references() -> Vec<Figure> {
    vec![
        Figure::expected("right ranks of test keys", Some(50.0), 0.0),
        Figure::expected("keys out of order", Some(0.0), 0.0),
    ]
}

/// The IS kernel.
pub(crate) struct Is {
    class: Class,
    problem: Problem,
    seed: u64,
    keys: Vec<u32>,
    /// After a ranking: keys smaller than or equal to each value.
    ranks: Vec<u32>,
    sorted: Vec<u32>,
    /// The ranks of the test keys, iteration by iteration.
    found: Vec<u64>,
}

impl Is {
    pub(crate) fn new(class: Class) -> Self {
        let problem = problem(class);
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

    fn generate(&mut self, seed: u64, meter: &mut Meter) -> Result<(), Enough> {
        let quarter = (self.ranks.len() / 4) as f64;
        let mut random = Random::new(seed);
        for block in self.keys.chunks_mut(BLOCK) {
            for key in block {
                let sum = random.next() + random.next() + random.next() + random.next();
                *key = (quarter * sum) as u32;
            }
            meter.work(1)?;
        }
        Ok(())
    }

    fn rank(&mut self, meter: &mut Meter) -> Result<(), Enough> {
        self.ranks.fill(0);
        for block in self.keys.chunks(BLOCK) {
            for key in block {
                self.ranks[*key as usize] += 1;
            }
            meter.work(1)?;
        }
        let mut sum = 0;
        for block in self.ranks.chunks_mut(BLOCK) {
            for count in block {
                sum += *count;
                *count = sum;
            }
            meter.work(1)?;
        }
        Ok(())
    }

    /// The number of test keys that have the published rank in iteration `it`; keeps the ranks.
    fn right_ranks(&mut self, it: usize, tested: &[u32; 5]) -> u32 {
        let mut right = 0;
        for (i, key) in tested.iter().enumerate() {
            let below = key.checked_sub(1).map_or(0, |k| self.ranks[k as usize]);
            let expected = self.problem.ranks[i] + drift(self.class, i, it as i64);
            right += u32::from(i64::from(below) == expected);
            self.found.push(below.into());
        }
        right
    }

    /// Puts the keys in order by their ranks and counts neighbours that are not.
    fn out_of_order(&mut self, meter: &mut Meter) -> Result<u64, Enough> {
        for block in self.keys.chunks(BLOCK) {
            for key in block {
                let rank = &mut self.ranks[*key as usize];
                *rank -= 1;
                self.sorted[*rank as usize] = *key;
            }
            meter.work(1)?;
        }
        let (mut wrong, mut last) = (0, 0);
        for block in self.sorted.chunks(BLOCK) {
            for key in block {
                wrong += u64::from(*key < last);
                last = *key;
            }
            meter.work(1)?;
        }
        Ok(wrong)
    }
}

impl Kernel for Is {
    fn units(&self) -> u64 {
        let key_blocks = self.keys.len().div_ceil(BLOCK);
        let rank_blocks = self.ranks.len().div_ceil(BLOCK);
        (key_blocks * (ITERATIONS + 3) + rank_blocks * ITERATIONS) as u64
    }

    fn run(&mut self, input: KernelInput, meter: &mut Meter) -> Result<Vec<Figure>, Enough> {
        self.generate(input.seed(self.seed), meter)?;
        self.found.clear();
        let mut right = 0;
        for it in 1..=ITERATIONS {
            self.keys[it] = it as u32;
            self.keys[it + ITERATIONS] = (self.ranks.len() - it) as u32;
            let tested = self.problem.positions.map(|at| self.keys[at]);
            self.rank(meter)?;
            right += self.right_ranks(it, &tested);
        }
        let wrong = self.out_of_order(meter)?;
        Ok(computed(references(), [f64::from(right), wrong as f64]))
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
        check::verifies_again(&mut Is::new(Class::S));
    }

    #[test]
    fn a_drawn_input_is_another_problem() {
        check::hangs_on_its_input(&mut Is::new(Class::S));
    }

    #[test]
    fn class_w_verifies() {
        check::verifies(&mut Is::new(Class::W));
    }

    #[test]
    fn class_a_verifies() {
        check::verifies(&mut Is::new(Class::A));
    }

    #[test]
    fn another_seed_does_not_verify() {
        let mut is = Is::new(Class::S);
        is.seed += 2;
        check::fails(&mut is);
    }
}
