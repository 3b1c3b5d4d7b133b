//! Least squares by Levenberg and Marquardt's descent (1944, 1963), with a range for each number.
//!
//! The usual crate uses nalgebra, whose matrix products depend on the processor's instructions, so that a fit would
//! depend on the machine. Up to four numbers need no matrix library.

use crate::curve::CurveStep;

/// Greatest number of steps of a descent; most end long before.
const MOST_STEPS: usize = 200;
/// A descent ends when a step reduces the sum of squares by less than this fraction.
const ENOUGH: f64 = 1e-12;

/// End point of a least-squares descent: the fitted parameters, and how far the law is from the curve there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LowestPoint {
    /// The law's parameters at the end point of the descent.
    pub(crate) numbers: Vec<f64>,
    /// Weighted sum of squared distances between the law and the curve's steps, at the end point of the descent.
    pub(crate) squares: f64,
}

/// A fitting problem: a law's formula whose parameters may vary within ranges, and the curve's steps to approximate.
pub(crate) struct FitProblem<'a> {
    /// The fraction of preempted VMs as a function of the law's numbers and an age in hours.
    pub(crate) formula: fn(&[f64], f64) -> f64,
    /// Least and greatest value of each parameter of the law.
    pub(crate) ranges: &'a [(f64, f64)],
    /// The steps of the curve to which the law is fitted.
    pub(crate) steps: &'a [CurveStep],
}

impl FitProblem<'_> {
    /// Weighted sum of squared distances of the law, with these parameters, from the curve's steps; infinite where the formula has
    /// no value.
    pub(crate) fn sum_of_squares(&self, numbers: &[f64]) -> f64 {
        let off = |step: &CurveStep| step.taken - (self.formula)(numbers, step.age);
        let sum: f64 = self.steps.iter().map(|step| step.count * off(step) * off(step)).sum();
        if sum.is_finite() { sum } else { f64::INFINITY }
    }

    /// Descends from the law's parameters `from` until steps no longer help; returns the end point.
    pub(crate) fn descend(&self, from: &[f64]) -> LowestPoint {
        let mut numbers = self.clamp_numbers(from);
        let mut squares = self.sum_of_squares(&numbers);
        let mut damping = 1e-3;
        for _ in 0..MOST_STEPS {
            let Some((matrix, slope)) = self.normal_equations(&numbers) else { break };
            // Damping makes the step steeper and shorter until it lowers the squares.
            let lower = loop {
                let tried = self.damped_step(&numbers, &matrix, &slope, damping);
                let there =
                    tried.as_deref().map_or(f64::INFINITY, |tried| self.sum_of_squares(tried));
                if there < squares {
                    damping = (damping / 8.0_f64).max(1e-15);
                    break tried.map(|tried| (tried, there));
                }
                damping *= 4.0;
                if damping > 1e15 {
                    break None;
                }
            };
            let Some((there, left)) = lower else { break };
            let gained = squares - left;
            (numbers, squares) = (there, left);
            if gained <= ENOUGH * squares {
                break;
            }
        }
        LowestPoint { numbers, squares }
    }

    fn clamp_numbers(&self, numbers: &[f64]) -> Vec<f64> {
        numbers.iter().zip(self.ranges).map(|(x, (least, most))| x.clamp(*least, *most)).collect()
    }

    /// JᵀWJ and JᵀW(F − formula) of the least-squares problem, J by forward differences; `None` where the formula has no value.
    fn normal_equations(&self, numbers: &[f64]) -> Option<(Vec<Vec<f64>>, Vec<f64>)> {
        let n = numbers.len();
        let (mut matrix, mut slope) = (vec![vec![0.0; n]; n], vec![0.0; n]);
        let moved: Vec<_> = (0..n).map(|k| self.move_number(numbers, k)).collect();
        let mut row = vec![0.0; n];
        for step in self.steps {
            let here = (self.formula)(numbers, step.age);
            for (slope, (by, there)) in row.iter_mut().zip(&moved) {
                *slope = ((self.formula)(there, step.age) - here) / by;
            }
            for i in 0..n {
                slope[i] += step.count * row[i] * (step.taken - here);
                for k in 0..n {
                    matrix[i][k] += step.count * row[i] * row[k];
                }
            }
        }
        let all = || matrix.iter().flatten().chain(&slope);
        let is_fine = all().all(|x| x.is_finite());
        is_fine.then_some((matrix, slope))
    }

    /// Moves parameter `k` a little within its range; returns the distance, and all parameters with the moved one.
    fn move_number(&self, numbers: &[f64], k: usize) -> (f64, Vec<f64>) {
        let (least, most) = self.ranges[k];
        let by = 1e-7 * numbers[k].abs().max(1e-3 * (most - least).min(1.0));
        let by = if numbers[k] + by > most { -by } else { by };
        let mut there = numbers.to_vec();
        there[k] += by;
        // The distance is the one between the rounded numbers.
        (there[k] - numbers[k], there)
    }

    /// Makes one damped step of the least-squares descent. A parameter at an end of its range is not moved out of the range.
    fn damped_step(
        &self,
        numbers: &[f64],
        matrix: &[Vec<f64>],
        slope: &[f64],
        damping: f64,
    ) -> Option<Vec<f64>> {
        let leaves = |k: &usize| {
            let (least, most) = self.ranges[*k];
            (numbers[*k] <= least && slope[*k] < 0.0) || (numbers[*k] >= most && slope[*k] > 0.0)
        };
        let free: Vec<usize> = (0..numbers.len()).filter(|k| !leaves(k)).collect();
        let row = |i: &usize| {
            let damped = |k: &usize| matrix[*i][*k] * if i == k { 1.0 + damping } else { 1.0 };
            free.iter().map(damped).chain([slope[*i]]).collect()
        };
        let moves = solve_equations(free.iter().map(row).collect())?;
        let mut there = numbers.to_vec();
        for (k, by) in free.iter().zip(moves) {
            there[*k] += by;
        }
        Some(self.clamp_numbers(&there))
    }
}

/// Solves linear equations, whose right-hand side is the last column; `None`: they are singular.
fn solve_equations(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = rows.len();
    for i in 0..n {
        let largest = (i..n).max_by(|a, b| rows[*a][i].abs().total_cmp(&rows[*b][i].abs()))?;
        rows.swap(i, largest);
        let pivot = rows[i].clone();
        for (k, row) in rows.iter_mut().enumerate() {
            let factor = row[i] / pivot[i];
            if k != i {
                row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
            }
        }
    }
    let all: Vec<f64> = rows.iter().enumerate().map(|(i, row)| row[n] / row[i]).collect();
    all.iter().all(|x| x.is_finite()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(numbers: &[f64], x: f64) -> f64 {
        numbers[0] + numbers[1] * x
    }

    fn steps(all: &[(f64, f64, f64)]) -> Vec<CurveStep> {
        all.iter().map(|&(age, taken, count)| CurveStep { age, taken, count }).collect()
    }

    #[test]
    fn a_line_is_the_textbooks_and_weights_count_as_repetitions() {
        let once = [(0.0, 1.0, 1.0), (1.0, 3.0, 2.0), (2.0, 4.0, 1.0)];
        let twice = [(0.0, 1.0, 1.0), (1.0, 3.0, 1.0), (1.0, 3.0, 1.0), (2.0, 4.0, 1.0)];
        for all in [&once[..], &twice] {
            let ranges = [(-9.0, 9.0); 2];
            let steps = steps(all);
            let lowest =
                FitProblem { formula: line, ranges: &ranges, steps: &steps }.descend(&[0.0; 2]);
            // x̄ = 1, ȳ = 2.75, slope 3/2.
            assert!((lowest.numbers[0] - 1.25).abs() < 1e-6, "{lowest:?}");
            assert!((lowest.numbers[1] - 1.5).abs() < 1e-6, "{lowest:?}");
            assert!((lowest.squares - 0.25).abs() < 1e-9, "{lowest:?}");
        }
    }

    #[test]
    fn a_number_stays_in_its_range_and_the_others_make_the_best_of_it() {
        let steps = steps(&[(0.0, 1.0, 1.0), (1.0, 3.0, 1.0), (2.0, 5.0, 1.0)]);
        let ranges = [(-9.0, 9.0), (0.0, 1.0)];
        let problem = FitProblem { formula: line, ranges: &ranges, steps: &steps };
        let lowest = problem.descend(&[-50.0, 0.5]);
        assert!((lowest.numbers[0] - 2.0).abs() < 1e-6, "{lowest:?}");
        assert!((lowest.numbers[1] - 1.0).abs() < 1e-12, "{lowest:?}");
    }

    #[test]
    fn what_can_t_be_moved_is_left_where_it_is() {
        let steps = steps(&[(1.0, 0.5, 1.0)]);
        let nowhere = |_: &[f64], _: f64| f64::NAN;
        let problem = FitProblem { formula: nowhere, ranges: &[(0.0, 1.0)], steps: &steps };
        let lowest = problem.descend(&[0.5]);
        assert_eq!(lowest, LowestPoint { numbers: vec![0.5], squares: f64::INFINITY });
        assert_eq!(solve_equations(vec![vec![1.0, 2.0, 3.0], vec![2.0, 4.0, 5.0]]), None);
    }
}
