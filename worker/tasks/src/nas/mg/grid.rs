//! A periodic cubic grid with one layer of ghost points on every side.

use std::array::from_fn;

use crate::meter::{EnoughWork, WorkMeter};

/// Grid of values on n³ points and on a layer of ghost points around them; the first index varies fastest.
pub(super) struct GhostGrid {
    /// Number of points along each side of the grid, including one ghost point at each end.
    side: usize,
    values: Vec<f64>,
}

impl GhostGrid {
    /// Makes a grid of `points`³ zeros.
    pub(super) fn new(points: usize) -> Self {
        let side = points + 2;
        Self { side, values: vec![0.0; side * side * side] }
    }

    /// Returns the number of points along each side of the grid, without ghost points.
    pub(super) fn points(&self) -> usize {
        self.side - 2
    }

    /// Returns the number of points per side, with ghosts: the length of a row.
    pub(super) fn side(&self) -> usize {
        self.side
    }

    /// Sets all points and ghosts to zero; each plane, ghosts included, is a unit of work.
    pub(super) fn clear_grid(&mut self, meter: &mut WorkMeter) -> Result<(), EnoughWork> {
        for plane in self.values.chunks_mut(self.side * self.side) {
            plane.fill(0.0);
            meter.count_work(1)?;
        }
        Ok(())
    }

    /// Returns row `j` of plane `k`, ghosts included.
    pub(super) fn row(&self, k: usize, j: usize) -> &[f64] {
        let start = (k * self.side + j) * self.side;
        &self.values[start..start + self.side]
    }

    pub(super) fn row_mut(&mut self, k: usize, j: usize) -> &mut [f64] {
        let start = (k * self.side + j) * self.side;
        &mut self.values[start..start + self.side]
    }

    /// Returns the nine rows around row `j` of plane `k`: `[k - 1, k, k + 1][j - 1, j, j + 1]`.
    pub(super) fn rows_around(&self, k: usize, j: usize) -> [[&[f64]; 3]; 3] {
        from_fn(|above| from_fn(|behind| self.row(k + above - 1, j + behind - 1)))
    }

    /// Copies the outermost points to the ghosts on the opposite side.
    pub(super) fn wrap_ghosts(&mut self) {
        let (n, side) = (self.points(), self.side);
        let plane = side * side;
        for k in 1..=n {
            for j in 1..=n {
                let row = self.row_mut(k, j);
                row[0] = row[n];
                row[n + 1] = row[1];
            }
            let start = k * plane;
            self.values.copy_within(start + n * side..start + (n + 1) * side, start);
            self.values.copy_within(start + side..start + 2 * side, start + (n + 1) * side);
        }
        self.values.copy_within(n * plane..(n + 1) * plane, 0);
        self.values.copy_within(plane..2 * plane, (n + 1) * plane);
    }

    /// Returns the root mean square over the points; each plane is a unit of work.
    pub(super) fn rms(&self, meter: &mut WorkMeter) -> Result<f64, EnoughWork> {
        let n = self.points();
        let mut sum = 0.0;
        for k in 1..=n {
            for j in 1..=n {
                sum += self.row(k, j)[1..=n].iter().map(|x| x * x).sum::<f64>();
            }
            meter.count_work(1)?;
        }
        Ok((sum / (n * n * n) as f64).sqrt())
    }
}
