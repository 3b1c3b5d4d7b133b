//! Samples of a figure and of its peer, taken by turns.

use crate::line::{Better, Line, ReportError};

/// Samples of a figure and those of its peer, in the same unit. Where there are as many of both, the samples at the
/// same place were taken one after the other and are a pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Samples of the figure.
    pub ours: Vec<f64>,
    /// Samples of the peer or floor.
    pub peer: Vec<f64>,
}

impl Samples {
    /// Takes `rounds` pairs of samples, one of the peer and one of ours by turns, so that other load on the host
    /// affects both.
    ///
    /// # Errors
    ///
    /// The first error that either closure returns.
    pub fn by_turns<E>(
        rounds: usize,
        mut ours: impl FnMut() -> Result<f64, E>,
        mut peer: impl FnMut() -> Result<f64, E>,
    ) -> Result<Self, E> {
        let mut samples = Self::default();
        for _ in 0..rounds {
            samples.peer.push(peer()?);
            samples.ours.push(ours()?);
        }
        Ok(samples)
    }

    /// Adds a pair of samples.
    pub fn push(&mut self, ours: f64, peer: f64) {
        self.ours.push(ours);
        self.peer.push(peer);
    }

    /// Reports the samples of a figure that is better when smaller, such as a time.
    ///
    /// # Errors
    ///
    /// The file that [`crate::FILE`] names can't be written.
    pub fn report_costs(&self, name: &str) -> Result<(), ReportError> {
        self.line(name, Better::Less).append()
    }

    /// Reports the samples of a figure that is better when larger, such as tasks per second.
    ///
    /// # Errors
    ///
    /// The file that [`crate::FILE`] names can't be written.
    pub fn report_rates(&self, name: &str) -> Result<(), ReportError> {
        self.line(name, Better::More).append()
    }

    fn line(&self, name: &str, better: Better) -> Line {
        Line { name: name.to_owned(), better, ours: self.ours.clone(), peer: self.peer.clone() }
    }
}

/// The median of some samples: the mean of the middle two for an even number, NaN for none.
#[must_use]
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (None, _) => f64::NAN,
        (Some(upper), 1) => *upper,
        (Some(upper), _) => f64::midpoint(sorted[middle - 1], *upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_taken_by_turns_and_the_first_error_ends_them() {
        let order = std::cell::RefCell::new(String::new());
        let take = |who: char| {
            order.borrow_mut().push(who);
            let n = order.borrow().len();
            if n < 6 { Ok(f64::from(u8::try_from(n).unwrap_or(0))) } else { Err("the sixth") }
        };
        let two = Samples::by_turns(2, || take('o'), || take('p'));
        assert_eq!(two, Ok(Samples { ours: vec![2.0, 4.0], peer: vec![1.0, 3.0] }));
        assert_eq!(Samples::by_turns(9, || take('o'), || take('p')), Err("the sixth"));
        assert_eq!(*order.borrow(), "popopo");
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
