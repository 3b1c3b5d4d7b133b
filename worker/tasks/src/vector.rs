//! `vector`: the synthetic task of the Burst-HADS paper, vector operations over a given
//! amount of memory.
//!
//! Two vectors of 64-bit integers fill the memory. A pass does y ← y + a·x, x ← x + b·y on
//! every element, modulo 2^64. That is exact, so no bit can be lost in rounding: after any
//! number of passes every element is known in closed form, as a power of a 2×2 matrix
//! applied to a start that is linear in the index. The check at the end compares all of the
//! memory with it, so one bit that a migration lost anywhere is found.
//!
//! So the right final values can be computed without the work. The task's trail ([`trail`](crate::trail)) can't: no
//! closed form is known for it, and it includes every x of every pass.

use crate::meter::{EnoughWork, WorkMeter};
use crate::result::Figure;
use crate::trail::{LANES, TrailRecorder, TrailSegment, WorkTrail, extend_lane};

const A: u64 = 0x9E37_79B9_7F4A_7C15;
const B: u64 = 0xD1B5_4A32_D192_ED03;

/// Start values of the vector x by index i, as slope·i + offset; `START_Y` has those of y. The task's nonce is added to the
/// offsets.
const START_X: LinearMap =
    LinearMap { slope: 0xBF58_476D_1CE4_E5B9, offset: 0x94D0_49BB_1331_11EB };
const START_Y: LinearMap =
    LinearMap { slope: 0xC2B2_AE3D_27D4_EB4F, offset: 0x1656_67B1_9E37_79F9 };

/// Elements of each vector per unit of work: 256 KiB of memory.
const BLOCK: usize = 1 << 14;
/// Bytes of memory for each index: one element of each of the two vectors.
const BYTES_PER_INDEX: usize = 16;

/// A task of the program `vector`: passes of vector operations over its memory.
pub(crate) struct VectorTask {
    start: StartValues,
    x: Vec<u64>,
    y: Vec<u64>,
    /// Number of complete passes.
    passes: u64,
    /// Number of blocks that have had one pass more than `passes`.
    ahead: usize,
    trail: TrailRecorder,
}

impl VectorTask {
    /// Makes a task that fills `bytes` of memory, rounded up to one element of each vector, with values that depend on its nonce.
    pub(crate) fn new(bytes: usize, nonce: u64) -> Self {
        let length = bytes.div_ceil(BYTES_PER_INDEX);
        let start = StartValues::new(nonce);
        let trail = TrailRecorder::new(nonce);
        Self { start, x: vec![0; length], y: vec![0; length], passes: 0, ahead: 0, trail }
    }

    /// Returns the task in the state that it has at the beginning of a segment.
    pub(crate) fn at_segment(self, segment: TrailSegment) -> Self {
        Self { passes: segment.from, trail: TrailRecorder::new(segment.trail), ..self }
    }

    /// Returns the trail (hashes of all values computed so far, at points of the work), and the hash after the last pass.
    pub(crate) fn finish_trail(&self) -> (WorkTrail, u64) {
        self.trail.finish_trail()
    }

    /// Returns the units of work of one pass; setting up the memory takes as many, and so does checking it.
    pub(crate) fn units_per_pass(&self) -> u64 {
        self.x.len().div_ceil(BLOCK) as u64
    }

    /// Returns the number of complete passes done.
    pub(crate) fn complete_passes(&self) -> u64 {
        self.passes
    }

    /// Sets up the memory and makes `passes` passes, or as many as the meter allows.
    pub(crate) fn run(&mut self, passes: u64, meter: &mut WorkMeter) {
        self.set_up(meter);
        for _ in 0..passes {
            if self.pass_once(meter).is_err() {
                break;
            }
        }
    }

    fn set_up(&mut self, meter: &mut WorkMeter) {
        let (x, y) = PassMatrix::PASS.power(self.passes).apply(self.start.x, self.start.y);
        let (mut x_next, mut y_next) = (x.values(), y.values());
        for (x, y) in self.x.chunks_mut(BLOCK).zip(self.y.chunks_mut(BLOCK)) {
            x.fill_with(&mut x_next);
            y.fill_with(&mut y_next);
            meter.count_only(1);
        }
    }

    fn pass_once(&mut self, meter: &mut WorkMeter) -> Result<(), EnoughWork> {
        let check = self.units_per_pass();
        for (x, y) in self.x.chunks_mut(BLOCK).zip(self.y.chunks_mut(BLOCK)) {
            let lanes = self.trail.pass_lanes();
            for (x, y) in x.chunks_mut(LANES).zip(y.chunks_mut(LANES)) {
                for ((x, y), lane) in x.iter_mut().zip(y).zip(lanes.iter_mut()) {
                    *y = y.wrapping_add(A.wrapping_mul(*x));
                    *x = x.wrapping_add(B.wrapping_mul(*y));
                    *lane = extend_lane(*lane, *x);
                }
            }
            self.ahead += 1;
            if self.ahead == check as usize {
                (self.passes, self.ahead) = (self.passes + 1, 0);
                self.trail.pass_is_over();
            }
            // A check reads what a pass reads and writes: about half the cost.
            meter.work_keeping(1, check / 2)?;
        }
        Ok(())
    }

    /// Compares all of the memory with the closed form; returns the figures and the sum of all
    /// elements.
    pub(crate) fn check_memory(&self, meter: &mut WorkMeter) -> (Vec<Figure>, u64) {
        let (mut wrong, mut sum, mut expected_sum) = (0_u64, 0_u64, 0_u64);
        for (block, (x, y)) in self.x.chunks(BLOCK).zip(self.y.chunks(BLOCK)).enumerate() {
            let passes = self.passes + u64::from(block < self.ahead);
            let (at_x, at_y) = PassMatrix::PASS.power(passes).apply(self.start.x, self.start.y);
            let (mut x_next, mut y_next) =
                (at_x.from(block * BLOCK).values(), at_y.from(block * BLOCK).values());
            for (x, y) in x.iter().zip(y) {
                wrong += u64::from(*x != x_next()) + u64::from(*y != y_next());
                sum = sum.wrapping_add(*x).wrapping_add(*y);
            }
            for line in [at_x, at_y] {
                expected_sum =
                    expected_sum.wrapping_add(line.from(block * BLOCK).sum_of_first(x.len()));
            }
            meter.count_only(1);
        }
        let figures = vec![
            Figure::new("wrong elements", wrong as f64, Some(0.0), 0.0),
            // The upper bits, as many as a figure holds exactly.
            Figure::new("checksum", (sum >> 12) as f64, Some((expected_sum >> 12) as f64), 0.0),
        ];
        (figures, sum)
    }
}

/// Returns the sum of all elements by the closed form, for a task of `bytes` bytes with the given nonce, after `passes` complete
/// passes and `units` units of work in all, set-up and check included. `None`: these numbers can't occur together.
pub(crate) fn expected_sum(bytes: usize, nonce: u64, passes: u64, units: u64) -> Option<u64> {
    let length = bytes.div_ceil(BYTES_PER_INDEX);
    let blocks = length.div_ceil(BLOCK) as u64;
    let done = self::units_after(bytes, passes)?;
    let ahead = units.checked_sub(done).filter(|ahead| *ahead < blocks.max(1))?;
    let start = StartValues::new(nonce);
    // All blocks that have had as many passes are one piece.
    let piece = |passes: u64, from: usize, until: usize| {
        let (x, y) = PassMatrix::PASS.power(passes).apply(start.x, start.y);
        let sum = |line: LinearMap| line.from(from).sum_of_first(until - from);
        sum(x).wrapping_add(sum(y))
    };
    let border = length.min(usize::try_from(ahead).ok()?.checked_mul(BLOCK)?);
    Some(piece(passes + 1, 0, border).wrapping_add(piece(passes, border, length)))
}

/// Returns the units of work of a task of `bytes` bytes after `passes` complete passes, set-up and check included; `None`: the
/// number is too large.
pub(crate) fn units_after(bytes: usize, passes: u64) -> Option<u64> {
    let blocks = bytes.div_ceil(BYTES_PER_INDEX).div_ceil(BLOCK) as u64;
    passes.checked_add(2)?.checked_mul(blocks)
}

/// Start values of both vectors of the program `vector`.
#[derive(Clone, Copy, Debug)]
struct StartValues {
    x: LinearMap,
    y: LinearMap,
}

impl StartValues {
    fn new(nonce: u64) -> Self {
        let shifted =
            |line: LinearMap, by: u64| LinearMap { offset: line.offset.wrapping_add(by), ..line };
        Self { x: shifted(START_X, nonce), y: shifted(START_Y, nonce.rotate_left(32)) }
    }
}

/// The map i → slope·i + offset modulo 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LinearMap {
    slope: u64,
    offset: u64,
}

impl LinearMap {
    /// Returns the map with its origin moved to `index`: its value at 0 is the value of this map at `index`.
    fn from(self, index: usize) -> Self {
        Self { offset: self.offset.wrapping_add(self.slope.wrapping_mul(index as u64)), ..self }
    }

    /// Returns a function whose calls give the map's values at 0, 1, 2, …
    fn values(self) -> impl FnMut() -> u64 {
        let mut next = self.offset;
        move || {
            let value = next;
            next = next.wrapping_add(self.slope);
            value
        }
    }

    /// Returns the sum of the map's first `n` values.
    fn sum_of_first(self, n: usize) -> u64 {
        let n = n as u64;
        // One of two neighbours is even: halve it before the product wraps.
        let pairs = if n.is_multiple_of(2) {
            (n / 2).wrapping_mul(n.wrapping_sub(1))
        } else {
            n.wrapping_mul((n - 1) / 2)
        };
        n.wrapping_mul(self.offset).wrapping_add(pairs.wrapping_mul(self.slope))
    }

    fn scaled(self, factor: u64) -> Self {
        Self { slope: self.slope.wrapping_mul(factor), offset: self.offset.wrapping_mul(factor) }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            slope: self.slope.wrapping_add(other.slope),
            offset: self.offset.wrapping_add(other.offset),
        }
    }
}

/// Effect of a number of passes on an element (x, y) of the two vectors, as a matrix.
#[derive(Clone, Copy)]
struct PassMatrix([[u64; 2]; 2]);

impl PassMatrix {
    /// The effect of one pass: y becomes y + a·x, then x becomes x + b·y with the new y.
    const PASS: Self = Self([[A.wrapping_mul(B).wrapping_add(1), B], [A, 1]]);

    fn times(self, other: Self) -> Self {
        let element = |row: usize, column: usize| {
            let product = |k: usize| self.0[row][k].wrapping_mul(other.0[k][column]);
            product(0).wrapping_add(product(1))
        };
        Self([[element(0, 0), element(0, 1)], [element(1, 0), element(1, 1)]])
    }

    fn power(self, mut exponent: u64) -> Self {
        let (mut result, mut square) = (Self([[1, 0], [0, 1]]), self);
        while exponent > 0 {
            if !exponent.is_multiple_of(2) {
                result = result.times(square);
            }
            square = square.times(square);
            exponent /= 2;
        }
        result
    }

    fn apply(self, x: LinearMap, y: LinearMap) -> (LinearMap, LinearMap) {
        let [of_x, of_y] = self.0.map(|[by_x, by_y]| x.scaled(by_x).plus(y.scaled(by_y)));
        (of_x, of_y)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::meter::RunGoal;

    const BYTES: usize = 3 * BLOCK * BYTES_PER_INDEX + 400;

    fn verified(vector: &VectorTask) -> bool {
        let (figures, _) = vector.check_memory(&mut WorkMeter::unlimited());
        figures.iter().all(|f| f.verified() == Some(true))
    }

    #[test]
    fn the_sum_is_known_without_the_work_and_is_another_for_another_nonce() {
        for (nonce, passes) in [(0, 0), (7, 3), (u64::MAX - 9, 11)] {
            let mut vector = VectorTask::new(BYTES, nonce);
            let mut meter = WorkMeter::unlimited();
            vector.run(passes, &mut meter);
            let (_, sum) = vector.check_memory(&mut meter);
            let units = meter.units();
            let expected = expected_sum(BYTES, nonce, passes, units);
            assert_eq!(expected, Some(sum), "{nonce} {passes}");
            assert_ne!(expected_sum(BYTES, nonce + 1, passes, units), expected);
            assert_ne!(expected_sum(BYTES, nonce, passes, units + 1), expected);
            assert_eq!(expected_sum(BYTES, nonce, passes + 1, units), None);
        }
    }

    fn after(passes: u64) -> VectorTask {
        let mut vector = VectorTask::new(BYTES, 5);
        vector.run(passes, &mut WorkMeter::unlimited());
        assert_eq!(vector.complete_passes(), passes);
        vector
    }

    #[test]
    fn verifies_after_any_number_of_passes() {
        for passes in [0, 1, 2, 7, 100] {
            assert!(verified(&after(passes)), "{passes} passes");
        }
    }

    #[test]
    fn verifies_when_it_stops_within_a_pass() {
        // A millisecond for each of set-up's four units, the first pass and two more blocks.
        let mut now = Duration::ZERO;
        let clock = move || {
            now += Duration::from_millis(1);
            now
        };
        let goal = RunGoal { due: 8, cpu_time: Some(Duration::from_millis(12)) };
        let mut vector = VectorTask::new(BYTES, 5);
        let mut meter = WorkMeter::start(Box::new(clock), goal, None);
        vector.run(u64::MAX, &mut meter);
        assert_eq!((vector.passes, vector.ahead, meter.units()), (1, 2, 10));
        let (_, sum) = vector.check_memory(&mut meter);
        assert_eq!(expected_sum(BYTES, 5, 1, meter.units()), Some(sum));
        assert!(verified(&vector));
    }

    #[test]
    fn any_flipped_bit_is_found() {
        for (at, bit) in [(0, 0), (BLOCK, 63), (3 * BLOCK + 24, 17)] {
            let mut vector = after(3);
            vector.x[at] ^= 1 << bit;
            assert!(!verified(&vector), "x[{at}] bit {bit}");
            let mut vector = after(3);
            vector.y[at] ^= 1 << bit;
            assert!(!verified(&vector), "y[{at}] bit {bit}");
        }
    }

    #[test]
    fn a_lost_pass_over_one_block_is_found() {
        let mut vector = after(3);
        let older = after(2);
        vector.x[BLOCK..2 * BLOCK].copy_from_slice(&older.x[BLOCK..2 * BLOCK]);
        vector.y[BLOCK..2 * BLOCK].copy_from_slice(&older.y[BLOCK..2 * BLOCK]);
        assert!(!verified(&vector));
    }

    #[test]
    fn a_segment_of_it_comes_to_the_same_number() {
        let whole = after(100);
        let (trail, _) = whole.finish_trail();
        for point in [0, 1, trail.points.len() - 1] {
            let segment = trail.segment(point, 5).expect("a segment begins there");
            let mut part = VectorTask::new(BYTES, 5).at_segment(segment);
            part.run(segment.passes, &mut WorkMeter::unlimited());
            assert_eq!(part.finish_trail().1, trail.points[point]);
            assert!(verified(&part));
            let wrong = TrailSegment { trail: segment.trail ^ 1, ..segment };
            let mut part = VectorTask::new(BYTES, 5).at_segment(wrong);
            part.run(segment.passes, &mut WorkMeter::unlimited());
            assert_ne!(part.finish_trail().1, trail.points[point]);
        }
    }

    #[test]
    fn fills_the_memory_it_was_given() {
        let vector = VectorTask::new(10_060_000, 5);
        assert_eq!((vector.x.len() + vector.y.len()) * 8, 10_060_000);
        assert_eq!(VectorTask::new(1, 5).x.len(), 1);
    }
}
