//! Parsers of sizes and durations in human notation.

use std::time::Duration;

/// Units of memory, decimal and binary, in bytes.
const SIZES: [(&str, f64); 8] = [
    ("KiB", 1024.0),
    ("MiB", 1024.0 * 1024.0),
    ("GiB", 1024.0 * 1024.0 * 1024.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("B", 1.0),
];

/// Units of time, in seconds. A unit whose name ends another unit's name, as `s` ends `ms`, comes after that one.
const TIMES: [(&str, f64); 6] =
    [("ms", 1e-3), ("us", 1e-6), ("min", 60.0), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Parses a size such as `"10.06MB"`, `"160 MiB"` or `"4096"` to bytes; `None` unless the text is a positive size.
pub(crate) fn parse_bytes(text: &str) -> Option<usize> {
    let value = parse_scaled(text, &SIZES, Some(1.0))?.round();
    // 2^53: above it a float is no exact count of bytes, and no machine has that much.
    (1.0..=9_007_199_254_740_992.0).contains(&value).then_some(value as usize)
}

/// Parses a duration such as `"0.39s"`, `"250ms"` or `"2m"`; `None` unless the duration is positive and has a unit.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let seconds = parse_scaled(text, &TIMES, None)?;
    Duration::try_from_secs_f64(seconds).ok().filter(|d| !d.is_zero())
}

/// Parses a fraction such as `"0.7"`, `".7"` or `"1"` to parts per million; `None` unless the fraction is above 0
/// (rounded) and at most 1.
pub(crate) fn parse_part(text: &str) -> Option<u32> {
    let ppm = (parse_scaled(text, &[], Some(1.0))? * 1e6).round();
    (1.0..=1e6).contains(&ppm).then_some(ppm as u32)
}

fn parse_scaled(text: &str, units: &[(&str, f64)], bare: Option<f64>) -> Option<f64> {
    let (digits, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim_end(), *factor)))
        .or_else(|| bare.map(|factor| (text, factor)))?;
    // `f64` would also accept "inf", "nan" and "1e9", which are no sizes.
    if !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    digits.parse::<f64>().ok().map(|value| value * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_decimal_and_binary_units() {
        assert_eq!(parse_bytes("10.06MB"), Some(10_060_000));
        assert_eq!(parse_bytes("160 MiB"), Some(160 << 20));
        assert_eq!(parse_bytes("4096"), Some(4096));
        assert_eq!(parse_bytes("7B"), Some(7));
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("0.39s"), Some(Duration::from_millis(390)));
        assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse_duration("2m"), Some(Duration::from_secs(120)));
        assert_eq!(parse_duration("1.5h"), Some(Duration::from_secs(5400)));
        assert_eq!(parse_duration("3"), None);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "MB", "-1MB", "1e9", "infMB", "0", "1.2.3MB", "99999999999GB"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
        for text in ["", "s", "-1s", "0s", "nans", "1 week"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
