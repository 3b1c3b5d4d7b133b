//! SP: the compressible Navier–Stokes equations on a cube, time-stepped with an approximate
//! factorisation into scalar pentadiagonal systems.

mod exact;
mod field;
mod flux;
mod gas;
mod lines;
mod reference;
mod sweep;

use self::exact::Exact;
pub(crate) use self::exact::Initial;
use self::field::Field;
use self::flux::Fluxes;
use self::lines::Lines;
use self::sweep::Factors;
use super::input::KernelInput;
use super::{Kernel, computed};
use crate::class::Class;
use crate::meter::{Enough, Meter};
use crate::result::Figure;

const TOLERANCE: f64 = 1e-8;

/// Root-mean-square norms of the five equations: residuals, and errors of the solution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norms {
    pub(crate) residual: [f64; 5],
    pub(crate) error: [f64; 5],
}

/// Size of a class (NPB3.3-SER `sys/setparams.c`).
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Grid points per side.
    points: usize,
    steps: usize,
    time_step: f64,
}

fn size(class: Class) -> Size {
    let (points, steps, time_step) = match class {
        Class::S => (12, 100, 0.015),
        Class::W => (36, 400, 0.0015),
        Class::A => (64, 400, 0.0015),
        Class::B => (102, 400, 0.001),
    };
    Size { points, steps, time_step }
}

/// The SP solver on one problem.
pub(crate) struct Sp {
    size: Size,
    /// Constant term of the exact density of the published input.
    density: f64,
    exact: Exact,
    initial: Initial,
    reference: Option<Norms>,
    fluxes: Fluxes,
    factors: Factors,
    /// Conserved quantities: density, momentum in x, y, z, energy.
    u: Field<5>,
    /// Right-hand side, then the change of `u`; always zero on the boundary.
    rhs: Field<5>,
    /// The forcing that makes the exact field a steady solution.
    forcing: Field<5>,
    /// The quantities that [`gas`] derives from `u`.
    gas: Field<3>,
    lines: Lines,
}

impl Sp {
    /// The NAS kernel.
    pub(crate) fn new(class: Class) -> Self {
        Self::variant(class, 2.0, Initial::Transfinite, Some(reference::norms(class)))
    }

    /// SP with another constant term of the exact density, initial field and answer.
    pub(crate) fn variant(
        class: Class,
        density: f64,
        initial: Initial,
        reference: Option<Norms>,
    ) -> Self {
        let size = size(class);
        let Size { points, time_step, .. } = size;
        Self {
            size,
            density,
            exact: Exact::new(points, density),
            initial,
            reference,
            fluxes: Fluxes::new(points),
            factors: Factors::new(points, time_step),
            u: Field::new(points),
            rhs: Field::new(points),
            forcing: Field::new(points),
            gas: Field::new(points),
            lines: Lines::new(points),
        }
    }

    /// Forcing = −(operator applied to the exact field).
    fn set_forcing(&mut self, meter: &mut Meter) -> Result<(), Enough> {
        for k in 0..self.size.points {
            self.forcing.fill_plane(k, [0.0; 5]);
            self.rhs.fill_plane(k, [0.0; 5]);
            meter.work(1)?;
        }
        self.exact.fill(&mut self.u, meter)?;
        self.set_right_hand_side(-1.0, meter)?;
        // The right-hand side becomes the forcing, and zeros the right-hand side.
        std::mem::swap(&mut self.forcing, &mut self.rhs);
        Ok(())
    }

    /// Right-hand side = `scale` · (forcing + operator applied to `u`).
    fn set_right_hand_side(&mut self, scale: f64, meter: &mut Meter) -> Result<(), Enough> {
        for k in 0..self.size.points {
            gas::derive(&self.u, &mut self.gas, k);
            meter.work(1)?;
        }
        for k in 1..self.size.points - 1 {
            self.fluxes.add_up(&self.u, &self.gas, &self.forcing, &mut self.rhs, scale, k);
            meter.work(1)?;
        }
        Ok(())
    }

    fn step(&mut self, meter: &mut Meter) -> Result<(), Enough> {
        let Self { factors, u, rhs, gas, lines, .. } = self;
        let inner = 1..self.size.points - 1;
        for k in inner.clone() {
            factors.sweep_x(u, gas, rhs, lines, k);
            meter.work(1)?;
        }
        for k in inner.clone() {
            factors.sweep_y(u, gas, rhs, lines, k);
            meter.work(1)?;
        }
        for j in inner {
            factors.sweep_z(u, gas, rhs, lines, j);
            meter.work(1)?;
        }
        Ok(())
    }

    fn norms(&self, meter: &mut Meter) -> Result<Norms, Enough> {
        let mut residuals = [0.0; 5];
        for k in 0..self.size.points {
            self.rhs.add_squares(k, &mut residuals);
            meter.work(1)?;
        }
        let points = (self.size.points - 2).pow(3) as f64;
        let root_mean = |sums: [f64; 5]| sums.map(|sum| (sum / points).sqrt());
        Ok(Norms {
            residual: root_mean(residuals).map(|r| r / self.size.time_step),
            error: root_mean(self.exact.squared_errors(&self.u, meter)?),
        })
    }
}

/// The figures of a run with this answer, to be computed.
pub(crate) fn figures(reference: Option<Norms>) -> Vec<Figure> {
    let figures = |name, reference: Option<[f64; 5]>| {
        (0..5).map(move |m| {
            let reference = reference.map(|norms| norms[m]);
            Figure::expected(&format!("{name} {}", m + 1), reference, TOLERANCE)
        })
    };
    let residuals = figures("residual norm", reference.map(|n| n.residual));
    residuals.chain(figures("error norm", reference.map(|n| n.error))).collect()
}

/// The figures of a class, to be computed.
pub(crate) fn references(class: Class) -> Vec<Figure> {
    figures(Some(reference::norms(class)))
}

impl Kernel for Sp {
    fn units(&self) -> u64 {
        let Size { points, steps, .. } = self.size;
        let inner = points - 2;
        let right_hand_side = points + inner;
        // Zeros, the exact and the initial field, and both norms go by planes too.
        (5 * points + (steps + 2) * right_hand_side + steps * 3 * inner) as u64
    }

    fn run(&mut self, input: KernelInput, meter: &mut Meter) -> Result<Vec<Figure>, Enough> {
        self.exact = Exact::new(self.size.points, input.density(self.density));
        self.set_forcing(meter)?;
        self.exact.initialise(self.initial, &mut self.u, meter)?;
        for _ in 0..self.size.steps {
            self.set_right_hand_side(self.size.time_step, meter)?;
            self.step(meter)?;
        }
        self.set_right_hand_side(self.size.time_step, meter)?;
        let ours = self.norms(meter)?;
        Ok(computed(figures(self.reference), ours.residual.into_iter().chain(ours.error)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn class_s_verifies() {
        check::verifies_again(&mut Sp::new(Class::S));
    }

    #[test]
    fn a_drawn_input_is_another_problem() {
        check::hangs_on_its_input(&mut Sp::new(Class::S));
    }

    #[test]
    fn class_w_verifies() {
        check::verifies(&mut Sp::new(Class::W));
    }

    #[test]
    fn another_density_does_not_verify() {
        let reference = Some(reference::norms(Class::S));
        let density = 2.0 * (1.0 + 1e-6);
        check::fails(&mut Sp::variant(Class::S, density, Initial::Transfinite, reference));
    }

    #[test]
    fn another_initial_field_does_not_verify() {
        let reference = Some(reference::norms(Class::S));
        check::fails(&mut Sp::variant(Class::S, 2.0, Initial::Trilinear, reference));
    }
}
