//! A distribution of lifetimes on a grid of ages.

use dormouse_units::{RandomStream, Span};

/// Distribution of VM lifetimes: for each age in whole steps, the probability that a VM reaches that age,
/// and the expected time that a VM has lived by then. The last age is the one that no VM reaches, or the
/// greatest age of the computation.
#[derive(Clone, Debug)]
pub struct Survival {
    /// Probability 1 − F that a VM reaches the age of 0, 1, 2, … steps.
    alive: Vec<f64>,
    /// Expected time, in steps, that a VM has lived by the age of 0, 1, 2, … steps: ∫ (1 − F) from zero to that age.
    lived: Vec<f64>,
}

impl Survival {
    /// Grid of lifetimes with the distribution `cdf`, whose argument is in hours, of at most `ages` steps.
    ///
    /// Values of `cdf` are limited to the range from zero to one, and a value below the one before counts
    /// as that one, as NaN does. VMs that would end at the age of zero are left out.
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

    /// Probability that a VM lives to this age; beyond the grid, to the last age on the grid.
    #[must_use]
    pub fn alive(&self, age: usize) -> f64 {
        self.alive[age.min(self.last())]
    }

    /// Expected time in steps that a VM has lived by this age; beyond the grid, by the last age on the
    /// grid.
    #[must_use]
    pub fn lived(&self, age: usize) -> f64 {
        self.lived[age.min(self.last())]
    }

    /// The values of `alive` and of `lived` for the ages from `from` to before `to`, which must be on the
    /// grid.
    pub(super) fn survival_between(&self, from: usize, to: usize) -> (&[f64], &[f64]) {
        (&self.alive[from..to], &self.lived[from..to])
    }

    /// Draws the age in steps at which a VM that has reached the age `age` is preempted; infinite if the VM
    /// outlives the grid. The distribution is inverted, and assumed to be linear between steps.
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
