//! Empirical distributions of lifetimes, as step functions.

use dormouse_cloud::lifetimes::hours;
use dormouse_units::Span;

use crate::RecordedLife;

/// One step of a distribution: an age at which VMs were preempted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveStep {
    /// The age in hours.
    pub age: f64,
    /// F at this age: the fraction of the VMs that were preempted up to and including this age.
    pub taken: f64,
    /// Number of VMs preempted at this age.
    pub count: f64,
}

/// A distribution of lifetimes. Without preempted VMs it has no steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// The steps, in order of age.
    pub steps: Vec<CurveStep>,
}

impl Curve {
    /// Empirical distribution of the preempted VMs, as in the bathtub paper (Kadupitiya, Jadhao, Sharma, HPDC 2020). VMs that their
    /// users stopped are left out, although they might have run longest.
    #[must_use]
    pub fn empirical<'a>(lives: impl IntoIterator<Item = &'a RecordedLife>) -> Self {
        Self::kaplan_meier(lives.into_iter().filter(|life| life.was_taken))
    }

    /// Kaplan and Meier's estimate (1958), in which a VM that its user stopped counts for as long as it ran. At equal
    /// ages preemptions come before stops by users.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "at most 100,000 lives")]
    pub fn kaplan_meier<'a>(lives: impl IntoIterator<Item = &'a RecordedLife>) -> Self {
        let mut ends: Vec<(Span, bool)> =
            lives.into_iter().map(|life| (life.span, life.was_taken)).collect();
        ends.sort_unstable();
        let (mut steps, mut left) = (Vec::new(), 1.0);
        let mut there = ends.len();
        for same in ends.chunk_by(|a, b| a.0 == b.0) {
            let taken = same.iter().filter(|(_, was_taken)| *was_taken).count();
            if taken > 0 {
                left *= (there - taken) as f64 / there as f64;
                steps.push(CurveStep {
                    age: hours(same[0].0),
                    taken: 1.0 - left,
                    count: taken as f64,
                });
            }
            there -= same.len();
        }
        Self { steps }
    }

    /// The steps of this curve by another convention: of n preempted VMs the i-th is at (i − 1)/(n − 1), so that F goes
    /// from 0 at the first VM to 1 at the last. The published reference fits to the record of Kadupitiya, Jadhao and
    /// Sharma use this convention.
    #[must_use]
    pub fn by_rank(&self) -> Self {
        let count: f64 = self.steps.iter().map(|step| step.count).sum();
        let last = if count > 1.0 { count / (count - 1.0) } else { 1.0 };
        let before = std::iter::once(0.0).chain(self.steps.iter().map(|step| step.taken));
        let step = |(step, taken): (&CurveStep, f64)| {
            // VMs of the same age have the mean of their places.
            let same = (step.taken - taken) * (step.count - 1.0) / (2.0 * step.count.max(1.0));
            CurveStep { taken: (taken + same) * last, ..*step }
        };
        Self { steps: self.steps.iter().zip(before).map(step).collect() }
    }

    /// The fraction of the VMs that are preempted up to an age in hours.
    #[must_use]
    pub fn cdf(&self, age: f64) -> f64 {
        let n = self.steps.partition_point(|step| step.age <= age);
        n.checked_sub(1).map_or(0.0, |last| self.steps[last].taken)
    }

    /// The highest age in hours at which a VM was preempted; 0 if none was.
    #[must_use]
    pub fn last(&self) -> f64 {
        self.steps.last().map_or(0.0, |step| step.age)
    }

    /// Mean lifetime up to the last step, in hours; the mean of all VMs if F reaches 1.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let (mut sum, mut age, mut left) = (0.0, 0.0, 1.0);
        for step in &self.steps {
            sum += (step.age - age) * left;
            (age, left) = (step.age, 1.0 - step.taken);
        }
        sum
    }

    /// The curve as a polyline for a drawing: (age in hours, F) from (0, 0) on, with at most `most`
    /// steps.
    #[must_use]
    pub fn corners(&self, most: usize) -> Vec<(f64, f64)> {
        let (mut line, mut taken) = (vec![(0.0, 0.0)], 0.0);
        for step in self.thin_to(most).steps {
            line.extend([(step.age, taken), (step.age, step.taken)]);
            taken = step.taken;
        }
        line
    }

    /// The curve reduced to at most `most` steps, evenly spaced, each with the weight of the dropped steps around it.
    #[must_use]
    pub fn thin_to(&self, most: usize) -> Self {
        let size = self.steps.len().div_ceil(most.max(1)).max(1);
        let middle = |steps: &[CurveStep]| CurveStep {
            count: steps.iter().map(|step| step.count).sum(),
            ..steps[steps.len() / 2]
        };
        Self { steps: self.steps.chunks(size).map(middle).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded lifetimes of VMs, each from its hours and whether the VM was preempted.
    fn lives(all: &[(u64, bool)]) -> Vec<RecordedLife> {
        let span = |hours: u64| Span::from_secs(hours * 3_600);
        let life = |(hours, was_taken): &(u64, bool)| RecordedLife {
            span: span(*hours),
            was_taken: *was_taken,
            ..RecordedLife::default()
        };
        all.iter().map(life).collect()
    }

    fn steps(curve: &Curve) -> Vec<(f64, f64, f64)> {
        let round = |x: f64| (x * 1e6).round() / 1e6;
        curve.steps.iter().map(|s| (s.age, round(s.taken), s.count)).collect()
    }

    #[test]
    fn the_empirical_curve_is_of_those_taken() {
        let lives = lives(&[(5, true), (1, false), (2, true), (2, true), (9, true), (30, false)]);
        let curve = Curve::empirical(&lives);
        assert_eq!(steps(&curve), [(2.0, 0.5, 2.0), (5.0, 0.75, 1.0), (9.0, 1.0, 1.0)]);
        assert_eq!([1.9, 2.0, 8.9, 99.0].map(|age| curve.cdf(age)), [0.0, 0.5, 0.75, 1.0]);
        assert!((curve.mean() - 4.5).abs() < 1e-12 && (curve.last() - 9.0).abs() < 1e-12);
    }

    #[test]
    fn by_rank_the_first_vm_is_at_zero_and_the_last_at_one() {
        let curve = Curve::empirical(&lives(&[(5, true), (2, true), (2, true), (9, true)]));
        // Places 0 and 1 of 0 to 3 for the two of the same age.
        let ranked = curve.by_rank();
        let round = |n: f64| (n / 3.0 * 1e6).round() / 1e6;
        let places = [(2.0, round(0.5), 2.0), (5.0, round(2.0), 1.0), (9.0, 1.0, 1.0)];
        assert_eq!(steps(&ranked), places);
        assert_eq!(Curve::default().by_rank(), Curve::default());
    }

    /// The remission times of 21 patients given 6-mercaptopurine (Freireich and others 1963), the usual textbook
    /// example: the estimated survival S is .857, .807, .753, .690, .627, .538, .448.
    #[test]
    fn kaplan_and_meiers_textbook_example() {
        let taken = [6, 6, 6, 7, 10, 13, 16, 22, 23].map(|week| (week, true));
        let stopped = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35].map(|week| (week, false));
        let all: Vec<_> = stopped.into_iter().chain(taken).collect();
        let curve = Curve::kaplan_meier(&lives(&all));
        let left: Vec<_> = curve.steps.iter().map(|s| (1.0 - s.taken, s.age)).collect();
        let book = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448];
        let weeks = [6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0];
        assert_eq!(left.len(), book.len());
        for ((ours, week), (book, at)) in left.into_iter().zip(book.into_iter().zip(weeks)) {
            assert!((ours - book).abs() < 6e-4 && (week - at).abs() < 1e-9, "{week}: {ours}");
        }
    }

    #[test]
    fn nothing_and_thinning() {
        assert_eq!(Curve::kaplan_meier(&lives(&[(3, false)])), Curve::default());
        assert!(Curve::default().mean().abs() < 1e-12 && Curve::default().cdf(9.0).abs() < 1e-12);
        let all: Vec<_> = (1..=1_000).map(|hour| (hour, true)).collect();
        let curve = Curve::empirical(&lives(&all));
        let thin = curve.thin_to(100);
        assert_eq!((thin.steps.len(), curve.thin_to(2_000)), (100, curve.clone()));
        let weight: f64 = thin.steps.iter().map(|step| step.count).sum();
        assert!((weight - 1_000.0).abs() < 1e-9);
        assert!(thin.steps.iter().all(|step| (curve.cdf(step.age) - step.taken).abs() < 1e-12));
    }
}
