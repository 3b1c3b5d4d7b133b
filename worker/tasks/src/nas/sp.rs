//! SP: the compressible Navier–Stokes equations on a cube, time-stepped with an approximate
//! factorisation into scalar pentadiagonal systems.

mod exact;
mod field;
mod flux;
mod gas;
mod lines;
mod reference;
mod sweep;

use self::exact::ExactSolution;
pub(crate) use self::exact::InitialField;
use self::field::GridField;
use self::flux::FluxOperator;
use self::lines::LineBundle;
use self::sweep::SweepFactors;
use super::input::KernelInput;
use super::{RepeatedKernel, with_computed};
use crate::class::ProblemClass;
use crate::meter::{EnoughWork, WorkMeter};
use crate::result::Figure;

const TOLERANCE: f64 = 1e-8;

/// Root-mean-square norms of the five equations: residuals, and errors of the solution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EquationNorms {
    pub(crate) residual: [f64; 5],
    pub(crate) error: [f64; 5],
}

/// Problem size of a class (NPB3.3-SER `sys/setparams.c`).
#[derive(Clone, Copy, Debug)]
struct SpSize {
    /// Grid points per side.
    points: usize,
    steps: usize,
    time_step: f64,
}

fn class_size(class: ProblemClass) -> SpSize {
    let (points, steps, time_step) = match class {
        ProblemClass::S => (12, 100, 0.015),
        ProblemClass::W => (36, 400, 0.0015),
        ProblemClass::A => (64, 400, 0.0015),
        ProblemClass::B => (102, 400, 0.001),
    };
    SpSize { points, steps, time_step }
}

/// The SP solver for one problem.
pub(crate) struct SpSolver {
    size: SpSize,
    /// Constant term of the exact density of the published input.
    density: f64,
    exact: ExactSolution,
    initial: InitialField,
    reference: Option<EquationNorms>,
    fluxes: FluxOperator,
    factors: SweepFactors,
    /// Conserved quantities: density, momentum in x, y, z, energy.
    u: GridField<5>,
    /// Right-hand side, later the change of `u`; zero on the boundary.
    rhs: GridField<5>,
    /// The forcing that makes the exact field a steady solution.
    forcing: GridField<5>,
    /// Quantities of the gas that [`gas`] derives from `u`.
    gas: GridField<3>,
    lines: LineBundle,
}

impl SpSolver {
    /// Makes the SP solver of NAS for a class.
    pub(crate) fn new(class: ProblemClass) -> Self {
        Self::solver_variant(
            class,
            2.0,
            InitialField::Transfinite,
            Some(reference::reference_norms(class)),
        )
    }

    /// Makes an SP solver with the given constant term of the exact density, initial field and reference norms.
    pub(crate) fn solver_variant(
        class: ProblemClass,
        density: f64,
        initial: InitialField,
        reference: Option<EquationNorms>,
    ) -> Self {
        let size = class_size(class);
        let SpSize { points, time_step, .. } = size;
        Self {
            size,
            density,
            exact: ExactSolution::new(points, density),
            initial,
            reference,
            fluxes: FluxOperator::new(points),
            factors: SweepFactors::new(points, time_step),
            u: GridField::new(points),
            rhs: GridField::new(points),
            forcing: GridField::new(points),
            gas: GridField::new(points),
            lines: LineBundle::new(points),
        }
    }

    /// Sets the forcing to −(spatial operator applied to the exact field).
    fn set_forcing(&mut self, meter: &mut WorkMeter) -> Result<(), EnoughWork> {
        for k in 0..self.size.points {
            self.forcing.fill_plane(k, [0.0; 5]);
            self.rhs.fill_plane(k, [0.0; 5]);
            meter.count_work(1)?;
        }
        self.exact.fill_exact(&mut self.u, meter)?;
        self.set_right_hand_side(-1.0, meter)?;
        // The right-hand side becomes the forcing, and zeros the right-hand side.
        std::mem::swap(&mut self.forcing, &mut self.rhs);
        Ok(())
    }

    /// Sets the right-hand side to `scale` · (forcing + spatial operator applied to `u`).
    fn set_right_hand_side(&mut self, scale: f64, meter: &mut WorkMeter) -> Result<(), EnoughWork> {
        for k in 0..self.size.points {
            gas::derive_plane(&self.u, &mut self.gas, k);
            meter.count_work(1)?;
        }
        for k in 1..self.size.points - 1 {
            self.fluxes.add_up(&self.u, &self.gas, &self.forcing, &mut self.rhs, scale, k);
            meter.count_work(1)?;
        }
        Ok(())
    }

    fn time_step(&mut self, meter: &mut WorkMeter) -> Result<(), EnoughWork> {
        let Self { factors, u, rhs, gas, lines, .. } = self;
        let inner = 1..self.size.points - 1;
        for k in inner.clone() {
            factors.sweep_x(u, gas, rhs, lines, k);
            meter.count_work(1)?;
        }
        for k in inner.clone() {
            factors.sweep_y(u, gas, rhs, lines, k);
            meter.count_work(1)?;
        }
        for j in inner {
            factors.sweep_z(u, gas, rhs, lines, j);
            meter.count_work(1)?;
        }
        Ok(())
    }

    fn compute_norms(&self, meter: &mut WorkMeter) -> Result<EquationNorms, EnoughWork> {
        let mut residuals = [0.0; 5];
        for k in 0..self.size.points {
            self.rhs.add_squares(k, &mut residuals);
            meter.count_work(1)?;
        }
        let points = (self.size.points - 2).pow(3) as f64;
        let root_mean = |sums: [f64; 5]| sums.map(|sum| (sum / points).sqrt());
        Ok(EquationNorms {
            residual: root_mean(residuals).map(|r| r / self.size.time_step),
            error: root_mean(self.exact.squared_errors(&self.u, meter)?),
        })
    }
}

/// Returns SP's figures with the norms `reference` as the values to compare them with; the computed values are still missing.
pub(crate) fn norm_figures(reference: Option<EquationNorms>) -> Vec<Figure> {
    let figures = |name, reference: Option<[f64; 5]>| {
        (0..5).map(move |m| {
            let reference = reference.map(|norms| norms[m]);
            Figure::expected_figure(&format!("{name} {}", m + 1), reference, TOLERANCE)
        })
    };
    let residuals = figures("residual norm", reference.map(|n| n.residual));
    residuals.chain(figures("error norm", reference.map(|n| n.error))).collect()
}

/// Returns SP's figures for a NAS class with their published values; the computed values are still missing.
pub(crate) fn class_references(class: ProblemClass) -> Vec<Figure> {
    norm_figures(Some(reference::reference_norms(class)))
}

impl RepeatedKernel for SpSolver {
    fn units(&self) -> u64 {
        let SpSize { points, steps, .. } = self.size;
        let inner = points - 2;
        let right_hand_side = points + inner;
        // Zeros, the exact and the initial field, and both norms go by planes too.
        (5 * points + (steps + 2) * right_hand_side + steps * 3 * inner) as u64
    }

    fn run(
        &mut self,
        input: KernelInput,
        meter: &mut WorkMeter,
    ) -> Result<Vec<Figure>, EnoughWork> {
        self.exact = ExactSolution::new(self.size.points, input.density(self.density));
        self.set_forcing(meter)?;
        self.exact.fill_initial(self.initial, &mut self.u, meter)?;
        for _ in 0..self.size.steps {
            self.set_right_hand_side(self.size.time_step, meter)?;
            self.time_step(meter)?;
        }
        self.set_right_hand_side(self.size.time_step, meter)?;
        let ours = self.compute_norms(meter)?;
        Ok(with_computed(norm_figures(self.reference), ours.residual.into_iter().chain(ours.error)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn class_s_verifies() {
        check::verifies_again(&mut SpSolver::new(ProblemClass::S));
    }

    #[test]
    fn a_drawn_input_is_another_problem() {
        check::hangs_on_its_input(&mut SpSolver::new(ProblemClass::S));
    }

    #[test]
    fn class_w_verifies() {
        check::verifies(&mut SpSolver::new(ProblemClass::W));
    }

    #[test]
    fn another_density_does_not_verify() {
        let reference = Some(reference::reference_norms(ProblemClass::S));
        let density = 2.0 * (1.0 + 1e-6);
        check::fails(&mut SpSolver::solver_variant(
            ProblemClass::S,
            density,
            InitialField::Transfinite,
            reference,
        ));
    }

    #[test]
    fn another_initial_field_does_not_verify() {
        let reference = Some(reference::reference_norms(ProblemClass::S));
        check::fails(&mut SpSolver::solver_variant(
            ProblemClass::S,
            2.0,
            InitialField::Trilinear,
            reference,
        ));
    }
}
