//! A complex field on a box, real and imaginary parts apart.

/// A complex number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ComplexNumber {
    pub(super) re: f64,
    pub(super) im: f64,
}

/// Complex values on nx × ny × nz points, x fastest.
pub(super) struct ComplexField {
    shape: [usize; 3],
    /// Distance from one row to the next, in numbers. It exceeds nx, a power of two, a little, so that rows don't all fall on the
    /// same cache sets.
    row: usize,
    /// Distance from one plane to the next, in numbers; not a power of two, so that planes don't all fall on the same cache sets.
    plane: usize,
    re: Vec<f64>,
    im: Vec<f64>,
}

/// Size of a cache line in numbers.
const PADDING: usize = 8;

impl ComplexField {
    pub(super) fn new(shape: [usize; 3]) -> Self {
        let [nx, ny, nz] = shape;
        let row = nx + PADDING;
        let plane = ny * row + PADDING;
        Self { shape, row, plane, re: vec![0.0; nz * plane], im: vec![0.0; nz * plane] }
    }

    pub(super) fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Returns the real and the imaginary parts of row `j` of plane `k`.
    pub(super) fn row(&self, k: usize, j: usize) -> (&[f64], &[f64]) {
        let start = k * self.plane + j * self.row;
        let range = start..start + self.shape[0];
        (&self.re[range.clone()], &self.im[range])
    }

    pub(super) fn row_mut(&mut self, k: usize, j: usize) -> (&mut [f64], &mut [f64]) {
        let start = k * self.plane + j * self.row;
        let range = start..start + self.shape[0];
        (&mut self.re[range.clone()], &mut self.im[range])
    }

    pub(super) fn value_at(&self, k: usize, j: usize, i: usize) -> ComplexNumber {
        let (re, im) = self.row(k, j);
        ComplexNumber { re: re[i], im: im[i] }
    }
}
