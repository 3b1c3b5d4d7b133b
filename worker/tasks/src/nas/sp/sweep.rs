//! The implicit step: three sweeps of line solves, with changes of variables between them.
//!
//! T⁻¹, lines along x, N⁻¹, lines along y, P⁻¹, lines along z, T: the block-diagonal changes
//! of variables make the factors of each direction scalar.

use std::array::from_fn;
use std::f64::consts::FRAC_1_SQRT_2;

use super::field::GridField;
use super::gas::{C1C5, C2, C3C4, DIFFUSION, DISSIPATION, INVERSE_DENSITY, KINETIC, SOUND};
use super::lines::{LANES, Lanes, LineBundle, LinePoint};

/// Factors of SP's implicit step for one grid spacing h and time step Δt, with buffers.
pub(super) struct SweepFactors {
    points: usize,
    /// Factor of first differences, Δt/(2h).
    first: f64,
    /// Factor of second differences, Δt/h².
    second: f64,
    /// Factor of fourth differences: Δt · coefficient of fourth-order dissipation.
    dissipation: f64,
    /// Buffer for the five quantities of a row.
    row: [Vec<f64>; 5],
}

impl SweepFactors {
    pub(super) fn new(points: usize, time_step: f64) -> Self {
        let cells = (points - 1) as f64;
        let row = GridField::<1>::new(points).row_length();
        Self {
            points,
            first: time_step * 0.5 * cells,
            second: time_step * cells * cells,
            dissipation: time_step * DISSIPATION,
            row: std::array::from_fn(|_| vec![0.0; row]),
        }
    }

    /// Applies T⁻¹, solves the lines along x of plane `k`, and applies N⁻¹.
    pub(super) fn sweep_x(
        &mut self,
        u: &GridField<5>,
        gas: &GridField<3>,
        rhs: &mut GridField<5>,
        lines: &mut LineBundle,
        k: usize,
    ) {
        let last = self.points - 1;
        for start in (0..self.points).step_by(LANES) {
            // Lanes beyond the last row repeat it; it is a boundary, where all stays zero.
            let row_of = |lane: usize| (start + lane).min(last);
            for lane in 0..LANES {
                let j = row_of(lane);
                let (u, gas) = (u.row(k, j), gas.row(k, j));
                to_characteristic(&u, &gas, &rhs.row(k, j), &mut self.row);
                let (momentum, inverse, sound) = (u[1], gas[INVERSE_DENSITY], gas[SOUND]);
                for (i, station) in lines.stations.iter_mut().enumerate() {
                    let r = inverse[i];
                    station.advection[lane] = self.first * momentum[i] * r;
                    station.diffusion[lane] = self.second * diffusivity(0, r);
                    station.sound[lane] = self.first * sound[i];
                    for (x, row) in station.x.iter_mut().zip(&self.row) {
                        x[lane] = row[i];
                    }
                }
            }
            lines.solve(self.dissipation);
            lines.stations.iter_mut().for_each(|station| x_to_y(&mut station.x));
            for lane in 0..LANES {
                for (m, quantity) in rhs.row_mut(k, row_of(lane)).into_iter().enumerate() {
                    for (value, station) in quantity.iter_mut().zip(&lines.stations) {
                        *value = station.x[m][lane];
                    }
                }
            }
        }
    }

    /// Solves the lines along y of plane `k` and applies P⁻¹.
    pub(super) fn sweep_y(
        &self,
        u: &GridField<5>,
        gas: &GridField<3>,
        rhs: &mut GridField<5>,
        lines: &mut LineBundle,
        k: usize,
    ) {
        for start in (0..u.row_length()).step_by(LANES) {
            for (j, station) in lines.stations.iter_mut().enumerate() {
                self.load_lines(1, &u.row(k, j), &gas.row(k, j), &rhs.row(k, j), start, station);
            }
            lines.solve(self.dissipation);
            for (j, station) in lines.stations.iter_mut().enumerate() {
                y_to_z(&mut station.x);
                for (quantity, x) in rhs.row_mut(k, j).into_iter().zip(&station.x) {
                    quantity[start..start + LANES].copy_from_slice(x);
                }
            }
        }
    }

    /// Solves the lines along z at row `j`, applies T, and adds the result to `u`.
    pub(super) fn sweep_z(
        &self,
        u: &mut GridField<5>,
        gas: &GridField<3>,
        rhs: &GridField<5>,
        lines: &mut LineBundle,
        j: usize,
    ) {
        let inner = 1..self.points - 1;
        for start in (0..u.row_length()).step_by(LANES) {
            for (k, station) in lines.stations.iter_mut().enumerate() {
                self.load_lines(2, &u.row(k, j), &gas.row(k, j), &rhs.row(k, j), start, station);
            }
            lines.solve(self.dissipation);
            for k in inner.clone() {
                add_conserved(&lines.stations[k].x, &gas.row(k, j), u.row_mut(k, j), start);
            }
        }
    }

    /// Fills one point of a bundle's lines along `direction` from the numbers that begin at `start` of a row.
    fn load_lines(
        &self,
        direction: usize,
        u: &[&[f64]; 5],
        gas: &[&[f64]; 3],
        rhs: &[&[f64]; 5],
        start: usize,
        station: &mut LinePoint,
    ) {
        let momentum = lane_chunk(u[1 + direction], start);
        let inverse = lane_chunk(gas[INVERSE_DENSITY], start);
        let sound = lane_chunk(gas[SOUND], start);
        for l in 0..LANES {
            station.advection[l] = self.first * momentum[l] * inverse[l];
            station.diffusion[l] = self.second * diffusivity(direction, inverse[l]);
            station.sound[l] = self.first * sound[l];
        }
        for (x, quantity) in station.x.iter_mut().zip(rhs) {
            *x = *lane_chunk(quantity, start);
        }
    }
}

/// Returns the greatest diffusivity of the five equations: with equal second-order dissipation in all of them and a positive
/// density, it is that of the energy equation.
#[inline]
fn diffusivity(direction: usize, inverse_density: f64) -> f64 {
    DIFFUSION[direction] + C1C5 * C3C4 * inverse_density
}

fn lane_chunk(row: &[f64], start: usize) -> &Lanes {
    &row[start..].as_chunks::<LANES>().0[0]
}

fn chunk_mut(row: &mut [f64], start: usize) -> &mut Lanes {
    &mut row[start..].as_chunks_mut::<LANES>().0[0]
}

/// Applies T⁻¹ along a row: converts changes of the conserved quantities to the variables of the sweep along x.
#[inline(never)]
fn to_characteristic(
    u: &[&[f64]; 5],
    gas: &[&[f64]; 3],
    rhs: &[&[f64]; 5],
    out: &mut [Vec<f64>; 5],
) {
    let n = u[0].len();
    let (x, y, z) = (&u[1][..n], &u[2][..n], &u[3][..n]);
    let gas: [&[f64]; 3] = from_fn(|m| &gas[m][..n]);
    let rhs: [&[f64]; 5] = from_fn(|m| &rhs[m][..n]);
    let [o0, o1, o2, o3, o4] = out;
    let (o0, o1, o2) = (&mut o0[..n], &mut o1[..n], &mut o2[..n]);
    let (o3, o4) = (&mut o3[..n], &mut o4[..n]);
    for i in 0..n {
        let r = gas[INVERSE_DENSITY][i];
        let (kinetic, sound) = (gas[KINETIC][i], gas[SOUND][i]);
        let (vx, vy, vz) = (x[i] * r, y[i] * r, z[i] * r);
        let [r0, r1, r2, r3, r4] = [rhs[0][i], rhs[1][i], rhs[2][i], rhs[3][i], rhs[4][i]];
        let t1 = C2 / (sound * sound) * (kinetic * r0 - vx * r1 - vy * r2 - vz * r3 + r4);
        let t2 = FRAC_1_SQRT_2 * r * (vx * r0 - r1);
        let t3 = FRAC_1_SQRT_2 * r * sound * t1;
        o0[i] = r0 - t1;
        o1[i] = -r * (vz * r0 - r3);
        o2[i] = r * (vy * r0 - r2);
        o3[i] = t3 - t2;
        o4[i] = t3 + t2;
    }
}

/// Applies N⁻¹: converts the variables of the sweep along x to those of the sweep along y.
fn x_to_y(x: &mut [Lanes; 5]) {
    let [x0, x1, x2, x3, x4] = x;
    for l in 0..LANES {
        let [r0, r1, r2, r3, r4] = [x0[l], x1[l], x2[l], x3[l], x4[l]];
        let (t1, t2) = (FRAC_1_SQRT_2 * r2, 0.5 * (r3 + r4));
        x0[l] = -r1;
        x1[l] = r0;
        x2[l] = FRAC_1_SQRT_2 * (r3 - r4);
        x3[l] = t2 - t1;
        x4[l] = t2 + t1;
    }
}

/// Applies P⁻¹: converts the variables of the sweep along y to those of the sweep along z.
fn y_to_z(x: &mut [Lanes; 5]) {
    let [x0, x1, x2, x3, x4] = x;
    for l in 0..LANES {
        let [r0, r1, r2, r3, r4] = [x0[l], x1[l], x2[l], x3[l], x4[l]];
        let (t1, t2) = (FRAC_1_SQRT_2 * r0, 0.5 * (r3 + r4));
        x0[l] = FRAC_1_SQRT_2 * (r3 - r4);
        x1[l] = -r2;
        x2[l] = r1;
        x3[l] = t2 - t1;
        x4[l] = t2 + t1;
    }
}

/// Applies T: converts the variables of the sweep along z to changes of the conserved quantities, and adds these to `u`.
#[inline(never)]
fn add_conserved(x: &[Lanes; 5], gas: &[&[f64]; 3], u: [&mut [f64]; 5], start: usize) {
    let [u0, u1, u2, u3, u4] = u;
    let (u0, u1, u2) = (chunk_mut(u0, start), chunk_mut(u1, start), chunk_mut(u2, start));
    let (u3, u4) = (chunk_mut(u3, start), chunk_mut(u4, start));
    let inverse = lane_chunk(gas[INVERSE_DENSITY], start);
    let (kinetic, sound) = (lane_chunk(gas[KINETIC], start), lane_chunk(gas[SOUND], start));
    for l in 0..LANES {
        let [r0, r1, r2, r3, r4] = [x[0][l], x[1][l], x[2][l], x[3][l], x[4][l]];
        let (density, inverse) = (u0[l], inverse[l]);
        let (kinetic, sound) = (kinetic[l], sound[l]);
        let (vx, vy, vz) = (u1[l] * inverse, u2[l] * inverse, u3[l] * inverse);
        let scale = FRAC_1_SQRT_2 * density;
        let t1 = scale / sound * (r3 + r4);
        let t2 = r2 + t1;
        let t3 = scale * (r3 - r4);
        u0[l] += t2;
        u1[l] += vx * t2 - density * r1;
        u2[l] += vy * t2 + density * r0;
        u3[l] += vz * t2 + t3;
        u4[l] += density * (vy * r0 - vx * r1) + kinetic * t2 + sound * sound / C2 * t1 + vz * t3;
    }
}
