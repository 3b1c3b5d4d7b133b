//! One-dimensional FFTs, eight lines at a time.
//!
//! Stockham's self-sorting algorithm with radix 4, and one step of radix 2 where the length
//! is an odd power of two. The eight lines lie side by side, so that every operation is on
//! neighbouring numbers and the compiler can use vector instructions.

use std::f64::consts::TAU;

/// Number of lines that are transformed together.
pub(super) const LANES: usize = 8;

/// Numbers in a vector register of the baseline instruction set.
const WIDTH: usize = 2;

/// Direction of a Fourier transform: the sign of its exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FourierDirection {
    /// Forward transform, with the factors exp(−2πi·jk/n).
    Forward,
    /// Inverse transform, with the factors exp(+2πi·jk/n), without division by n.
    Inverse,
}

/// Fourier transform of eight lines of equal length at once, with its roots of unity and buffers.
pub(super) struct FourierLines {
    length: usize,
    /// Cosine and sine of 2πk/n, by k, for lines of n points.
    roots: Vec<(f64, f64)>,
    now: LineBuffer,
    next: LineBuffer,
}

/// Values of eight lines: point by point, the eight values of each point side by side.
struct LineBuffer {
    re: Vec<f64>,
    im: Vec<f64>,
}

impl FourierLines {
    /// Makes the transform of lines of `length` points, a power of two.
    pub(super) fn new(length: usize) -> Self {
        debug_assert!(length.is_power_of_two());
        let angle = |k: usize| TAU * k as f64 / length as f64;
        let zero = || vec![0.0; length * LANES];
        Self {
            length,
            roots: (0..length).map(|k| (angle(k).cos(), angle(k).sin())).collect(),
            now: LineBuffer { re: zero(), im: zero() },
            next: LineBuffer { re: zero(), im: zero() },
        }
    }

    /// Sets all points of line number `lane`.
    pub(super) fn load_lane(&mut self, lane: usize, re: &[f64], im: &[f64]) {
        let (re_lines, _) = self.now.re.as_chunks_mut::<LANES>();
        let (im_lines, _) = self.now.im.as_chunks_mut::<LANES>();
        for (lanes, value) in re_lines.iter_mut().zip(re) {
            lanes[lane] = *value;
        }
        for (lanes, value) in im_lines.iter_mut().zip(im) {
            lanes[lane] = *value;
        }
    }

    /// Reads all points of line number `lane`.
    pub(super) fn store_lane(&self, lane: usize, re: &mut [f64], im: &mut [f64]) {
        let (re_lines, _) = self.now.re.as_chunks::<LANES>();
        let (im_lines, _) = self.now.im.as_chunks::<LANES>();
        for (value, lanes) in re.iter_mut().zip(re_lines) {
            *value = lanes[lane];
        }
        for (value, lanes) in im.iter_mut().zip(im_lines) {
            *value = lanes[lane];
        }
    }

    /// Sets point `at` of all lines.
    pub(super) fn load_point(&mut self, at: usize, re: &[f64], im: &[f64]) {
        let range = at * LANES..(at + 1) * LANES;
        self.now.re[range.clone()].copy_from_slice(re);
        self.now.im[range].copy_from_slice(im);
    }

    /// Reads point `at` of all lines.
    pub(super) fn store_point(&self, at: usize, re: &mut [f64], im: &mut [f64]) {
        let range = at * LANES..(at + 1) * LANES;
        re.copy_from_slice(&self.now.re[range.clone()]);
        im.copy_from_slice(&self.now.im[range]);
    }

    /// Transforms all lines.
    pub(super) fn transform_lines(&mut self, direction: FourierDirection) {
        let sign = if direction == FourierDirection::Forward { -1.0 } else { 1.0 };
        // `remaining` points of sub-transforms, of which there are `stride`.
        let (mut remaining, mut stride) = (self.length, 1);
        while remaining > 1 {
            let radix = if remaining.is_multiple_of(4) { 4 } else { 2 };
            if radix == 4 {
                self.radix4(remaining, stride, sign);
            } else {
                self.radix2(remaining, stride, sign);
            }
            std::mem::swap(&mut self.now, &mut self.next);
            remaining /= radix;
            stride *= radix;
        }
    }

    fn unity_root(&self, k: usize, sign: f64) -> UnityRoot {
        let (cos, sin) = self.roots[k];
        UnityRoot { re: cos, im: sign * sin }
    }

    fn radix2(&mut self, remaining: usize, stride: usize, sign: f64) {
        let (half, block) = (remaining / 2, stride * LANES);
        for p in 0..half {
            let w = self.unity_root(p * stride, sign);
            let x = |part| block * (p + part * half);
            let y = |part| block * (2 * p + part);
            for q in (0..block).step_by(WIDTH) {
                let a = self.now.get(x(0) + q);
                let b = self.now.get(x(1) + q);
                self.next.set(y(0) + q, a.plus(b));
                self.next.set(y(1) + q, a.minus(b).times(w));
            }
        }
    }

    fn radix4(&mut self, remaining: usize, stride: usize, sign: f64) {
        let (quarter, block) = (remaining / 4, stride * LANES);
        for p in 0..quarter {
            let w1 = self.unity_root(p * stride, sign);
            let w2 = self.unity_root(2 * p * stride, sign);
            let w3 = self.unity_root(3 * p * stride, sign);
            let x = |part| block * (p + part * quarter);
            let y = |part| block * (4 * p + part);
            for q in (0..block).step_by(WIDTH) {
                let (a, b) = (self.now.get(x(0) + q), self.now.get(x(1) + q));
                let (c, d) = (self.now.get(x(2) + q), self.now.get(x(3) + q));
                let (sum_ac, diff_ac) = (a.plus(c), a.minus(c));
                let (sum_bd, diff_bd) = (b.plus(d), b.minus(d).turn_by_i(sign));
                self.next.set(y(0) + q, sum_ac.plus(sum_bd));
                self.next.set(y(1) + q, diff_ac.plus(diff_bd).times(w1));
                self.next.set(y(2) + q, sum_ac.minus(sum_bd).times(w2));
                self.next.set(y(3) + q, diff_ac.minus(diff_bd).times(w3));
            }
        }
    }
}

/// A complex root of unity.
#[derive(Clone, Copy)]
struct UnityRoot {
    re: f64,
    im: f64,
}

/// A vector register of complex numbers.
#[derive(Clone, Copy)]
struct PackedComplex {
    re: [f64; WIDTH],
    im: [f64; WIDTH],
}

impl PackedComplex {
    #[inline]
    fn each(f: impl Fn(usize) -> (f64, f64)) -> Self {
        let mut packed = Self { re: [0.0; WIDTH], im: [0.0; WIDTH] };
        for lane in 0..WIDTH {
            (packed.re[lane], packed.im[lane]) = f(lane);
        }
        packed
    }

    #[inline]
    fn plus(self, o: Self) -> Self {
        Self::each(|l| (self.re[l] + o.re[l], self.im[l] + o.im[l]))
    }

    #[inline]
    fn minus(self, o: Self) -> Self {
        Self::each(|l| (self.re[l] - o.re[l], self.im[l] - o.im[l]))
    }

    #[inline]
    fn times(self, w: UnityRoot) -> Self {
        Self::each(|l| {
            (self.re[l] * w.re - self.im[l] * w.im, self.re[l] * w.im + self.im[l] * w.re)
        })
    }

    /// Returns the complex numbers times i·`sign`, where `sign` is ±1.
    #[inline]
    fn turn_by_i(self, sign: f64) -> Self {
        Self::each(|l| (-sign * self.im[l], sign * self.re[l]))
    }
}

impl LineBuffer {
    #[inline]
    fn get(&self, at: usize) -> PackedComplex {
        let (re, im) = (&self.re[at..at + WIDTH], &self.im[at..at + WIDTH]);
        PackedComplex::each(|l| (re[l], im[l]))
    }

    #[inline]
    fn set(&mut self, at: usize, value: PackedComplex) {
        self.re[at..at + WIDTH].copy_from_slice(&value.re);
        self.im[at..at + WIDTH].copy_from_slice(&value.im);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of pseudo-random numbers, different in every lane.
    fn input(length: usize, lane: usize) -> (Vec<f64>, Vec<f64>) {
        let mut random = crate::nas::random::NasRandom::new(1 + lane as u64);
        (0..length).map(|_| (random.next(), random.next())).unzip()
    }

    #[test]
    fn is_the_discrete_fourier_transform() {
        for length in [2, 4, 8, 32, 64] {
            for (direction, sign) in
                [(FourierDirection::Forward, -1.0), (FourierDirection::Inverse, 1.0)]
            {
                let mut line = FourierLines::new(length);
                for lane in 0..LANES {
                    let (re, im) = input(length, lane);
                    line.load_lane(lane, &re, &im);
                }
                line.transform_lines(direction);
                for lane in 0..LANES {
                    let (re, im) = input(length, lane);
                    let (mut out_re, mut out_im) = (vec![0.0; length], vec![0.0; length]);
                    line.store_lane(lane, &mut out_re, &mut out_im);
                    for k in 0..length {
                        let (mut sum_re, mut sum_im) = (0.0, 0.0);
                        for j in 0..length {
                            let angle = sign * TAU * (j * k % length) as f64 / length as f64;
                            sum_re += re[j] * angle.cos() - im[j] * angle.sin();
                            sum_im += re[j] * angle.sin() + im[j] * angle.cos();
                        }
                        let error = (out_re[k] - sum_re).hypot(out_im[k] - sum_im);
                        assert!(error < 1e-12, "length {length} lane {lane} point {k}: {error}");
                    }
                }
            }
        }
    }
}
