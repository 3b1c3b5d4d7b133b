//! Exact numbers as decimal text, quickly: half of writing a schedule is writing numbers.

use dormouse_units::Span;

/// 00 to 99: two digits a division.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

const fn pair(n: u64) -> &'static [u8; 2] {
    &PAIRS[n as usize]
}

/// The digits of the longest number.
const MOST: usize = 20;

/// Appends a whole number.
pub fn whole(to: &mut Vec<u8>, mut n: u64) {
    // Most are short.
    match n {
        0..10 => return to.push(b'0' + n as u8),
        10..100 => return to.extend_from_slice(pair(n)),
        100..1_000 => {
            let [tens, ones] = *pair(n % 100);
            return to.extend_from_slice(&[b'0' + (n / 100) as u8, tens, ones]);
        }
        _ => {}
    }
    // Room of one length, whatever the number's, is no call; the digits are written where they stay.
    let start = to.len();
    to.extend_from_slice(&[b'0'; MOST]);
    let mut at = n.ilog10() as usize + 1;
    to.truncate(start + at);
    let digits = &mut to[start..];
    while n >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(pair(n % 100));
        n /= 100;
    }
    if n >= 10 {
        digits[..2].copy_from_slice(pair(n));
    } else {
        digits[0] = b'0' + n as u8;
    }
}

/// Appends millionths as a decimal number, without trailing zeros.
pub fn millionths(to: &mut Vec<u8>, n: u64) {
    whole(to, n / 1_000_000);
    let mut rest = n % 1_000_000;
    if rest == 0 {
        return;
    }
    to.push(b'.');
    let mut place = 100_000;
    while rest > 0 {
        to.push(b'0' + (rest / place) as u8);
        rest %= place;
        place /= 10;
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
