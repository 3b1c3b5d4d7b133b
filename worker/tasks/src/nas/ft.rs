//! FT: a diffusion equation solved in Fourier space, by three-dimensional FFTs.

mod fft;
mod field;
mod reference;

use std::f64::consts::PI;

use self::fft::{Direction, LANES, Line};
use self::field::{Complex, Field};
use super::input::KernelInput;
use super::random::{Random, SEED};
use super::{Kernel, computed};
use crate::class::Class;
use crate::meter::{Enough, Meter};
use crate::result::Figure;

/// Diffusivity α of the differential equation that FT solves.
const ALPHA: f64 = 1e-6;
const TOLERANCE: f64 = 1e-12;

/// The FT kernel.
pub(crate) struct Ft {
    seed: u64,
    /// Points in x, y and z.
    shape: [usize; 3],
    /// Published checksum after each time step.
    checksums: &'static [[f64; 2]],
    /// Transform of the initial state.
    spectrum: Field,
    state: Field,
    /// Factors by which one time step damps the waves of x, y and z.
    damping: [Vec<f64>; 3],
    lines: [Line; 3],
}

impl Ft {
    pub(crate) fn new(class: Class) -> Self {
        let (shape, checksums) = reference::problem(class);
        Self {
            seed: SEED,
            shape,
            checksums,
            spectrum: Field::new(shape),
            state: Field::new(shape),
            damping: shape.map(damping),
            lines: shape.map(Line::new),
        }
    }

    /// Random numbers from this seed in the order of memory, real part first.
    fn fill(&mut self, seed: u64, meter: &mut Meter) -> Result<(), Enough> {
        let [_, ny, nz] = self.shape;
        let mut random = Random::new(seed);
        for k in 0..nz {
            for j in 0..ny {
                let (re, im) = self.spectrum.row_mut(k, j);
                for (re, im) in re.iter_mut().zip(im) {
                    *re = random.next();
                    *im = random.next();
                }
            }
            meter.work(1)?;
        }
        Ok(())
    }

    /// The state after `step` time steps: the damped spectrum, transformed back.
    fn evolve(&mut self, step: i32, meter: &mut Meter) -> Result<(), Enough> {
        let nz = self.shape[2];
        let [dx, dy, dz] = self.damping.each_ref().map(|d| powers(d, step));
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
            meter.work(1)?;
            transform_plane(&mut self.state, &mut self.lines, k, Direction::Inverse, meter)?;
        }
        transform_depth(&mut self.state, &mut self.lines[2], nz, Direction::Inverse, meter)
    }

    /// Mean over the grid's size of 1024 points scattered over it.
    fn checksum(&self) -> Complex {
        let [nx, ny, nz] = self.shape;
        let mut sum = Complex::default();
        for j in 1..=1024 {
            let at = self.state.at(5 * j % nz, 3 * j % ny, j % nx);
            sum.re += at.re;
            sum.im += at.im;
        }
        let size = (nx * ny * nz) as f64;
        Complex { re: sum.re / size, im: sum.im / size }
    }
}

fn figures(checksums: &[[f64; 2]]) -> Vec<Figure> {
    let parts =
        (1..).zip(checksums).flat_map(|(step, [re, im])| [(step, "re", re), (step, "im", im)]);
    // The official test bounds the error of the complex number; this one bounds both of its parts and
    // so is never weaker.
    let figure = |(step, part, value): (u32, &str, &f64)| {
        Figure::expected(&format!("checksum {step} {part}"), Some(*value), TOLERANCE)
    };
    parts.map(figure).collect()
}

/// The figures of a class, to be computed.
pub(crate) fn references(class: Class) -> Vec<Figure> {
    figures(reference::problem(class).1)
}

impl Kernel for Ft {
    fn units(&self) -> u64 {
        let [_, ny, nz] = self.shape;
        let transform = 2 * nz + ny;
        let steps = self.checksums.len();
        // Filling, the transform there, and per step the damping and the transform back.
        (nz + transform + steps * (nz + transform)) as u64
    }

    fn run(&mut self, input: KernelInput, meter: &mut Meter) -> Result<Vec<Figure>, Enough> {
        let nz = self.shape[2];
        self.fill(input.seed(self.seed), meter)?;
        for k in 0..nz {
            transform_plane(&mut self.spectrum, &mut self.lines, k, Direction::Forward, meter)?;
        }
        transform_depth(&mut self.spectrum, &mut self.lines[2], nz, Direction::Forward, meter)?;
        let mut ours = Vec::new();
        for (step, _) in (1..).zip(self.checksums) {
            self.evolve(step, meter)?;
            let Complex { re, im } = self.checksum();
            ours.extend([re, im]);
        }
        Ok(computed(figures(self.checksums), ours))
    }
}

/// Transforms plane `k` along x, then along y, while it is in the cache.
fn transform_plane(
    field: &mut Field,
    [x, y, _]: &mut [Line; 3],
    k: usize,
    direction: Direction,
    meter: &mut Meter,
) -> Result<(), Enough> {
    let [nx, ny, _] = field.shape();
    for j in (0..ny).step_by(LANES) {
        for lane in 0..LANES {
            let (re, im) = field.row(k, j + lane);
            x.load_lane(lane, re, im);
        }
        x.transform(direction);
        for lane in 0..LANES {
            let (re, im) = field.row_mut(k, j + lane);
            x.store_lane(lane, re, im);
        }
    }
    meter.work(1)?;
    for i in (0..nx).step_by(LANES) {
        for j in 0..ny {
            let (re, im) = field.row(k, j);
            y.load(j, &re[i..i + LANES], &im[i..i + LANES]);
        }
        y.transform(direction);
        for j in 0..ny {
            let (re, im) = field.row_mut(k, j);
            y.store(j, &mut re[i..i + LANES], &mut im[i..i + LANES]);
        }
    }
    meter.work(1)
}

/// Transforms along z.
fn transform_depth(
    field: &mut Field,
    z: &mut Line,
    nz: usize,
    direction: Direction,
    meter: &mut Meter,
) -> Result<(), Enough> {
    let [nx, ny, _] = field.shape();
    for j in 0..ny {
        for i in (0..nx).step_by(LANES) {
            for k in 0..nz {
                let (re, im) = field.row(k, j);
                z.load(k, &re[i..i + LANES], &im[i..i + LANES]);
            }
            z.transform(direction);
            for k in 0..nz {
                let (re, im) = field.row_mut(k, j);
                z.store(k, &mut re[i..i + LANES], &mut im[i..i + LANES]);
            }
        }
        meter.work(1)?;
    }
    Ok(())
}

/// exp(−4απ²·m²) for the wave numbers m = 0, 1, …, n/2 − 1, −n/2, …, −1.
fn damping(n: usize) -> Vec<f64> {
    let wave = |i: usize| if i < n / 2 { i as f64 } else { i as f64 - n as f64 };
    (0..n).map(|i| (-4.0 * ALPHA * PI * PI * wave(i) * wave(i)).exp()).collect()
}

fn powers(factors: &[f64], exponent: i32) -> Vec<f64> {
    factors.iter().map(|factor| factor.powi(exponent)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn class_s_verifies() {
        check::verifies_again(&mut Ft::new(Class::S));
    }

    #[test]
    fn a_drawn_input_is_another_problem() {
        check::hangs_on_its_input(&mut Ft::new(Class::S));
    }

    #[test]
    fn class_w_verifies() {
        check::verifies(&mut Ft::new(Class::W));
    }

    #[test]
    fn another_seed_does_not_verify() {
        let mut ft = Ft::new(Class::S);
        ft.seed += 2;
        check::fails(&mut ft);
    }
}
