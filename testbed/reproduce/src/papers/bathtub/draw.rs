//! The whole record, or a resample of it: what an interval is made of.

use dormouse_fit::Life;
use dormouse_units::Stream;

/// VMs from which a figure is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draw {
    /// The VMs that were recorded.
    Whole,
    /// As many, each drawn among all of them: the resample of this seed.
    Resample(u64),
}

impl Draw {
    /// The VMs of a group of this name. Under one seed a group is drawn only once, whatever is made of it.
    pub(super) fn pick<'a>(self, group: &str, all: Vec<&'a Life>) -> Vec<&'a Life> {
        let Self::Resample(seed) = self else { return all };
        let mut chance = Stream::named(seed, "resample", group);
        all.iter().filter_map(|_| all.get(chance.below(all.len())).copied()).collect()
    }
}
