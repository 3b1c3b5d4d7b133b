//! The spot advisor's classes of interruption frequency, as laws of VM lifetimes.

use dormouse_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Exponential;

/// Period over which the spot advisor counts interruptions, in seconds: a month of 30 days.
const MONTH_S: f64 = 30.0 * 86_400.0;

/// Class of the provider's spot advisor: how often spot VMs of a type were interrupted in the last month. The advisor gives only a
/// range; the emulation uses the middle of the range, and interrupts a VM at any time with the same probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdvisorClass {
    /// 2.5 % of the spot VMs are interrupted in a month: a VM lives three years and three months on average.
    #[serde(rename = "<5%")]
    Below5,
    /// 7.5 % of the spot VMs are interrupted in a month.
    #[serde(rename = "5-10%")]
    From5,
    /// 12.5 % of the spot VMs are interrupted in a month.
    #[serde(rename = "10-15%")]
    From10,
    /// 17.5 % of the spot VMs are interrupted in a month.
    #[serde(rename = "15-20%")]
    From15,
    /// 20 % of the spot VMs are interrupted in a month: the least value of a range without an upper end.
    #[serde(rename = ">20%")]
    Above20,
}

impl AdvisorClass {
    /// The class that has this number (`r`) in the advisor's data; `None`: there is no such class.
    #[must_use]
    pub const fn of_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Below5,
            1 => Self::From5,
            2 => Self::From10,
            3 => Self::From15,
            4 => Self::Above20,
            _ => return None,
        })
    }

    /// The share of VMs that are interrupted within a month.
    #[must_use]
    pub const fn monthly_share(self) -> f64 {
        match self {
            Self::Below5 => 0.025,
            Self::From5 => 0.075,
            Self::From10 => 0.125,
            Self::From15 => 0.175,
            Self::Above20 => 0.2,
        }
    }

    /// The law of lifetimes under which the class's share of VMs is interrupted within a month,
    /// equally likely at any age.
    #[must_use]
    pub fn law(self) -> Exponential {
        let mean = -MONTH_S / libm::log1p(-self.monthly_share());
        Exponential { mean: Span::from_secs_f64(mean).unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifetimes;

    /// The expected mean lifetimes were computed by hand: 30 days / -ln(1 - share).
    #[test]
    fn a_class_takes_its_share_within_a_month() {
        for (number, share, days) in [
            (0, 0.025, 1184.94),
            (1, 0.075, 384.81),
            (2, 0.125, 224.67),
            (3, 0.175, 155.95),
            (4, 0.2, 134.44),
        ] {
            let class = AdvisorClass::of_number(number).expect("a class");
            let mean = class.law().mean.as_secs_f64() / 86_400.0;
            assert!((mean - days).abs() < 0.01, "{class:?}: {mean} days");
            let cdf = Lifetimes::Exponential(class.law()).law().cdf(30.0 * 24.0);
            assert!((cdf - share).abs() < 1e-9, "{class:?}: {cdf}");
        }
        assert_eq!(AdvisorClass::of_number(5), None);
    }
}
