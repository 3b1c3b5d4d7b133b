//! The sparse matrix of CG and its product with a vector.

use crate::meter::{EnoughWork, WorkMeter};
use crate::nas::random::NasRandom;

/// Matrix rows per unit of work of a matrix-vector product.
const PRODUCT_ROWS: usize = 1 << 10;
/// Random vectors, or finished rows, per unit of work of the matrix generation.
const GENERATION_ROWS: usize = 1 << 9;

/// Reciprocal condition number: weights of the outer products fall from 1 to this.
const RCOND: f64 = 0.1;
/// Diagonal element that every random vector has.
const DIAGONAL: f64 = 0.5;

/// A square sparse matrix in compressed row form.
pub(super) struct SparseMatrix {
    /// Row `i` is at `starts[i]..starts[i + 1]` of the two vectors below.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

/// A random vector with few nonzeros, as column and value.
type SparseVector = Vec<(u32, f64)>;

impl SparseMatrix {
    pub(super) fn generation_units(order: usize) -> u64 {
        // Drawing, counting, filling in, and adding up.
        4 * order.div_ceil(GENERATION_ROWS) as u64
    }

    pub(super) fn product_units(order: usize) -> u64 {
        order.div_ceil(PRODUCT_ROWS) as u64
    }

    /// Returns CG's matrix Σᵢ wᵢ xᵢ xᵢᵀ + (rcond − shift)·I, with random sparse vectors xᵢ and weights wᵢ that fall from 1 to
    /// rcond.
    pub(super) fn generate_matrix(
        order: usize,
        nonzeros: usize,
        shift: f64,
        seed: u64,
        meter: &mut WorkMeter,
    ) -> Result<Self, EnoughWork> {
        let mut random = NasRandom::new(seed);
        // The reference program draws one number before it makes the matrix.
        random.next();
        let mut vectors = Vec::with_capacity(order);
        for i in 0..order {
            vectors.push(sparse_vector(order, nonzeros, i as u32, &mut random));
            if ends_block(i, order, GENERATION_ROWS) {
                meter.count_work(1)?;
            }
        }
        let mut rows = MatrixRows::with_room_for(&vectors, meter)?;
        let ratio = RCOND.powf(1.0 / order as f64);
        let mut weight = 1.0;
        for (i, vector) in vectors.iter().enumerate() {
            for &(row, value) in vector {
                let scale = weight * value;
                for &(column, value) in vector {
                    let on_diagonal = row == column && row as usize == i;
                    let extra = if on_diagonal { RCOND - shift } else { 0.0 };
                    rows.push(row as usize, column, value * scale + extra);
                }
            }
            weight *= ratio;
            if ends_block(i, order, GENERATION_ROWS) {
                meter.count_work(1)?;
            }
        }
        rows.into_matrix(meter)
    }

    /// Computes the product y = A x.
    pub(super) fn multiply_vector(
        &self,
        x: &[f64],
        y: &mut [f64],
        meter: &mut WorkMeter,
    ) -> Result<(), EnoughWork> {
        for (block, y) in y.chunks_mut(PRODUCT_ROWS).enumerate() {
            let starts = &self.starts[block * PRODUCT_ROWS..];
            for (y, bounds) in y.iter_mut().zip(starts.windows(2)) {
                let row = bounds[0]..bounds[1];
                *y = row_product(&self.values[row.clone()], &self.columns[row], x);
            }
            meter.count_work(1)?;
        }
        Ok(())
    }
}

/// Returns the product of a matrix row with x, in four partial sums, so that additions need not wait for each other.
fn row_product(values: &[f64], columns: &[u32], x: &[f64]) -> f64 {
    let (value_chunks, value_rest) = values.as_chunks::<4>();
    let (column_chunks, column_rest) = columns.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (values, columns) in value_chunks.iter().zip(column_chunks) {
        for lane in 0..4 {
            sums[lane] += values[lane] * x[columns[lane] as usize];
        }
    }
    for (value, column) in value_rest.iter().zip(column_rest) {
        sums[0] += value * x[*column as usize];
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

fn ends_block(i: usize, of: usize, block: usize) -> bool {
    (i + 1).is_multiple_of(block) || i + 1 == of
}

/// Returns a sparse vector with `nonzeros` random elements at random places, and [`DIAGONAL`] at place `i`.
fn sparse_vector(order: usize, nonzeros: usize, i: u32, random: &mut NasRandom) -> SparseVector {
    let places = order.next_power_of_two() as f64;
    let mut vector = SparseVector::with_capacity(nonzeros + 1);
    while vector.len() < nonzeros {
        let value = random.next();
        let place = (random.next() * places) as u32;
        if (place as usize) < order && vector.iter().all(|(taken, _)| *taken != place) {
            vector.push((place, value));
        }
    }
    match vector.iter_mut().find(|(place, _)| *place == i) {
        Some((_, value)) => *value = DIAGONAL,
        None => vector.push((i, DIAGONAL)),
    }
    vector
}

/// Matrix rows under construction: elements in any order, several for one position.
struct MatrixRows {
    matrix: SparseMatrix,
    /// Number of elements of each row so far.
    filled: Vec<usize>,
}

impl MatrixRows {
    fn with_room_for(vectors: &[SparseVector], meter: &mut WorkMeter) -> Result<Self, EnoughWork> {
        let mut starts = vec![0; vectors.len() + 1];
        for block in vectors.chunks(GENERATION_ROWS) {
            for vector in block {
                for (row, _) in vector {
                    starts[*row as usize + 1] += vector.len();
                }
            }
            meter.count_work(1)?;
        }
        for row in 0..vectors.len() {
            starts[row + 1] += starts[row];
        }
        let room = starts[vectors.len()];
        let matrix = SparseMatrix { starts, columns: vec![0; room], values: vec![0.0; room] };
        Ok(Self { matrix, filled: vec![0; vectors.len()] })
    }

    fn push(&mut self, row: usize, column: u32, value: f64) {
        let at = self.matrix.starts[row] + self.filled[row];
        self.matrix.columns[at] = column;
        self.matrix.values[at] = value;
        self.filled[row] += 1;
    }

    /// Sorts every row by column and adds up elements of the same position, in place.
    fn into_matrix(self, meter: &mut WorkMeter) -> Result<SparseMatrix, EnoughWork> {
        let Self { mut matrix, filled } = self;
        let order = filled.len();
        let mut row: Vec<(u32, f64)> = Vec::new();
        let mut end = 0;
        for (i, filled) in filled.into_iter().enumerate() {
            let range = matrix.starts[i]..matrix.starts[i] + filled;
            matrix.starts[i] = end;
            row.clear();
            row.extend(
                matrix.columns[range.clone()]
                    .iter()
                    .copied()
                    .zip(matrix.values[range].iter().copied()),
            );
            // Stable: elements for one place are added in the order they were made.
            row.sort_by_key(|(column, _)| *column);
            for &(column, value) in &row {
                if end > matrix.starts[i] && matrix.columns[end - 1] == column {
                    matrix.values[end - 1] += value;
                } else {
                    matrix.columns[end] = column;
                    matrix.values[end] = value;
                    end += 1;
                }
            }
            if ends_block(i, order, GENERATION_ROWS) {
                meter.count_work(1)?;
            }
        }
        matrix.starts[order] = end;
        matrix.columns.truncate(end);
        matrix.values.truncate(end);
        Ok(matrix)
    }
}
