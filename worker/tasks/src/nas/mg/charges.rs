//! The right-hand side of MG: ten points +1, ten points −1, all others 0.

use super::grid::GhostGrid;
use crate::meter::{EnoughWork, WorkMeter};
use crate::nas::random::NasRandom;

/// Number of points with charge +1, and of points with charge −1.
const CHARGES: usize = 10;

/// A grid point and the random number drawn for it.
#[derive(Clone, Copy)]
struct DrawnPoint {
    value: f64,
    k: usize,
    j: usize,
    i: usize,
}

/// Sets +1 at the points with the largest random numbers and −1 at the points with the smallest.
pub(super) fn place_charges(
    grid: &mut GhostGrid,
    seed: u64,
    meter: &mut WorkMeter,
) -> Result<(), EnoughWork> {
    grid.clear_grid(meter)?;
    let mut random = NasRandom::new(seed);
    let (mut largest, mut smallest) = (ExtremeDraws::new(1.0), ExtremeDraws::new(-1.0));
    for k in 1..=grid.points() {
        for j in 1..=grid.points() {
            for i in 1..=grid.points() {
                let draw = DrawnPoint { value: random.next(), k, j, i };
                largest.offer_draw(draw);
                smallest.offer_draw(draw);
            }
        }
        meter.count_work(1)?;
    }
    for ExtremeDraws { sign, kept } in [largest, smallest] {
        for DrawnPoint { k, j, i, .. } in kept {
            grid.row_mut(k, j)[i] = sign;
        }
    }
    grid.wrap_ghosts();
    Ok(())
}

/// The grid points whose random numbers have the greatest `sign · value` so far, ascending.
struct ExtremeDraws {
    sign: f64,
    kept: Vec<DrawnPoint>,
}

impl ExtremeDraws {
    fn new(sign: f64) -> Self {
        Self { sign, kept: Vec::with_capacity(CHARGES + 1) }
    }

    #[inline]
    fn offer_draw(&mut self, draw: DrawnPoint) {
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
