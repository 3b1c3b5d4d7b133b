//! How long a worker's certificate is good.

use dormouse_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shortest validity of a worker's certificate: a worker renews it when a third of its time is left, and has to reach
/// the coordinator within that third.
const LEAST: Span = Span::from_secs(60);
/// Longest validity of a worker's certificate, which is also the default.
const MOST: Span = Span::from_secs(12 * 3600);

/// Validity of a worker's certificate, in real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Span")]
#[schemars(with = "Span")]
pub struct CertificateTime(Span);

impl CertificateTime {
    /// The validity as a span.
    pub const fn span(self) -> Span {
        self.0
    }

    /// Whether the validity of workers' certificates is the default, 12 hours.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(crate) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for CertificateTime {
    fn default() -> Self {
        Self(MOST)
    }
}

impl TryFrom<Span> for CertificateTime {
    type Error = String;

    fn try_from(span: Span) -> Result<Self, String> {
        match (LEAST..=MOST).contains(&span) {
            true => Ok(Self(span)),
            false => Err(format!(
                "a worker's certificate can be valid for {LEAST} to {MOST}, not for {span}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_good_for_a_minute_to_twelve_hours() {
        for seconds in [60, 5_400, 43_200] {
            let span = Span::from_secs(seconds);
            let time = CertificateTime::try_from(span).expect("it can be");
            assert_eq!((time.span(), time.is_usual()), (span, seconds == 43_200));
        }
        for seconds in [0, 59, 43_201] {
            let why = CertificateTime::try_from(Span::from_secs(seconds)).expect_err("it can't");
            assert!(why.contains("can be valid for 1m to 12h"), "{why}");
        }
    }
}
