//! Families of laws that can be fitted: their numbers and the ranges to search.

use dormouse_cloud::lifetimes::{curve, hours, span_of_hours};
use dormouse_cloud::{Bathtub, Exponential, GompertzMakeham, Lifetimes, Uniform, Weibull};
use dormouse_units::{Ppm, Span};

/// A family of lifetime laws whose parameters are fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// The bathtub law (Kadupitiya, Jadhao, Sharma, HPDC 2020, Eq. 1), with the parameters a, b, tau1 and tau2.
    Bathtub,
    /// The exponential law, whose only parameter is the mean in hours.
    Exponential,
    /// Weibull's law, with the parameters scale and shape.
    Weibull,
    /// Gompertz's and Makeham's law, with the parameters rate λ, b and tau2; see [`curve::gompertz_makeham`].
    GompertzMakeham,
    /// The uniform law, from age 0 to a greatest age.
    Uniform,
}

/// Start values of a least-squares descent, for each parameter of a law of lifetimes; all combinations are tried.
type Starts = &'static [&'static [f64]];

impl Family {
    /// All families of laws, the bathtub law first.
    pub const ALL: [Self; 5] =
        [Self::Bathtub, Self::Exponential, Self::Weibull, Self::GompertzMakeham, Self::Uniform];

    /// Name of the family in experiments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bathtub => "bathtub",
            Self::Exponential => "exponential",
            Self::Weibull => "weibull",
            Self::GompertzMakeham => "gompertz-makeham",
            Self::Uniform => "uniform",
        }
    }

    /// Names of the law's parameters, with their units.
    #[must_use]
    pub const fn numbers(self) -> &'static [&'static str] {
        match self {
            Self::Bathtub => &["a", "b_h", "tau1_h", "tau2_h"],
            Self::Exponential => &["mean_h"],
            Self::Weibull => &["scale_h", "shape"],
            Self::GompertzMakeham => &["rate_per_h", "b_h", "tau2_h"],
            Self::Uniform => &["to_h"],
        }
    }

    /// The law's fraction of preempted VMs, as a function of its parameters and an age in hours. The bathtub's formula may exceed
    /// 1.
    pub(crate) fn law_formula(self) -> fn(&[f64], f64) -> f64 {
        /// The law's parameters as an array; the lengths match, as each descent has as many parameters as its law.
        fn to_array<const N: usize>(numbers: &[f64]) -> [f64; N] {
            numbers.try_into().unwrap_or([f64::NAN; N])
        }
        match self {
            Self::Bathtub => |numbers, t| curve::bathtub_cdf(to_array(numbers), t),
            Self::Exponential => |numbers, t| {
                let [mean] = to_array(numbers);
                curve::exponential_cdf(mean, t)
            },
            Self::Weibull => |numbers, t| curve::weibull_cdf(to_array(numbers), t),
            Self::GompertzMakeham => |numbers, t| curve::gompertz_makeham(to_array(numbers), t),
            Self::Uniform => |numbers, t| {
                let [to] = to_array(numbers);
                (t / to).min(1.0)
            },
        }
    }

    /// Range in which each parameter of the family is searched, for lifetimes up to `last` hours.
    pub(crate) fn search_ranges(self, last: f64) -> Vec<(f64, f64)> {
        let time = |most: f64| (1e-4 * last, most * last);
        match self {
            Self::Bathtub => vec![(1e-3, 1.0), (0.0, 2.0 * last), time(10.0), time(1.0)],
            Self::Exponential | Self::Uniform => vec![time(1e3)],
            Self::Weibull => vec![time(1e3), (0.05, 200.0)],
            Self::GompertzMakeham => vec![(0.0, 1e4 / last), (0.0, 4.0 * last), time(10.0)],
        }
    }

    /// Start points of descents: times are parts of the longest lifetime `last`, in hours, and the
    /// rate is a multiple of its inverse.
    pub(crate) fn start_points(self, last: f64) -> Vec<Vec<f64>> {
        const EARLY: &[f64] = &[0.02, 0.1, 0.5, 2.0];
        let (parts, powers): (Starts, &[i32]) = match self {
            Self::Bathtub => {
                (&[&[0.2, 0.5, 0.9], &[0.8, 0.97, 1.0], EARLY, &[0.01, 0.04, 0.2]], &[0, 1, 1, 1])
            }
            Self::Exponential | Self::Uniform => (&[EARLY], &[1]),
            Self::Weibull => (&[EARLY, &[0.4, 1.0, 5.0, 30.0]], &[1, 0]),
            Self::GompertzMakeham => (
                &[&[0.1, 1.0, 10.0], &[0.5, 0.9, 0.995, 1.0], &[0.003, 0.01, 0.05, 0.3]],
                &[-1, 1, 1],
            ),
        };
        parts.iter().zip(powers).fold(vec![Vec::new()], |begun, (parts, power)| {
            let scale = last.powi(*power);
            let with = |start: &Vec<f64>| {
                let start = start.clone();
                parts.iter().map(move |part| {
                    let mut start = start.clone();
                    start.push(part * scale);
                    start
                })
            };
            begun.iter().flat_map(with).collect()
        })
    }

    /// Family and parameters of a law; `None` for a law of recorded lifetimes, which is not fitted.
    pub(crate) fn of_law(law: &Lifetimes) -> Option<(Self, Vec<f64>)> {
        Some(match law {
            Lifetimes::Bathtub(law) => {
                let [b, tau1, tau2] = [law.b, law.tau1, law.tau2].map(hours);
                (Self::Bathtub, vec![law.a.as_f64(), b, tau1, tau2])
            }
            Lifetimes::Exponential(law) => (Self::Exponential, vec![hours(law.mean)]),
            Lifetimes::Weibull(law) => (Self::Weibull, vec![hours(law.scale), law.shape.as_f64()]),
            Lifetimes::GompertzMakeham(law) => {
                let rate = law.tau1.map_or(0.0, |tau1| 1.0 / hours(tau1));
                (Self::GompertzMakeham, vec![rate, hours(law.b), hours(law.tau2)])
            }
            Lifetimes::Uniform(law) => (Self::Uniform, vec![hours(law.to)]),
            Lifetimes::Empirical(_) => return None,
        })
    }

    /// The law with these parameters, rounded to microseconds and millionths; `None` if a parameter
    /// can't be represented.
    pub(crate) fn law(self, numbers: &[f64]) -> Option<Lifetimes> {
        let time = |n: usize| {
            let span = span_of_hours(*numbers.get(n)?)?;
            Some(span.max(Span::from_micros(1)))
        };
        let part = |n: usize| {
            let part = Ppm::from_f64(*numbers.get(n)?)?;
            Some(part.max(Ppm::new(1)))
        };
        Some(match self {
            Self::Bathtub => Lifetimes::Bathtub(Bathtub {
                a: part(0)?,
                b: span_of_hours(*numbers.get(1)?)?,
                tau1: time(2)?,
                tau2: time(3)?,
            }),
            Self::Exponential => Lifetimes::Exponential(Exponential { mean: time(0)? }),
            Self::Weibull => Lifetimes::Weibull(Weibull { scale: time(0)?, shape: part(1)? }),
            Self::GompertzMakeham => Lifetimes::GompertzMakeham(GompertzMakeham {
                // A mean of centuries is left out.
                tau1: span_of_hours(1.0 / *numbers.first()?),
                b: span_of_hours(*numbers.get(1)?)?,
                tau2: time(2)?,
            }),
            Self::Uniform => Lifetimes::Uniform(Uniform { from: Span::ZERO, to: time(0)? }),
        })
    }
}

impl std::str::FromStr for Family {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|family| family.name() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::name).join(", ");
            format!("there is no law '{text}' to fit; there are {all}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_is_its_formula_and_starts_are_within_the_ranges() {
        for family in Family::ALL {
            for last in [0.01, 24.0, 5_000.0] {
                let ranges = family.search_ranges(last);
                let starts = family.start_points(last);
                assert!(starts.len() > 3 && ranges.len() == family.numbers().len(), "{family:?}");
                for start in starts {
                    let is_inside =
                        |(x, (least, most)): (&f64, &(f64, f64))| x >= least && x <= most;
                    assert!(start.iter().zip(&ranges).all(is_inside), "{family:?}: {start:?}");
                    let law = family.law(&start).expect("a law");
                    let (same, numbers) = Family::of_law(&law).expect("a family");
                    let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-4 * (1.0 + b.abs());
                    assert!(same == family && numbers.iter().zip(&start).all(is_near), "{law:?}");
                    for part in [0.01, 0.3, 0.99, 1.1] {
                        let age = part * last;
                        let [ours, law] =
                            [family.law_formula()(&start, age).min(1.0), law.law().cdf(age)];
                        assert!((ours - law).abs() < 2e-3, "{family:?} {start:?}: {ours}, {law}");
                    }
                }
            }
            assert_eq!(family.name().parse(), Ok(family));
        }
        assert!("batthub".parse::<Family>().is_err_and(|said| said.contains("bathtub, exp")));
    }
}
