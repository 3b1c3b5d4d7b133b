//! Quantities as text: exact, and the same everywhere.

use dormouse_units::{Money, Time};

/// Seconds with as many decimals as there are, at most six.
pub(crate) fn secs(time: Time) -> String {
    decimal(time.as_micros(), 6)
}

/// Seconds, or nothing.
pub(crate) fn secs_or_blank(time: Option<Time>) -> String {
    time.map(secs).unwrap_or_default()
}

/// Dollars with as many decimals as there are, at most nine.
pub(crate) fn usd(money: Money) -> String {
    let nanos = money.as_nanos();
    let sign = if nanos < 0 { "-" } else { "" };
    format!("{sign}{}", decimal(nanos.unsigned_abs(), 9))
}

/// `n` · 10^-`digits`.
fn decimal(n: u64, digits: u32) -> String {
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
        assert_eq!(secs(Time::from_secs(180)), "180");
        assert_eq!(secs(Time::from_micros(1_500_001)), "1.500001");
        assert_eq!(usd(Money::from_nanos(83_798_250)), "0.08379825");
        assert_eq!(usd(Money::from_nanos(-5)), "-0.000000005");
    }
}
