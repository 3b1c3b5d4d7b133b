//! The right-hand side of MG: ten points +1, ten points −1, all others 0.

use super::grid::Grid;
use crate::meter::{Enough, Meter};
use crate::nas::random::Random;

/// Points of each sign.
const CHARGES: usize = 10;

/// A point and the random number drawn for it.
#[derive(Clone, Copy)]
struct Draw {
    value: f64,
    k: usize,
    j: usize,
    i: usize,
}

/// Puts +1 where the largest and −1 where the smallest random numbers fall.
pub(super) fn place(grid: &mut Grid, seed: u64, meter: &mut Meter) -> Result<(), Enough> {
    grid.clear(meter)?;
    let mut random = Random::new(seed);
    let (mut largest, mut smallest) = (Extreme::new(1.0), Extreme::new(-1.0));
    for k in 1..=grid.points() {
        for j in 1..=grid.points() {
            for i in 1..=grid.points() {
                let draw = Draw { value: random.next(), k, j, i };
                largest.offer(draw);
                smallest.offer(draw);
            }
        }
        meter.work(1)?;
    }
    for Extreme { sign, kept } in [largest, smallest] {
        for Draw { k, j, i, .. } in kept {
            grid.row_mut(k, j)[i] = sign;
        }
    }
    grid.wrap();
    Ok(())
}

/// The draws with the greatest `sign · value`, in rising order.
struct Extreme {
    sign: f64,
    kept: Vec<Draw>,
}

impl Extreme {
    fn new(sign: f64) -> Self {
        Self { sign, kept: Vec::with_capacity(CHARGES + 1) }
    }

    #[inline]
    fn offer(&mut self, draw: Draw) {
        let key = self.sign * draw.value;
        if self.kept.len() == CHARGES && key <= self.sign * self.kept[0].value {
            return;
        }
        let at = self.kept.partition_point(|kept| self.sign * kept.value < key);
        self.kept.insert(at, draw);
        if self.kept.len() > CHARGES {
            self.kept.remove(0);
        }
    }
}
