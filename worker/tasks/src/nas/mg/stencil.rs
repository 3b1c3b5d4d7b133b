//! The four operators of MG, each a stencil of 27 points that depends on distance only.
//!
//! Every operator goes over its target plane by plane, one unit of work each, and leaves the
//! target's ghosts up to date.

use super::grid::GhostGrid;
use crate::meter::{EnoughWork, WorkMeter};

/// Weights of MG's discrete Laplacian for the centre, the edges and the corners of a 3³ cube; the faces have weight 0.
const LAPLACIAN: [f64; 3] = [-8.0 / 3.0, 1.0 / 6.0, 1.0 / 12.0];

/// Sets the residual r = v − A u, where A is the discrete Laplacian.
pub(super) fn set_residual(
    u: &GhostGrid,
    v: &GhostGrid,
    r: &mut GhostGrid,
    meter: &mut WorkMeter,
) -> Result<(), EnoughWork> {
    let mut sums = RowSums::new(u.side());
    for k in 1..=u.points() {
        for j in 1..=u.points() {
            let around = u.rows_around(k, j);
            sums.add_up(&around);
            apply_laplacian(around[1][1], &sums, v.row(k, j), r.row_mut(k, j));
        }
        meter.count_work(1)?;
    }
    r.wrap_ghosts();
    Ok(())
}

/// Subtracts the discrete Laplacian of u from the residual: r = r − A u.
pub(super) fn subtract_laplacian(
    u: &GhostGrid,
    r: &mut GhostGrid,
    meter: &mut WorkMeter,
) -> Result<(), EnoughWork> {
    let mut sums = RowSums::new(u.side());
    let mut right = vec![0.0; u.side()];
    for k in 1..=u.points() {
        for j in 1..=u.points() {
            let around = u.rows_around(k, j);
            sums.add_up(&around);
            right.copy_from_slice(r.row(k, j));
            apply_laplacian(around[1][1], &sums, &right, r.row_mut(k, j));
        }
        meter.count_work(1)?;
    }
    r.wrap_ghosts();
    Ok(())
}

/// Applies the smoother S to the residual, and adds the result to the solution: u = u + S r.
pub(super) fn smooth_solution(
    r: &GhostGrid,
    u: &mut GhostGrid,
    weights: &[f64; 3],
    meter: &mut WorkMeter,
) -> Result<(), EnoughWork> {
    let mut sums = RowSums::new(r.side());
    for k in 1..=r.points() {
        for j in 1..=r.points() {
            let around = r.rows_around(k, j);
            sums.add_up(&around);
            apply_smoother(around[1][1], &sums, weights, u.row_mut(k, j));
        }
        meter.count_work(1)?;
    }
    u.wrap_ghosts();
    Ok(())
}

/// Computes the residual on the next coarser grid: a weighted mean around every second point.
pub(super) fn restrict_residual(
    fine: &GhostGrid,
    coarse: &mut GhostGrid,
    meter: &mut WorkMeter,
) -> Result<(), EnoughWork> {
    let mut sums = RowSums::new(fine.side());
    for k in 1..=coarse.points() {
        for j in 1..=coarse.points() {
            let around = fine.rows_around(2 * k, 2 * j);
            sums.add_up(&around);
            let centre = around[1][1];
            let RowSums { faces, edges } = &sums;
            let row = coarse.row_mut(k, j);
            let last = row.len() - 1;
            for (i, target) in row[..last].iter_mut().enumerate().skip(1) {
                let i = 2 * i;
                *target = 0.5 * centre[i]
                    + 0.25 * (centre[i - 1] + centre[i + 1] + faces[i])
                    + 0.125 * (faces[i - 1] + faces[i + 1] + edges[i])
                    + 0.0625 * (edges[i - 1] + edges[i + 1]);
            }
        }
        meter.count_work(1)?;
    }
    coarse.wrap_ghosts();
    Ok(())
}

/// Adds the coarse correction to the fine grid, by trilinear interpolation.
///
/// One unit of work per coarse plane; the ghosts of the fine grid come out right because
/// those of the coarse grid are.
pub(super) fn prolong_correction(
    coarse: &GhostGrid,
    fine: &mut GhostGrid,
    meter: &mut WorkMeter,
) -> Result<(), EnoughWork> {
    let n = coarse.points();
    let mut mean = vec![0.0; coarse.side()];
    for k in 0..=n {
        for j in 0..=n {
            let here = coarse.row(k, j);
            interpolate_row(here, fine.row_mut(2 * k, 2 * j));
            let next_j = coarse.row(k, j + 1);
            let next_k = coarse.row(k + 1, j);
            let next_both = coarse.row(k + 1, j + 1);
            for (i, mean) in mean.iter_mut().enumerate() {
                *mean = 0.5 * (next_j[i] + here[i]);
            }
            interpolate_row(&mean, fine.row_mut(2 * k, 2 * j + 1));
            for (i, mean) in mean.iter_mut().enumerate() {
                *mean = 0.5 * (next_k[i] + here[i]);
            }
            interpolate_row(&mean, fine.row_mut(2 * k + 1, 2 * j));
            for (i, mean) in mean.iter_mut().enumerate() {
                *mean = 0.25 * (next_both[i] + next_k[i] + (next_j[i] + here[i]));
            }
            interpolate_row(&mean, fine.row_mut(2 * k + 1, 2 * j + 1));
        }
        // The plane of ghosts at the near side is counted with the first.
        if k > 0 {
            meter.count_work(1)?;
        }
    }
    Ok(())
}

/// Adds an interpolated coarse row to a fine one: the points themselves, and means between them.
fn interpolate_row(coarse: &[f64], fine: &mut [f64]) {
    let (pairs, _) = fine.as_chunks_mut::<2>();
    for (pair, ends) in pairs.iter_mut().zip(coarse.windows(2)) {
        pair[0] += ends[0];
        pair[1] += 0.5 * (ends[0] + ends[1]);
    }
}

/// For each point of a row, the sums of its neighbours in the eight rows around.
struct RowSums {
    /// Sums of the four nearest points in the neighbouring rows.
    faces: Vec<f64>,
    /// Sums of the four diagonal points in the neighbouring rows.
    edges: Vec<f64>,
}

impl RowSums {
    fn new(side: usize) -> Self {
        Self { faces: vec![0.0; side], edges: vec![0.0; side] }
    }

    fn add_up(&mut self, around: &[[&[f64]; 3]; 3]) {
        let n = self.faces.len();
        let [below, here, above] = around;
        let (faces, edges) = (&mut self.faces[..n], &mut self.edges[..n]);
        for i in 0..n {
            faces[i] = here[0][i] + here[2][i] + below[1][i] + above[1][i];
            edges[i] = below[0][i] + below[2][i] + above[0][i] + above[2][i];
        }
    }
}

/// Computes out = right − A u along one row, where A is the discrete Laplacian.
fn apply_laplacian(u: &[f64], sums: &RowSums, right: &[f64], out: &mut [f64]) {
    let n = out.len();
    let (u, right) = (&u[..n], &right[..n]);
    let (faces, edges) = (&sums.faces[..n], &sums.edges[..n]);
    let [centre, edge, corner] = LAPLACIAN;
    for i in 1..n - 1 {
        out[i] = right[i]
            - centre * u[i]
            - edge * (edges[i] + faces[i - 1] + faces[i + 1])
            - corner * (edges[i - 1] + edges[i + 1]);
    }
}

/// Adds the smoothed residual along one row: u = u + S r.
fn apply_smoother(r: &[f64], sums: &RowSums, weights: &[f64; 3], u: &mut [f64]) {
    let n = u.len();
    let r = &r[..n];
    let (faces, edges) = (&sums.faces[..n], &sums.edges[..n]);
    let [centre, face, edge] = *weights;
    for i in 1..n - 1 {
        u[i] += centre * r[i]
            + face * (r[i - 1] + r[i + 1] + faces[i])
            + edge * (edges[i] + faces[i - 1] + faces[i + 1]);
    }
}
