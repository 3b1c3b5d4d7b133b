//! MG: V-cycles of a multigrid solver for ∇²u = v on a periodic cube.

mod charges;
mod grid;
mod stencil;

use self::grid::GhostGrid;
use super::input::KernelInput;
use super::random::SEED;
use super::{RepeatedKernel, with_computed};
use crate::class::ProblemClass;
use crate::meter::{EnoughWork, WorkMeter};
use crate::result::Figure;

const TOLERANCE: f64 = 1e-8;

/// Smoother coefficients of the classes S, W and A: centre, faces, edges.
const SMOOTHER_SMALL: [f64; 3] = [-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0];
/// Smoother coefficients of the larger classes.
const SMOOTHER_LARGE: [f64; 3] = [-3.0 / 17.0, 1.0 / 33.0, -1.0 / 61.0];

/// A class's problem and its answer (NPB3.3-SER `MG/mg.f`).
struct MgProblem {
    /// The grid has 2^levels points in each direction; the coarsest has two.
    levels: u32,
    cycles: u64,
    smoother: [f64; 3],
    residual_norm: f64,
}

fn class_problem(class: ProblemClass) -> MgProblem {
    let (levels, cycles, smoother, residual_norm) = match class {
        ProblemClass::S => (5, 4, SMOOTHER_SMALL, 0.530_770_700_573_4e-4),
        ProblemClass::W => (7, 4, SMOOTHER_SMALL, 0.646_732_937_533_9e-5),
        ProblemClass::A => (8, 4, SMOOTHER_SMALL, 0.243_336_530_906_9e-5),
        ProblemClass::B => (8, 20, SMOOTHER_LARGE, 0.180_056_440_135_5e-5),
    };
    MgProblem { levels, cycles, smoother, residual_norm }
}

fn norm_figures(norm: f64) -> Vec<Figure> {
    vec![Figure::expected_figure("L2 norm of r", Some(norm), TOLERANCE)]
}

/// Returns MG's figures for a NAS class with their published values; the computed values are still missing.
pub(crate) fn class_references(class: ProblemClass) -> Vec<Figure> {
    norm_figures(class_problem(class).residual_norm)
}

/// The NAS kernel MG: it solves Poisson's equation by a multigrid method.
pub(crate) struct MgKernel {
    problem: MgProblem,
    seed: u64,
    /// Approximate solutions u on each grid, the coarsest first.
    u: Vec<GhostGrid>,
    /// Residuals r on each grid, the coarsest first.
    r: Vec<GhostGrid>,
    /// Right-hand side v of the equation A u = v that MG solves.
    v: GhostGrid,
}

impl MgKernel {
    pub(crate) fn new(class: ProblemClass) -> Self {
        let problem = class_problem(class);
        let grids = || (1..=problem.levels).map(|level| GhostGrid::new(1 << level)).collect();
        let (u, r, v) = (grids(), grids(), GhostGrid::new(1 << problem.levels));
        Self { problem, seed: SEED, u, r, v }
    }

    /// Does one V-cycle: the residual is restricted down to the coarsest grid, and the correction interpolated up
    /// again.
    fn v_cycle(&mut self, meter: &mut WorkMeter) -> Result<(), EnoughWork> {
        let Self { problem, u, r, v, .. } = self;
        let smoother = &problem.smoother;
        let finest = u.len() - 1;
        for level in (1..=finest).rev() {
            let (coarse, fine) = r.split_at_mut(level);
            stencil::restrict_residual(&fine[0], &mut coarse[level - 1], meter)?;
        }
        u[0].clear_grid(meter)?;
        stencil::smooth_solution(&r[0], &mut u[0], smoother, meter)?;
        for level in 1..=finest {
            let (coarse, fine) = u.split_at_mut(level);
            if level < finest {
                fine[0].clear_grid(meter)?;
            }
            stencil::prolong_correction(&coarse[level - 1], &mut fine[0], meter)?;
            if level < finest {
                stencil::subtract_laplacian(&u[level], &mut r[level], meter)?;
            } else {
                stencil::set_residual(&u[level], v, &mut r[level], meter)?;
            }
            stencil::smooth_solution(&r[level], &mut u[level], smoother, meter)?;
        }
        Ok(())
    }

    fn finest_residual(&mut self, meter: &mut WorkMeter) -> Result<(), EnoughWork> {
        let finest = self.u.len() - 1;
        stencil::set_residual(&self.u[finest], &self.v, &mut self.r[finest], meter)
    }
}

impl RepeatedKernel for MgKernel {
    fn units(&self) -> u64 {
        // Planes: solution and input cleared once, with ghosts; the input, the norm and the
        // residual once; the residual again per cycle. In a cycle, restriction, prolongation,
        // residual and smoothing of every grid (the coarsest: only smoothing), and clearing
        // of all but the finest.
        let levels = u64::from(self.problem.levels);
        let finest = 1 << levels;
        let all: u64 = (1..=levels).map(|level| 1_u64 << level).sum();
        let clearing = (all - finest) + 2 * (levels - 1);
        let cycle = (all - finest) + (all - finest) + (all - 2) + all + clearing;
        2 * (finest + 2) + 3 * finest + self.problem.cycles * (cycle + finest)
    }

    fn run(
        &mut self,
        input: KernelInput,
        meter: &mut WorkMeter,
    ) -> Result<Vec<Figure>, EnoughWork> {
        let finest = self.u.len() - 1;
        self.u[finest].clear_grid(meter)?;
        charges::place_charges(&mut self.v, input.seed(self.seed), meter)?;
        self.finest_residual(meter)?;
        for _ in 0..self.problem.cycles {
            self.v_cycle(meter)?;
            self.finest_residual(meter)?;
        }
        let norm = self.r[finest].rms(meter)?;
        Ok(with_computed(norm_figures(self.problem.residual_norm), [norm]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn class_s_verifies() {
        check::verifies_again(&mut MgKernel::new(ProblemClass::S));
    }

    #[test]
    fn a_drawn_input_is_another_problem() {
        check::hangs_on_its_input(&mut MgKernel::new(ProblemClass::S));
    }

    #[test]
    fn class_w_verifies() {
        check::verifies(&mut MgKernel::new(ProblemClass::W));
    }

    #[test]
    fn another_seed_does_not_verify() {
        let mut mg = MgKernel::new(ProblemClass::S);
        mg.seed += 2;
        check::fails(&mut mg);
    }
}
