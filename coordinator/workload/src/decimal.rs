//! Fast writing of exact numbers as decimal text: half of writing a schedule is writing numbers.

use dormouse_units::Span;

/// The eight digits of a number below 10^8, one per byte, most significant in the lowest byte. All
/// digits are found at once: halves, then pairs, then single digits, with divisions by
/// multiplication and shift.
const fn eight_digits(n: u32) -> u64 {
    let halves = (n / 10_000) as u64 | (((n % 10_000) as u64) << 32);
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds + ((halves - hundreds * 100) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens + ((pairs - tens * 10) << 8)
}

/// Bits to add to eight digits to make them ASCII text.
const TEXT: u64 = u64::from_le_bytes(*b"00000000");

/// The least number with more digits than [`eight_digits`] can split.
const NINE: u64 = 100_000_000;

/// Appends the first `count` bytes of `text`. Appending all eight and cutting avoids a function
/// call.
fn append_first(to: &mut Vec<u8>, text: u64, count: u32) {
    let end = to.len() + count as usize;
    to.extend_from_slice(&text.to_le_bytes());
    to.truncate(end);
}

/// Appends a whole number.
pub fn whole(to: &mut Vec<u8>, n: u64) {
    if n >= NINE {
        return append_long(to, n);
    }
    let digits = eight_digits(n as u32);
    // Zero itself has one digit.
    let zeros = (digits.trailing_zeros() / 8).min(7);
    append_first(to, (digits | TEXT) >> (8 * zeros), 8 - zeros);
}

/// Appends a whole number with more than eight digits.
#[cold]
fn append_long(to: &mut Vec<u8>, n: u64) {
    whole(to, n / NINE);
    append_first(to, eight_digits((n % NINE) as u32) | TEXT, 8);
}

/// Appends millionths as a decimal number, without trailing zeros.
pub fn millionths(to: &mut Vec<u8>, n: u64) {
    whole(to, n / 1_000_000);
    let rest = (n % 1_000_000) as u32;
    if rest > 0 {
        to.push(b'.');
        // Below a million the first two of eight digits are zeros.
        let digits = eight_digits(rest) >> 16;
        append_first(to, digits | TEXT, 8 - digits.leading_zeros() / 8);
    }
}

/// Appends a span in seconds, exactly.
pub fn seconds(to: &mut Vec<u8>, span: Span) {
    millionths(to, span.as_micros());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_written_as_the_library_writes_them() {
        let powers = (0..20).map(|n| 10_u64.pow(n));
        let near = powers.flat_map(|n| [n - 1, n, n + 1, n.saturating_mul(7) / 3]);
        let high = (0..10_000).map(|n| n * 10_000);
        for n in (0..20_000).chain(high).chain(near).chain((0..64).map(|n| u64::MAX >> n)) {
            let mut to = b"=".to_vec();
            whole(&mut to, n);
            assert_eq!(String::from_utf8_lossy(&to), format!("={n}"));
        }
    }

    #[test]
    fn numbers_are_exact_and_short() {
        for (n, text) in [
            (0, "0"),
            (1, "0.000001"),
            (10_000_000, "10"),
            (12_345_600, "12.3456"),
            (999_000_000, "999"),
            (1_000_000_000, "1000"),
            (u64::MAX, "18446744073709.551615"),
            (100_000_000, "100"),
            (109_000_010, "109.00001"),
            (1_234_567_000_000, "1234567"),
        ] {
            let mut to = Vec::new();
            millionths(&mut to, n);
            assert_eq!(String::from_utf8_lossy(&to), text);
        }
    }
}
