//! How long spot VMs live.

use dormouse_units::{Span, Stream};
use serde::{Deserialize, Serialize};

use crate::RowError;
use crate::rows::Record;

/// Says how long a spot VM is left to its user.
pub trait Lifetime: std::fmt::Debug {
    /// How long one lives from when it is usable; `None`: as long as its user wants it.
    fn draw(&self, chance: &mut Stream) -> Option<Span>;
}

/// Ended at any time with the same probability, whatever its age.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exponential {
    /// The mean lifetime.
    pub mean: Span,
}

impl Lifetime for Exponential {
    fn draw(&self, chance: &mut Stream) -> Option<Span> {
        Some(chance.exponential(self.mean))
    }
}

/// One of those that were recorded, each as likely as any other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empirical {
    /// What was recorded.
    pub recorded: Vec<Span>,
}

impl Empirical {
    /// Reads a lifetime a row, in seconds; a first row that is a word names the column.
    ///
    /// # Errors
    ///
    /// The first row that is of another form, or one too many.
    pub fn read(text: &str) -> Result<Self, RowError> {
        let record = Record {
            row: "lifetime",
            right: "write seconds, such as 2836.6",
            fewer: "give a sample of them",
        };
        let is_heading = |row: &str| row.starts_with(|c: char| c.is_ascii_alphabetic());
        let read = |row: &str| row.parse().ok().and_then(Span::from_secs_f64);
        Ok(Self { recorded: record.rows(text, is_heading, read)? })
    }
}

impl Lifetime for Empirical {
    fn draw(&self, chance: &mut Stream) -> Option<Span> {
        self.recorded.get(chance.below(self.recorded.len())).copied()
    }
}

/// The lifetimes there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lifetimes {
    /// See [`Exponential`].
    Exponential(Exponential),
    /// See [`Empirical`].
    Empirical(Empirical),
}

impl Lifetimes {
    /// What they are drawn from.
    #[must_use]
    pub fn law(&self) -> &dyn Lifetime {
        match self {
            Self::Exponential(law) => law,
            Self::Empirical(law) => law,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_drawn_as_they_were_recorded_or_around_their_mean() {
        let s = Span::from_secs;
        let mut chance = Stream::new(1, "lifetime", 0);
        let recorded = vec![s(10), s(20), s(20), s(70)];
        let law = Lifetimes::Empirical(Empirical { recorded });
        let mut seen = [0_u32; 3];
        for _ in 0..4_000 {
            let life = law.law().draw(&mut chance);
            seen[[10, 20, 70].map(s).iter().position(|l| Some(*l) == life).expect("recorded")] += 1;
        }
        assert!(
            seen.iter().zip([1_000, 2_000, 1_000]).all(|(n, of)| n.abs_diff(of) < 150),
            "{seen:?}"
        );
        assert_eq!(Empirical { recorded: Vec::new() }.draw(&mut chance), None);
        let law = Lifetimes::Exponential(Exponential { mean: s(100) });
        let sum: Span = (0..4_000).filter_map(|_| law.law().draw(&mut chance)).sum();
        assert!((380_000..420_000).contains(&(sum.as_micros() / 1_000_000)), "{sum}");
    }
}
