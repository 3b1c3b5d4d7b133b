//! Times at which jobs begin.

use dormouse_units::{Stream, Time};

/// Times drawn over the record of a series, the same for all bids, variants and schemes.
pub(super) fn starts(seed: u64, series: &str, until: Time) -> impl Iterator<Item = Time> {
    let mut chance = Stream::named(seed, "starts", series);
    let micros = usize::try_from(until.as_micros()).unwrap_or(usize::MAX).max(1);
    std::iter::repeat_with(move || Time::from_micros(chance.below(micros) as u64))
}
