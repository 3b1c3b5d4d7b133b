//! The exact solution of SP and the fields derived from it.

use super::field::GridField;
use crate::meter::{EnoughWork, WorkMeter};

/// Coefficients of the exact solution (NAS-95-020, table 3.1): per quantity the constant,
/// then (x, y, z) of the first, second, third and fourth power.
const COEFFICIENTS: [[f64; 13]; 5] = [
    [2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3],
    [1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5],
    [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4],
    [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3],
    [5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2],
];

/// Way in which the inside of the initial field is interpolated; the field's six faces are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InitialField {
    /// Transfinite interpolation of the faces, as in NPB.
    Transfinite,
    /// Trilinear interpolation of the eight corners, as in GridNPB.
    Trilinear,
}

/// The exact solution on a grid.
pub(super) struct ExactSolution {
    points: usize,
    coefficients: [[f64; 13]; 5],
}

impl ExactSolution {
    /// Makes the exact solution on `points`³ points with the given constant term of the density.
    pub(super) fn new(points: usize, density: f64) -> Self {
        let mut coefficients = COEFFICIENTS;
        coefficients[0][0] = density;
        Self { points, coefficients }
    }

    /// Returns the five quantities of the exact solution at a point of the unit cube.
    fn values_at(&self, place: [f64; 3]) -> [f64; 5] {
        self.coefficients.map(|c| {
            let along = |d: usize| {
                let x = place[d];
                x * (c[1 + d] + x * (c[4 + d] + x * (c[7 + d] + x * c[10 + d])))
            };
            c[0] + along(0) + along(1) + along(2)
        })
    }

    fn unit_place(&self, k: usize, j: usize, i: usize) -> [f64; 3] {
        // Divided, so that the last point is at 1 exactly.
        let cells = (self.points - 1) as f64;
        [i, j, k].map(|index| index as f64 / cells)
    }

    /// Sets `u` to the exact solution.
    pub(super) fn fill_exact(
        &self,
        u: &mut GridField<5>,
        meter: &mut WorkMeter,
    ) -> Result<(), EnoughWork> {
        self.set_points(u, |place| self.values_at(place), meter)
    }

    /// Sets `u` to an initial field.
    pub(super) fn fill_initial(
        &self,
        initial: InitialField,
        u: &mut GridField<5>,
        meter: &mut WorkMeter,
    ) -> Result<(), EnoughWork> {
        let corners = [0, 1, 2, 3, 4, 5, 6, 7].map(|c| self.values_at(cube_corner(c)));
        let inside = |place| match initial {
            InitialField::Transfinite => self.transfinite(place),
            InitialField::Trilinear => trilinear(&corners, place),
        };
        let on_face = |place: [f64; 3]| place.iter().any(|x| *x == 0.0 || *x == 1.0);
        self.set_points(
            u,
            |place| if on_face(place) { self.values_at(place) } else { inside(place) },
            meter,
        )
    }

    fn set_points(
        &self,
        u: &mut GridField<5>,
        value: impl Fn([f64; 3]) -> [f64; 5],
        meter: &mut WorkMeter,
    ) -> Result<(), EnoughWork> {
        for k in 0..self.points {
            // Also the padding behind the rows gets a harmless state: a gas at rest.
            u.fill_plane(k, [1.0, 0.0, 0.0, 0.0, 1.0]);
            for (j, i) in self.plane_points() {
                u.set_point(k, j, i, value(self.unit_place(k, j, i)));
            }
            meter.count_work(1)?;
        }
        Ok(())
    }

    /// Returns the five quantities of the initial field at a point, as a blend of linear interpolations between opposite faces.
    fn transfinite(&self, place: [f64; 3]) -> [f64; 5] {
        let between = |d: usize| {
            let (mut low, mut high) = (place, place);
            (low[d], high[d]) = (0.0, 1.0);
            let (low, high) = (self.values_at(low), self.values_at(high));
            let x = place[d];
            [0, 1, 2, 3, 4].map(|m| x * high[m] + (1.0 - x) * low[m])
        };
        let (px, py, pz) = (between(0), between(1), between(2));
        [0, 1, 2, 3, 4].map(|m| {
            let (x, y, z) = (px[m], py[m], pz[m]);
            x + y + z - x * y - x * z - y * z + x * y * z
        })
    }

    /// Computes, for each quantity, the sum of squared differences from the exact solution over all points.
    pub(super) fn squared_errors(
        &self,
        u: &GridField<5>,
        meter: &mut WorkMeter,
    ) -> Result<[f64; 5], EnoughWork> {
        let mut sums = [0.0; 5];
        for k in 0..self.points {
            for (j, i) in self.plane_points() {
                let exact = self.values_at(self.unit_place(k, j, i));
                for (sum, (ours, exact)) in sums.iter_mut().zip(u.get(k, j, i).iter().zip(exact)) {
                    *sum += (ours - exact) * (ours - exact);
                }
            }
            meter.count_work(1)?;
        }
        Ok(sums)
    }

    /// Returns the points of a plane in the order of memory, as (j, i).
    fn plane_points(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let points = self.points;
        (0..points).flat_map(move |j| (0..points).map(move |i| (j, i)))
    }
}

/// Returns corner `c` of the unit cube: bit d of `c` is the corner's coordinate d.
fn cube_corner(c: usize) -> [f64; 3] {
    [0, 1, 2].map(|d| f64::from(u8::from(c >> d & 1 == 1)))
}

fn trilinear(corners: &[[f64; 5]; 8], place: [f64; 3]) -> [f64; 5] {
    let mut value = [0.0; 5];
    for (c, corner_value) in corners.iter().enumerate() {
        let weight: f64 = (0..3)
            .map(|d| if cube_corner(c)[d] == 1.0 { place[d] } else { 1.0 - place[d] })
            .product();
        for (value, corner_value) in value.iter_mut().zip(corner_value) {
            *value += weight * corner_value;
        }
    }
    value
}
