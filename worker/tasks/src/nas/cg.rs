//! CG: the smallest eigenvalue of a sparse symmetric matrix, by inverse iteration with a
//! conjugate gradient solver.

mod matrix;

use self::matrix::SparseMatrix;
use super::input::KernelInput;
use super::random::SEED;
use super::{RepeatedKernel, with_computed};
use crate::class::ProblemClass;
use crate::meter::{EnoughWork, WorkMeter};
use crate::result::Figure;

/// Iterations of the conjugate gradient solver in each outer iteration of CG.
const SOLVER_ITERATIONS: u64 = 25;
const TOLERANCE: f64 = 1e-10;

/// A class's problem and its answer (NPB3.3-SER `CG/cg.f`, `sys/setparams.c`).
#[derive(Clone, Copy)]
pub(crate) struct CgProblem {
    /// Order of the matrix.
    order: usize,
    /// Number of nonzeros of each random vector that the matrix is built from.
    nonzeros: usize,
    iterations: u64,
    shift: f64,
    zeta: f64,
}

fn class_problem(class: ProblemClass) -> CgProblem {
    let (order, nonzeros, iterations, shift, zeta) = match class {
        ProblemClass::S => (1_400, 7, 15, 10.0, 8.597_177_507_864_8),
        ProblemClass::W => (7_000, 8, 15, 12.0, 10.362_595_087_124),
        ProblemClass::A => (14_000, 11, 15, 20.0, 17.130_235_054_029),
        ProblemClass::B => (75_000, 13, 75, 60.0, 22.712_745_482_631),
    };
    CgProblem { order, nonzeros, iterations, shift, zeta }
}

fn zeta_figures(zeta: f64) -> Vec<Figure> {
    vec![
        Figure::expected_figure("zeta", Some(zeta), TOLERANCE),
        Figure::expected_figure("residual |x - Az|", None, 0.0),
    ]
}

/// Returns CG's figures for a NAS class with their published values; the computed values are still missing.
pub(crate) fn class_references(class: ProblemClass) -> Vec<Figure> {
    zeta_figures(class_problem(class).zeta)
}

/// The NAS kernel CG: it estimates an eigenvalue of a sparse matrix by the conjugate gradient method.
pub(crate) struct CgKernel {
    problem: CgProblem,
    seed: u64,
}

impl CgKernel {
    pub(crate) fn new(class: ProblemClass) -> Self {
        Self { problem: class_problem(class), seed: SEED }
    }
}

impl RepeatedKernel for CgKernel {
    fn units(&self) -> u64 {
        let CgProblem { order, iterations, .. } = self.problem;
        let products = iterations * (SOLVER_ITERATIONS + 1);
        SparseMatrix::generation_units(order) + products * SparseMatrix::product_units(order)
    }

    fn run(
        &mut self,
        input: KernelInput,
        meter: &mut WorkMeter,
    ) -> Result<Vec<Figure>, EnoughWork> {
        let CgProblem { order, nonzeros, iterations, shift, zeta } = self.problem;
        let matrix =
            SparseMatrix::generate_matrix(order, nonzeros, shift, input.seed(self.seed), meter)?;
        let mut x = vec![1.0; order];
        let mut solver = CgSolver::new(order);
        let (mut ours, mut residual) = (0.0, 0.0);
        for _ in 0..iterations {
            residual = solver.solve(&matrix, &x, meter)?;
            let z = &solver.z;
            ours = shift + 1.0 / dot(&x, z);
            let norm = 1.0 / dot(z, z).sqrt();
            x.iter_mut().zip(z).for_each(|(x, z)| *x = norm * z);
        }
        Ok(with_computed(zeta_figures(zeta), [ours, residual]))
    }
}

/// The vectors of the conjugate gradient method for A z = x.
struct CgSolver {
    z: Vec<f64>,
    r: Vec<f64>,
    p: Vec<f64>,
    q: Vec<f64>,
}

impl CgSolver {
    fn new(order: usize) -> Self {
        let zero = || vec![0.0; order];
        Self { z: zero(), r: zero(), p: zero(), q: zero() }
    }

    /// Solves A z = x approximately, with the result in `z`; returns |x − A z|.
    fn solve(
        &mut self,
        a: &SparseMatrix,
        x: &[f64],
        meter: &mut WorkMeter,
    ) -> Result<f64, EnoughWork> {
        let Self { z, r, p, q } = self;
        z.fill(0.0);
        r.copy_from_slice(x);
        p.copy_from_slice(x);
        let mut rho = dot(r, r);
        for _ in 0..SOLVER_ITERATIONS {
            a.multiply_vector(p, q, meter)?;
            let alpha = rho / dot(p, q);
            for ((z, r), (p, q)) in z.iter_mut().zip(r.iter_mut()).zip(p.iter().zip(q.iter())) {
                *z += alpha * p;
                *r -= alpha * q;
            }
            let previous = std::mem::replace(&mut rho, dot(r, r));
            let beta = rho / previous;
            p.iter_mut().zip(r.iter()).for_each(|(p, r)| *p = r + beta * *p);
        }
        a.multiply_vector(z, r, meter)?;
        Ok(x.iter().zip(r).map(|(x, r)| (x - *r) * (x - *r)).sum::<f64>().sqrt())
    }
}

/// Dot product in eight partial sums, so that additions need not wait for each other.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_chunks, a_rest) = a.as_chunks::<8>();
    let (b_chunks, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn class_s_verifies() {
        check::verifies_again(&mut CgKernel::new(ProblemClass::S));
    }

    #[test]
    fn a_drawn_input_is_another_problem() {
        check::hangs_on_its_input(&mut CgKernel::new(ProblemClass::S));
    }

    #[test]
    fn class_w_verifies() {
        check::verifies(&mut CgKernel::new(ProblemClass::W));
    }

    #[test]
    fn another_seed_does_not_verify() {
        let mut cg = CgKernel::new(ProblemClass::S);
        cg.seed += 2;
        check::fails(&mut cg);
    }
}
