//! Digest of an answer: a hash of all values that a task computed.

use crate::result::Figure;

/// Extends the digest of a task's answer by the bits of one repetition's figures.
pub(crate) fn fold_figures(digest: u64, figures: &[Figure]) -> u64 {
    figures
        .iter()
        .fold(digest, |digest, figure| mix_bits(digest ^ mix_bits(figure.computed.to_bits())))
}

/// Extends the digest of a task's answer by the number of repetitions, as it doesn't include the figures of every repetition.
pub(crate) const fn fold_count(digest: u64, repetitions: u64) -> u64 {
    mix_bits(digest ^ mix_bits(repetitions))
}

/// Finaliser of splitmix64: every bit of the result depends on every bit of the argument.
pub(crate) const fn mix_bits(of: u64) -> u64 {
    let of = of.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let of = (of ^ (of >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let of = (of ^ (of >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    of ^ (of >> 31)
}

/// Formats a digest as it is written in an answer.
pub(crate) fn text(digest: u64) -> String {
    format!("{digest:016x}")
}
