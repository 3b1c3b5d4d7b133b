//! Numbers as text, rounded for people, and the sentences that begin with them, the same everywhere.

use dormouse_units::Money;

/// The words with a capital at their beginning.
#[must_use]
pub fn capitalise(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A number with `digits` decimals; never `-0`.
#[must_use]
pub fn fixed(x: f64, digits: usize) -> String {
    let text = format!("{x:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b == b'0' || b == b'.') => rest.to_owned(),
        _ => text,
    }
}

/// A number's text with a comma after each thousand, from 10,000 on: for people alone, never in files. A text that is not
/// a decimal number is returned as it is.
#[must_use]
pub fn grouped(text: &str) -> String {
    let digits = text.trim_start_matches('-');
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    if whole.len() < 5 || !whole.bytes().all(|b| b.is_ascii_digit()) {
        return text.to_owned();
    }
    let mut marked = String::with_capacity(text.len() + whole.len() / 3);
    marked.push_str(&text[..text.len() - digits.len()]);
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n) % 3 == 0 {
            marked.push(',');
        }
        marked.push(digit);
    }
    marked + rest
}

/// Number of decimals with which people read an amount of this many dollars: four below a dollar, else cents.
#[must_use]
pub fn decimals_of_dollars(usd: f64) -> usize {
    if usd.abs() < 1.0 { 4 } else { 2 }
}

/// An amount of money for people: `$0.1307`, `$225.61`.
#[must_use]
pub fn dollars(amount: Money) -> String {
    let usd = amount.as_usd();
    let text = grouped(&fixed(usd.abs(), decimals_of_dollars(usd)));
    if usd < 0.0 { format!("-${text}") } else { format!("${text}") }
}

/// The text with no-break spaces between numbers and their units, so that no line ends between the two.
#[must_use]
pub fn unbroken(text: &str) -> String {
    const UNITS: [&str; 8] = ["%", "s", "h", "min", "ms", "vCPU", "GB", "MB"];
    let mut joined = String::with_capacity(text.len() + 8);
    for (n, word) in text.split(' ').enumerate() {
        let unit = word.trim_end_matches([',', '.', ';', ':', ')', ']']);
        let is_unit = joined.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&unit);
        match n {
            0 => {}
            _ if is_unit => joined.push('\u{a0}'),
            _ => joined.push(' '),
        }
        joined += word;
    }
    joined
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

    #[test]
    fn cents_are_enough_from_a_dollar_on() {
        let shown =
            [0, 130_740_000, 999_900_000, 1_250_000_000, 225_606_000_000, 12_345_678_000_000];
        let shown = shown.map(|nanos| dollars(Money::from_nanos(nanos)));
        assert_eq!(shown, ["$0.0000", "$0.1307", "$0.9999", "$1.25", "$225.61", "$12,345.68"]);
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(unbroken("in 863 s, by 5 % of 3 VMs"), "in 863\u{a0}s, by 5\u{a0}% of 3 VMs");
        assert_eq!(unbroken("a  b s"), "a  b s");
    }

    #[test]
    fn thousands_are_marked_from_five_digits_on() {
        for (number, text) in [
            ("9999", "9999"),
            ("10000", "10,000"),
            ("-1234567.891", "-1,234,567.891"),
            ("123456.7", "123,456.7"),
            ("1e30", "1e30"),
            ("vm12345", "vm12345"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
