//! FT: a diffusion equation solved in Fourier space, by three-dimensional FFTs.

mod fft;
mod field;
mod reference;

use std::f64::consts::PI;

use self::fft::{FourierDirection, FourierLines, LANES};
use self::field::{ComplexField, ComplexNumber};
use super::input::KernelInput;
use super::random::{NasRandom, SEED};
use super::{RepeatedKernel, with_computed};
use crate::class::ProblemClass;
use crate::meter::{EnoughWork, WorkMeter};
use crate::result::Figure;

/// Diffusivity α of the differential equation that FT solves.
const ALPHA: f64 = 1e-6;
const TOLERANCE: f64 = 1e-12;

/// The NAS kernel FT: it solves a differential equation by three-dimensional Fourier transforms.
pub(crate) struct FtKernel {
    seed: u64,
    /// Number of grid points in x, y and z.
    shape: [usize; 3],
    /// Published checksum after each time step.
    checksums: &'static [[f64; 2]],
    /// Transform of the initial state.
    spectrum: ComplexField,
    state: ComplexField,
    /// Factors by which one time step damps the waves of x, y and z.
    damping: [Vec<f64>; 3],
    lines: [FourierLines; 3],
}

impl FtKernel {
    pub(crate) fn new(class: ProblemClass) -> Self {
        let (shape, checksums) = reference::class_problem(class);
        Self {
            seed: SEED,
            shape,
            checksums,
            spectrum: ComplexField::new(shape),
            state: ComplexField::new(shape),
            damping: shape.map(damping_factors),
            lines: shape.map(FourierLines::new),
        }
    }

    /// Fills the field with random numbers from the seed `seed`, in the order of memory, real part first.
    fn fill_random(&mut self, seed: u64, meter: &mut WorkMeter) -> Result<(), EnoughWork> {
        let [_, ny, nz] = self.shape;
        let mut random = NasRandom::new(seed);
        for k in 0..nz {
            for j in 0..ny {
                let (re, im) = self.spectrum.row_mut(k, j);
                for (re, im) in re.iter_mut().zip(im) {
                    *re = random.next();
                    *im = random.next();
                }
            }
            meter.count_work(1)?;
        }
        Ok(())
    }

    /// Computes the state after `step` time steps: the damped spectrum, transformed back.
    fn evolve_state(&mut self, step: i32, meter: &mut WorkMeter) -> Result<(), EnoughWork> {
        let nz = self.shape[2];
        let [dx, dy, dz] = self.damping.each_ref().map(|d| factor_powers(d, step));
        for (k, dz) in dz.iter().enumerate() {
            for (j, dy) in dy.iter().enumerate() {
                let (re, im) = self.spectrum.row(k, j);
                let (out_re, out_im) = self.state.row_mut(k, j);
                let factor = dz * dy;
                for (i, dx) in dx.iter().enumerate() {
                    out_re[i] = re[i] * (factor * dx);
                    out_im[i] = im[i] * (factor * dx);
                }
            }
            meter.count_work(1)?;
            transform_plane(&mut self.state, &mut self.lines, k, FourierDirection::Inverse, meter)?;
        }
        transform_depth(&mut self.state, &mut self.lines[2], nz, FourierDirection::Inverse, meter)
    }

    /// Returns the checksum of the state: the sum over 1024 scattered points, divided by the number of grid points.
    fn checksum(&self) -> ComplexNumber {
        let [nx, ny, nz] = self.shape;
        let mut sum = ComplexNumber::default();
        for j in 1..=1024 {
            let at = self.state.value_at(5 * j % nz, 3 * j % ny, j % nx);
            sum.re += at.re;
            sum.im += at.im;
        }
        let size = (nx * ny * nz) as f64;
        ComplexNumber { re: sum.re / size, im: sum.im / size }
    }
}

fn checksum_figures(checksums: &[[f64; 2]]) -> Vec<Figure> {
    let parts =
        (1..).zip(checksums).flat_map(|(step, [re, im])| [(step, "re", re), (step, "im", im)]);
    // The official test bounds the error of the complex number; this one bounds both of its parts and
    // so is never weaker.
    let figure = |(step, part, value): (u32, &str, &f64)| {
        Figure::expected_figure(&format!("checksum {step} {part}"), Some(*value), TOLERANCE)
    };
    parts.map(figure).collect()
}

/// Returns FT's figures for a NAS class with their published values; the computed values are still missing.
pub(crate) fn class_references(class: ProblemClass) -> Vec<Figure> {
    checksum_figures(reference::class_problem(class).1)
}

impl RepeatedKernel for FtKernel {
    fn units(&self) -> u64 {
        let [_, ny, nz] = self.shape;
        let transform = 2 * nz + ny;
        let steps = self.checksums.len();
        // Filling, the transform there, and per step the damping and the transform back.
        (nz + transform + steps * (nz + transform)) as u64
    }

    fn run(
        &mut self,
        input: KernelInput,
        meter: &mut WorkMeter,
    ) -> Result<Vec<Figure>, EnoughWork> {
        let nz = self.shape[2];
        self.fill_random(input.seed(self.seed), meter)?;
        for k in 0..nz {
            transform_plane(
                &mut self.spectrum,
                &mut self.lines,
                k,
                FourierDirection::Forward,
                meter,
            )?;
        }
        transform_depth(
            &mut self.spectrum,
            &mut self.lines[2],
            nz,
            FourierDirection::Forward,
            meter,
        )?;
        let mut ours = Vec::new();
        for (step, _) in (1..).zip(self.checksums) {
            self.evolve_state(step, meter)?;
            let ComplexNumber { re, im } = self.checksum();
            ours.extend([re, im]);
        }
        Ok(with_computed(checksum_figures(self.checksums), ours))
    }
}

/// Transforms plane `k` along x and then along y, while it is in the cache.
fn transform_plane(
    field: &mut ComplexField,
    [x, y, _]: &mut [FourierLines; 3],
    k: usize,
    direction: FourierDirection,
    meter: &mut WorkMeter,
) -> Result<(), EnoughWork> {
    let [nx, ny, _] = field.shape();
    for j in (0..ny).step_by(LANES) {
        for lane in 0..LANES {
            let (re, im) = field.row(k, j + lane);
            x.load_lane(lane, re, im);
        }
        x.transform_lines(direction);
        for lane in 0..LANES {
            let (re, im) = field.row_mut(k, j + lane);
            x.store_lane(lane, re, im);
        }
    }
    meter.count_work(1)?;
    for i in (0..nx).step_by(LANES) {
        for j in 0..ny {
            let (re, im) = field.row(k, j);
            y.load_point(j, &re[i..i + LANES], &im[i..i + LANES]);
        }
        y.transform_lines(direction);
        for j in 0..ny {
            let (re, im) = field.row_mut(k, j);
            y.store_point(j, &mut re[i..i + LANES], &mut im[i..i + LANES]);
        }
    }
    meter.count_work(1)
}

/// Transforms the field along z.
fn transform_depth(
    field: &mut ComplexField,
    z: &mut FourierLines,
    nz: usize,
    direction: FourierDirection,
    meter: &mut WorkMeter,
) -> Result<(), EnoughWork> {
    let [nx, ny, _] = field.shape();
    for j in 0..ny {
        for i in (0..nx).step_by(LANES) {
            for k in 0..nz {
                let (re, im) = field.row(k, j);
                z.load_point(k, &re[i..i + LANES], &im[i..i + LANES]);
            }
            z.transform_lines(direction);
            for k in 0..nz {
                let (re, im) = field.row_mut(k, j);
                z.store_point(k, &mut re[i..i + LANES], &mut im[i..i + LANES]);
            }
        }
        meter.count_work(1)?;
    }
    Ok(())
}

/// Returns the damping factors exp(−4απ²·m²) for the wave numbers m = 0, 1, …, n/2 − 1, −n/2, …, −1.
fn damping_factors(n: usize) -> Vec<f64> {
    let wave = |i: usize| if i < n / 2 { i as f64 } else { i as f64 - n as f64 };
    (0..n).map(|i| (-4.0 * ALPHA * PI * PI * wave(i) * wave(i)).exp()).collect()
}

fn factor_powers(factors: &[f64], exponent: i32) -> Vec<f64> {
    factors.iter().map(|factor| factor.powi(exponent)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn class_s_verifies() {
        check::verifies_again(&mut FtKernel::new(ProblemClass::S));
    }

    #[test]
    fn a_drawn_input_is_another_problem() {
        check::hangs_on_its_input(&mut FtKernel::new(ProblemClass::S));
    }

    #[test]
    fn class_w_verifies() {
        check::verifies(&mut FtKernel::new(ProblemClass::W));
    }

    #[test]
    fn another_seed_does_not_verify() {
        let mut ft = FtKernel::new(ProblemClass::S);
        ft.seed += 2;
        check::fails(&mut ft);
    }
}
