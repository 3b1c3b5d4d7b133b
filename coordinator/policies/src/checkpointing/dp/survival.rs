//! A distribution of lifetimes on a grid of ages.

use dormouse_units::{RandomStream, Span};

/// Probability that a VM lives to each age, in whole steps, and the expected time that it has lived
/// by then. The last age is the one at which no VM is left, or the furthest that is looked at.
#[derive(Clone, Debug)]
pub struct Survival {
    /// 1 − F at the ages 0, 1, 2, … steps.
    alive: Vec<f64>,
    /// ∫ (1 − F) from zero to each of these ages, in steps.
    lived: Vec<f64>,
}

impl Survival {
    /// Grid of lifetimes with this distribution (`cdf` takes hours), of at most `ages` steps.
    ///
    /// Values of `cdf` are held between zero and one and never fall; NaN counts as the value before
    /// it. VMs that would end before they begin are left out.
    #[must_use]
    pub fn new(cdf: &dyn Fn(f64) -> f64, step: Span, ages: usize) -> Self {
        let hours = step.as_secs_f64() / 3_600.0;
        let mut lowest = 1.0_f64;
        let mut left = |age: f64| {
            let left = 1.0 - cdf(age * hours);
            if left < lowest {
                lowest = left.max(0.0);
            }
            lowest
        };
        let (mut alive, mut lived) = (vec![left(0.0)], vec![0.0]);
        let (mut before, mut sum) = (alive[0], 0.0);
        for age in 1..=ages {
            if before <= 0.0 {
                break;
            }
            #[expect(clippy::cast_precision_loss, reason = "ages are few")]
            let to = age as f64;
            // Simpson's rule over the step.
            let (half, now) = (left(to - 0.5), left(to));
            sum += (before + 4.0 * half + now) / 6.0;
            alive.push(now);
            lived.push(sum);
            before = now;
        }
        let born = alive[0];
        if born > 0.0 {
            alive.iter_mut().chain(&mut lived).for_each(|x| *x /= born);
        }
        Self { alive, lived }
    }

    /// The last age on the grid.
    #[must_use]
    pub fn last(&self) -> usize {
        self.alive.len() - 1
    }

    /// Probability that a VM lives to this age, or to the last.
    #[must_use]
    pub fn alive(&self, age: usize) -> f64 {
        self.alive[age.min(self.last())]
    }

    /// Expected time that a VM has lived by this age, or by the last, in steps.
    #[must_use]
    pub fn lived(&self, age: usize) -> f64 {
        self.lived[age.min(self.last())]
    }

    /// `alive` and `lived` at the ages in this range, which is on the grid.
    pub(super) fn survival_between(&self, from: usize, to: usize) -> (&[f64], &[f64]) {
        (&self.alive[from..to], &self.lived[from..to])
    }

    /// Draws the age in steps at which a VM that has reached this age is preempted; infinite if it is not by the last
    /// age. The distribution is inverted, and assumed to be linear between steps.
    pub(super) fn draw(&self, age: usize, chance: &mut RandomStream) -> f64 {
        let left = (1.0 - chance.draw_unit()) * self.alive(age);
        let after = self.alive.partition_point(|alive| *alive >= left);
        let Some(&below) = self.alive.get(after) else { return f64::INFINITY };
        let above = self.alive[after - 1];
        #[expect(clippy::cast_precision_loss, reason = "ages are few")]
        let from = (after - 1) as f64;
        from + (above - left) / (above - below)
    }
}
