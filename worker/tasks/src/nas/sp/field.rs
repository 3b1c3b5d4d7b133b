//! Several quantities on a cubic grid, laid out for the cache.

/// Numbers in a cache line.
const LINE: usize = 8;

/// `C` quantities on n³ points: plane by plane, row by row, in a row one quantity after the
/// other, i fastest.
///
/// Sweeps along x, y and z all find the quantities of one row close together. Rows are whole cache lines long, and planes an odd
/// number of cache lines, so that the points of a line along z do not compete for the same cache sets.
pub(super) struct GridField<const C: usize> {
    points: usize,
    row: usize,
    plane: usize,
    values: Vec<f64>,
}

impl<const C: usize> GridField<C> {
    pub(super) fn new(points: usize) -> Self {
        let row = points.next_multiple_of(LINE);
        let lines = points * C * row / LINE;
        let plane = (lines | 1) * LINE;
        Self { points, row, plane, values: vec![0.0; points * plane] }
    }

    /// Returns the number of grid points per side.
    pub(super) fn points(&self) -> usize {
        self.points
    }

    /// Returns how many numbers a row has for one quantity, padding included.
    pub(super) fn row_length(&self) -> usize {
        self.row
    }

    /// Returns the quantities of row `j` of plane `k`, padding included.
    pub(super) fn row(&self, k: usize, j: usize) -> [&[f64]; C] {
        let start = k * self.plane + j * C * self.row;
        let all = &self.values[start..start + C * self.row];
        std::array::from_fn(|m| &all[m * self.row..(m + 1) * self.row])
    }

    pub(super) fn row_mut(&mut self, k: usize, j: usize) -> [&mut [f64]; C] {
        let start = k * self.plane + j * C * self.row;
        let mut rest = &mut self.values[start..start + C * self.row];
        std::array::from_fn(|_| {
            let (quantity, after) = std::mem::take(&mut rest).split_at_mut(self.row);
            rest = after;
            quantity
        })
    }

    pub(super) fn get(&self, k: usize, j: usize, i: usize) -> [f64; C] {
        self.row(k, j).map(|quantity| quantity[i])
    }

    pub(super) fn set_point(&mut self, k: usize, j: usize, i: usize, value: [f64; C]) {
        for (quantity, value) in self.row_mut(k, j).into_iter().zip(value) {
            quantity[i] = value;
        }
    }

    /// Sets every quantity in plane `k`, padding included.
    pub(super) fn fill_plane(&mut self, k: usize, value: [f64; C]) {
        for j in 0..self.points {
            for (quantity, value) in self.row_mut(k, j).into_iter().zip(value) {
                quantity.fill(value);
            }
        }
    }

    /// Adds the squares of each quantity at the points of plane `k` to `sums`.
    pub(super) fn add_squares(&self, k: usize, sums: &mut [f64; C]) {
        for j in 0..self.points {
            for (sum, quantity) in sums.iter_mut().zip(self.row(k, j)) {
                *sum += quantity[..self.points].iter().map(|x| x * x).sum::<f64>();
            }
        }
    }
}
