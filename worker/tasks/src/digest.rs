//! The digest of an answer: of all values that a task computed.

use crate::result::Figure;

/// The digest that takes in the figures of one more repetition: their bits.
pub(crate) fn fold(digest: u64, figures: &[Figure]) -> u64 {
    figures.iter().fold(digest, |digest, figure| mix(digest ^ mix(figure.computed.to_bits())))
}

/// The digest of so many repetitions, not all of which were taken in.
pub(crate) const fn counted(digest: u64, repetitions: u64) -> u64 {
    mix(digest ^ mix(repetitions))
}

/// The finaliser of splitmix64: every bit of what comes out hangs on every bit of what goes in.
pub(crate) const fn mix(of: u64) -> u64 {
    let of = of.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let of = (of ^ (of >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let of = (of ^ (of >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    of ^ (of >> 31)
}

/// A digest as an answer has it.
pub(crate) fn text(digest: u64) -> String {
    format!("{digest:016x}")
}
