//! The exact solution of SP and the fields derived from it.

use super::field::Field;
use crate::meter::{Enough, Meter};

/// Coefficients of the exact solution (NAS-95-020, table 3.1): per quantity the constant,
/// then (x, y, z) of the first, second, third and fourth power.
const COEFFICIENTS: [[f64; 13]; 5] = [
    [2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3],
    [1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5],
    [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4],
    [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3],
    [5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2],
];

/// The way in which the inside of the initial field is made; the six faces are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initial {
    /// Transfinite interpolation of the faces: NPB.
    Transfinite,
    /// Trilinear interpolation of the eight corners: GridNPB.
    Trilinear,
}

/// The exact solution on a grid.
pub(super) struct Exact {
    points: usize,
    coefficients: [[f64; 13]; 5],
}

impl Exact {
    /// The solution on `points`³ points with the given constant term of the density.
    pub(super) fn new(points: usize, density: f64) -> Self {
        let mut coefficients = COEFFICIENTS;
        coefficients[0][0] = density;
        Self { points, coefficients }
    }

    /// The five quantities at a place of the unit cube.
    fn at(&self, place: [f64; 3]) -> [f64; 5] {
        self.coefficients.map(|c| {
            let along = |d: usize| {
                let x = place[d];
                x * (c[1 + d] + x * (c[4 + d] + x * (c[7 + d] + x * c[10 + d])))
            };
            c[0] + along(0) + along(1) + along(2)
        })
    }

    fn place(&self, k: usize, j: usize, i: usize) -> [f64; 3] {
        // Divided, so that the last point is at 1 exactly.
        let cells = (self.points - 1) as f64;
        [i, j, k].map(|index| index as f64 / cells)
    }

    /// Sets `u` to the exact solution.
    pub(super) fn fill(&self, u: &mut Field<5>, meter: &mut Meter) -> Result<(), Enough> {
        self.set(u, |place| self.at(place), meter)
    }

    /// Sets `u` to an initial field.
    pub(super) fn initialise(
        &self,
        initial: Initial,
        u: &mut Field<5>,
        meter: &mut Meter,
    ) -> Result<(), Enough> {
        let corners = [0, 1, 2, 3, 4, 5, 6, 7].map(|c| self.at(corner(c)));
        let inside = |place| match initial {
            Initial::Transfinite => self.transfinite(place),
            Initial::Trilinear => trilinear(&corners, place),
        };
        let on_face = |place: [f64; 3]| place.iter().any(|x| *x == 0.0 || *x == 1.0);
        self.set(u, |place| if on_face(place) { self.at(place) } else { inside(place) }, meter)
    }

    fn set(
        &self,
        u: &mut Field<5>,
        value: impl Fn([f64; 3]) -> [f64; 5],
        meter: &mut Meter,
    ) -> Result<(), Enough> {
        for k in 0..self.points {
            // Also the padding behind the rows gets a harmless state: a gas at rest.
            u.fill_plane(k, [1.0, 0.0, 0.0, 0.0, 1.0]);
            for (j, i) in self.plane() {
                u.set(k, j, i, value(self.place(k, j, i)));
            }
            meter.work(1)?;
        }
        Ok(())
    }

    /// Blends linear interpolations between opposite faces.
    fn transfinite(&self, place: [f64; 3]) -> [f64; 5] {
        let between = |d: usize| {
            let (mut low, mut high) = (place, place);
            (low[d], high[d]) = (0.0, 1.0);
            let (low, high) = (self.at(low), self.at(high));
            let x = place[d];
            [0, 1, 2, 3, 4].map(|m| x * high[m] + (1.0 - x) * low[m])
        };
        let (px, py, pz) = (between(0), between(1), between(2));
        [0, 1, 2, 3, 4].map(|m| {
            let (x, y, z) = (px[m], py[m], pz[m]);
            x + y + z - x * y - x * z - y * z + x * y * z
        })
    }

    /// Sums of squared differences from the exact solution over all points.
    pub(super) fn squared_errors(
        &self,
        u: &Field<5>,
        meter: &mut Meter,
    ) -> Result<[f64; 5], Enough> {
        let mut sums = [0.0; 5];
        for k in 0..self.points {
            for (j, i) in self.plane() {
                let exact = self.at(self.place(k, j, i));
                for (sum, (ours, exact)) in sums.iter_mut().zip(u.get(k, j, i).iter().zip(exact)) {
                    *sum += (ours - exact) * (ours - exact);
                }
            }
            meter.work(1)?;
        }
        Ok(sums)
    }

    /// The points of a plane in the order of memory, as (j, i).
    fn plane(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let points = self.points;
        (0..points).flat_map(move |j| (0..points).map(move |i| (j, i)))
    }
}

/// Corner `c` of the unit cube: bit d of `c` is its coordinate d.
fn corner(c: usize) -> [f64; 3] {
    [0, 1, 2].map(|d| f64::from(u8::from(c >> d & 1 == 1)))
}

fn trilinear(corners: &[[f64; 5]; 8], place: [f64; 3]) -> [f64; 5] {
    let mut value = [0.0; 5];
    for (c, corner_value) in corners.iter().enumerate() {
        let weight: f64 =
            (0..3).map(|d| if corner(c)[d] == 1.0 { place[d] } else { 1.0 - place[d] }).product();
        for (value, corner_value) in value.iter_mut().zip(corner_value) {
            *value += weight * corner_value;
        }
    }
    value
}
