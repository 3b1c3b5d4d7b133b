//! Quantities as text for files: exact, and without padding.

use crate::{Money, Span};

impl Span {
    /// Seconds with as many decimals as there are, at most six: `1.500001`.
    #[must_use]
    pub fn exact_seconds(self) -> String {
        decimal_text(self.as_micros(), 6)
    }
}

impl Money {
    /// Dollars with as many decimals as there are, at most nine: `-0.000000005`.
    #[must_use]
    pub fn exact_dollars(self) -> String {
        let nanos = self.as_nanos();
        let sign = if nanos < 0 { "-" } else { "" };
        format!("{sign}{}", decimal_text(nanos.unsigned_abs(), 9))
    }
}

/// Decimal text of `n` · 10^-`digits`, without padding.
fn decimal_text(n: u64, digits: u32) -> String {
    let scale = 10_u64.pow(digits);
    let (whole, below) = (n / scale, n % scale);
    if below == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{below:0width$}", width = digits as usize);
    text.trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_rounded_and_nothing_is_padded() {
        assert_eq!(Span::from_secs(180).exact_seconds(), "180");
        assert_eq!(Span::from_micros(1_500_001).exact_seconds(), "1.500001");
        assert_eq!(Money::from_nanos(83_798_250).exact_dollars(), "0.08379825");
        assert_eq!(Money::from_nanos(-5).exact_dollars(), "-0.000000005");
    }
}
