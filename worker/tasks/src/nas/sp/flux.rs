//! The spatial operator: central differences of the fluxes, viscous terms and dissipation.

use std::array::from_fn;
use std::ops::Range;

use super::field::GridField;
use super::gas::{C1, C1C5, C2, C3C4, CON43, DIFFUSION, DISSIPATION, INVERSE_DENSITY, KINETIC};

/// Coefficients of fourth differences at the first point next to a boundary, at the second, and further inside; mirrored at the far
/// side.
const FOURTH: [[f64; 5]; 3] =
    [[0.0, 0.0, 5.0, -4.0, 1.0], [0.0, -4.0, 6.0, -4.0, 1.0], [1.0, -4.0, 6.0, -4.0, 1.0]];

/// SP's spatial difference operator for one grid spacing h.
pub(super) struct FluxOperator {
    points: usize,
    /// 1/(2h), the factor of central first differences.
    first: f64,
    /// 1/h², the factor of second differences.
    second: f64,
}

/// A stretch of points with its neighbours in one direction: five offsets of `u`, from −2 to 2, and
/// three of the derived field, from −1 to 1.
struct PointStretch<'a> {
    u: [[&'a [f64]; 5]; 5],
    gas: [[&'a [f64]; 3]; 3],
}

impl FluxOperator {
    pub(super) fn new(points: usize) -> Self {
        let cells = (points - 1) as f64;
        Self { points, first: 0.5 * cells, second: cells * cells }
    }

    /// Computes rhs = scale · (forcing + spatial operator applied to u) inside plane `k`.
    pub(super) fn add_up(
        &self,
        u: &GridField<5>,
        gas: &GridField<3>,
        forcing: &GridField<5>,
        rhs: &mut GridField<5>,
        scale: f64,
        k: usize,
    ) {
        let last = self.points - 1;
        let inner = 1..last;
        for j in inner.clone() {
            let mut out = rhs.row_mut(k, j);
            for (out, forcing) in out.iter_mut().zip(forcing.row(k, j)) {
                out[1..last].copy_from_slice(&forcing[1..last]);
            }
            self.along_x(&u.row(k, j), &gas.row(k, j), &mut out);

            let mut out = out.map(|quantity| &mut quantity[1..last]);
            let near = |at: usize, offset: usize| (at + offset).saturating_sub(2).min(last);
            let stretch = PointStretch {
                u: from_fn(|o| cut_rows(&u.row(k, near(j, o)), inner.clone())),
                gas: from_fn(|o| cut_rows(&gas.row(k, near(j, o + 1)), inner.clone())),
            };
            self.add(1, j, &stretch, &mut out);
            let stretch = PointStretch {
                u: from_fn(|o| cut_rows(&u.row(near(k, o), j), inner.clone())),
                gas: from_fn(|o| cut_rows(&gas.row(near(k, o + 1), j), inner.clone())),
            };
            self.add(2, k, &stretch, &mut out);
            for quantity in out {
                quantity.iter_mut().for_each(|x| *x *= scale);
            }
        }
    }

    /// Adds the operator's terms along x, where the stretches overlap; the two points at either end have their own stencils.
    fn along_x(&self, u: &[&[f64]; 5], gas: &[&[f64]; 3], out: &mut [&mut [f64]; 5]) {
        let last = self.points - 1;
        for (start, end) in [(1, 2), (2, 3), (3, last - 2), (last - 2, last - 1), (last - 1, last)]
        {
            // Where a neighbour would be outside, its weight is zero and any will do.
            let length = end - start;
            let from = |offset: usize| (start + offset).saturating_sub(2).min(self.points - length);
            let stretch = PointStretch {
                u: from_fn(|o| cut_rows(u, from(o)..from(o) + length)),
                gas: from_fn(|o| cut_rows(gas, from(o + 1)..from(o + 1) + length)),
            };
            let mut out = out.each_mut().map(|quantity| &mut quantity[start..end]);
            self.add(0, start, &stretch, &mut out);
        }
    }

    /// Returns the weights of five neighbouring points in second-order plus fourth-order dissipation, at point `at` of a line along
    /// `direction`.
    fn dissipation(&self, direction: usize, at: usize) -> [f64; 5] {
        let from_far = self.points - 1 - at;
        let mut fourth = FOURTH[at.min(from_far).min(3) - 1];
        if from_far < at {
            fourth.reverse();
        }
        let second = DIFFUSION[direction] * self.second;
        let mut weights = fourth.map(|w| -DISSIPATION * w);
        for (offset, weight) in [(1, 1.0), (2, -2.0), (3, 1.0)] {
            weights[offset] += weight * second;
        }
        weights
    }

    /// Adds the operator's terms of one direction; `at` is the stretch's coordinate in that direction.
    fn add(
        &self,
        direction: usize,
        at: usize,
        stretch: &PointStretch<'_>,
        out: &mut [&mut [f64]; 5],
    ) {
        let weights = self.dissipation(direction, at);
        let viscosity = C3C4 * self.second;
        let normal = 1 + direction;
        self.add_mass(normal, &weights, stretch, out[0]);
        for (m, out) in out.iter_mut().enumerate().take(4).skip(1) {
            if m == normal {
                self.add_normal(m, viscosity * CON43, &weights, stretch, out);
            } else {
                self.add_tangential(m, normal, viscosity, &weights, stretch, out);
            }
        }
        self.add_energy(normal, viscosity, &weights, stretch, out[4]);
    }

    fn add_mass(&self, normal: usize, weights: &[f64; 5], s: &PointStretch<'_>, out: &mut [f64]) {
        let n = out.len();
        let u = s.quantity_values(0, n);
        let [before, _, after] = s.near_values(normal, n);
        for i in 0..n {
            out[i] += weighted_sum(weights, &u, i) - self.first * (after[i] - before[i]);
        }
    }

    /// Adds the terms of the momentum along the direction: convection, pressure and viscosity.
    fn add_normal(
        &self,
        m: usize,
        viscosity: f64,
        weights: &[f64; 5],
        s: &PointStretch<'_>,
        out: &mut [f64],
    ) {
        let n = out.len();
        let u = s.quantity_values(m, n);
        let [_, before, here, after, _] = u;
        let [r_before, r_here, r_after] = s.derived_values(INVERSE_DENSITY, n);
        let [k_before, _, k_after] = s.derived_values(KINETIC, n);
        let [d_before, _, d_after] = s.near_values(0, n);
        let [e_before, _, e_after] = s.near_values(4, n);
        for i in 0..n {
            let v_before = before[i] * r_before[i];
            let v_after = after[i] * r_after[i];
            let v = here[i] * r_here[i];
            let pressure = C2
                * ((e_after[i] - d_after[i] * k_after[i])
                    - (e_before[i] - d_before[i] * k_before[i]));
            out[i] += weighted_sum(weights, &u, i) + viscosity * (v_after - 2.0 * v + v_before)
                - self.first * (after[i] * v_after - before[i] * v_before + pressure);
        }
    }

    /// Adds the terms of the momentum across the direction.
    fn add_tangential(
        &self,
        m: usize,
        normal: usize,
        viscosity: f64,
        weights: &[f64; 5],
        s: &PointStretch<'_>,
        out: &mut [f64],
    ) {
        let n = out.len();
        let u = s.quantity_values(m, n);
        let [_, before, here, after, _] = u;
        let [r_before, r_here, r_after] = s.derived_values(INVERSE_DENSITY, n);
        let [n_before, _, n_after] = s.near_values(normal, n);
        for i in 0..n {
            let v_before = before[i] * r_before[i];
            let v_after = after[i] * r_after[i];
            let v = here[i] * r_here[i];
            out[i] += weighted_sum(weights, &u, i) + viscosity * (v_after - 2.0 * v + v_before)
                - self.first * (n_after[i] * v_after - n_before[i] * v_before);
        }
    }

    fn add_energy(
        &self,
        normal: usize,
        viscosity: f64,
        weights: &[f64; 5],
        s: &PointStretch<'_>,
        out: &mut [f64],
    ) {
        let n = out.len();
        let u = s.quantity_values(4, n);
        let [_, before, here, after, _] = u;
        let [r_before, r_here, r_after] = s.derived_values(INVERSE_DENSITY, n);
        let [k_before, k_here, k_after] = s.derived_values(KINETIC, n);
        let [d_before, _, d_after] = s.near_values(0, n);
        let [n_before, n_here, n_after] = s.near_values(normal, n);
        let of_kinetic = viscosity * (1.0 - C1C5);
        let of_normal = viscosity / 6.0;
        let of_energy = viscosity * C1C5;
        for i in 0..n {
            let v_before = n_before[i] * r_before[i];
            let v_after = n_after[i] * r_after[i];
            let v = n_here[i] * r_here[i];
            let viscous = of_kinetic * (k_after[i] - 2.0 * k_here[i] + k_before[i])
                + of_normal * (v_after * v_after - 2.0 * v * v + v_before * v_before)
                + of_energy
                    * (after[i] * r_after[i] - 2.0 * here[i] * r_here[i] + before[i] * r_before[i]);
            let flux_before = (C1 * before[i] - C2 * d_before[i] * k_before[i]) * v_before;
            let flux_after = (C1 * after[i] - C2 * d_after[i] * k_after[i]) * v_after;
            out[i] +=
                weighted_sum(weights, &u, i) + viscous - self.first * (flux_after - flux_before);
        }
    }
}

impl<'a> PointStretch<'a> {
    /// Returns `n` points of quantity `m` at each of the five offsets.
    fn quantity_values(&self, m: usize, n: usize) -> [&'a [f64]; 5] {
        from_fn(|offset| &self.u[offset][m][..n])
    }

    /// Returns `n` points of quantity `m` at each of the offsets −1, 0 and 1.
    fn near_values(&self, m: usize, n: usize) -> [&'a [f64]; 3] {
        from_fn(|offset| &self.u[offset + 1][m][..n])
    }

    /// Returns `n` points of derived quantity `m` at each of the offsets −1, 0 and 1.
    fn derived_values(&self, m: usize, n: usize) -> [&'a [f64]; 3] {
        from_fn(|offset| &self.gas[offset][m][..n])
    }
}

/// Cuts the same range out of every quantity of a row. (`array::map` is not inlined here, and slow.)
fn cut_rows<'a, const C: usize>(row: &[&'a [f64]; C], part: Range<usize>) -> [&'a [f64]; C] {
    from_fn(|m| &row[m][part.clone()])
}

#[inline]
fn weighted_sum(weights: &[f64; 5], u: &[&[f64]; 5], i: usize) -> f64 {
    weights[0] * u[0][i]
        + weights[1] * u[1][i]
        + weights[2] * u[2][i]
        + weights[3] * u[3][i]
        + weights[4] * u[4][i]
}
