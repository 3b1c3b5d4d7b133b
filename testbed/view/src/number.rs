//! Numbers as text, rounded for people, the same everywhere.

/// A number with `digits` decimals; never `-0`.
#[must_use]
pub fn fixed(x: f64, digits: usize) -> String {
    let text = format!("{x:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b == b'0' || b == b'.') => rest.to_owned(),
        _ => text,
    }
}

/// A short number for a label: three significant digits, thousands as k, millions as M.
#[must_use]
pub fn short(x: f64) -> String {
    let (scaled, unit) = match x.abs() {
        large if large >= 1e6 => (x / 1e6, "M"),
        large if large >= 1e4 => (x / 1e3, "k"),
        _ => (x, ""),
    };
    let digits = match scaled.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.0 => 0,
        small => (2.0 - libm::floor(libm::log10(small))).clamp(0.0, 9.0) as usize,
    };
    let text = fixed(scaled, digits);
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        for (x, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (-0.004_56, "-0.00456"),
            (9_000.0, "9000"),
            (20_000.0, "20k"),
            (2.5e6, "2.5M"),
            (262_144.0, "262k"),
        ] {
            assert_eq!(short(x), text);
        }
        assert_eq!(fixed(-0.004, 2), "0.00");
    }
}
