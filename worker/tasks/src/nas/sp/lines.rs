//! Scalar pentadiagonal systems along a bundle of grid lines.
//!
//! Each line has three systems: one for the first three variables, whose wave speed is the
//! velocity, and one each for the fourth and fifth, whose speed is that plus or minus the
//! speed of sound. Eight neighbouring lines are solved together, so that every operation is
//! on neighbouring numbers and all of it stays in the cache.

/// Number of grid lines that are solved together, as a bundle.
pub(super) const LANES: usize = 8;

/// One number for each line of a bundle.
pub(super) type Lanes = [f64; LANES];

/// The three linear systems along a line, each with the sign of the speed of sound in it and the variables that it solves for.
const SYSTEMS: [(f64, std::ops::Range<usize>); 3] = [(0.0, 0..3), (1.0, 3..4), (-1.0, 4..5)];

/// Coefficients of the systems at one point of every line of a bundle.
#[derive(Clone, Default)]
pub(super) struct LinePoint {
    /// Advection coefficient: Δt/(2h) · velocity.
    pub(super) advection: Lanes,
    /// Diffusion coefficient: Δt/h² · diffusivity.
    pub(super) diffusion: Lanes,
    /// Sound coefficient: Δt/(2h) · speed of sound.
    pub(super) sound: Lanes,
    /// Right-hand sides, which become the solutions.
    pub(super) x: [Lanes; 5],
    /// First and second superdiagonal of each system after elimination.
    upper: [[Lanes; 2]; 3],
}

/// A bundle of grid lines from boundary to boundary, along which systems are solved; the solution is zero at the boundaries.
pub(super) struct LineBundle {
    pub(super) stations: Vec<LinePoint>,
}

impl LineBundle {
    pub(super) fn new(points: usize) -> Self {
        Self { stations: vec![LinePoint::default(); points] }
    }

    /// Solves the systems of all lines; `dissipation` is Δt times the factor of fourth differences.
    pub(super) fn solve(&mut self, dissipation: f64) {
        let last = self.stations.len() - 1;
        // The boundary stations' solutions and superdiagonals are zero, so what couples to
        // them does not matter and every row but the first and last looks the same.
        for at in 1..last {
            let (before, rest) = self.stations.split_at_mut(at);
            let (here, after) = rest.split_at_mut(1);
            let (here, after) = (&mut here[0], &after[0]);
            let (second, first) = (&before[at.saturating_sub(2)], &before[at - 1]);
            let diagonal = if at == 1 || at == last - 1 { 5.0 } else { 6.0 };
            eliminate_points(second, first, here, after, dissipation, diagonal * dissipation);
        }
        for at in (1..last).rev() {
            let (front, behind) = self.stations.split_at_mut(at + 1);
            let second = &behind[1.min(behind.len() - 1)];
            substitute_points(&mut front[at], &behind[0], second);
        }
    }
}

/// Eliminates the two preceding points from the equations of point `here`, and scales the diagonal to 1.
#[inline(never)]
fn eliminate_points(
    second: &LinePoint,
    first: &LinePoint,
    here: &mut LinePoint,
    after: &LinePoint,
    dissipation: f64,
    diagonal: f64,
) {
    for (system, (sign, variables)) in SYSTEMS.into_iter().enumerate() {
        let mut factor = [0.0; LANES];
        let mut lower = [0.0; LANES];
        for l in 0..LANES {
            let below = -first.advection[l]
                - sign * first.sound[l]
                - first.diffusion[l]
                - 4.0 * dissipation;
            let above =
                after.advection[l] + sign * after.sound[l] - after.diffusion[l] - 4.0 * dissipation;
            let [second1, second2] = [second.upper[system][0][l], second.upper[system][1][l]];
            let [first1, first2] = [first.upper[system][0][l], first.upper[system][1][l]];
            lower[l] = below - dissipation * second1;
            let pivot = 1.0 + 2.0 * here.diffusion[l] + diagonal
                - dissipation * second2
                - lower[l] * first1;
            factor[l] = 1.0 / pivot;
            here.upper[system][0][l] = (above - lower[l] * first2) * factor[l];
            here.upper[system][1][l] = dissipation * factor[l];
        }
        for m in variables {
            for l in 0..LANES {
                let x = here.x[m][l] - dissipation * second.x[m][l] - lower[l] * first.x[m][l];
                here.x[m][l] = x * factor[l];
            }
        }
    }
}

/// Substitutes the solutions at the two following points into `here`.
#[inline(never)]
fn substitute_points(here: &mut LinePoint, first: &LinePoint, second: &LinePoint) {
    for (system, (_, variables)) in SYSTEMS.into_iter().enumerate() {
        for m in variables {
            for l in 0..LANES {
                here.x[m][l] -= here.upper[system][0][l] * first.x[m][l]
                    + here.upper[system][1][l] * second.x[m][l];
            }
        }
    }
}
