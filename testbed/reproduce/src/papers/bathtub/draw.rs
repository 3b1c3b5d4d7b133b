//! The whole record or a resample of it; intervals come from resamples.

use dormouse_fit::Life;
use dormouse_units::Stream;

/// The VMs from which a figure is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RecordDraw {
    /// The recorded VMs.
    Whole,
    /// A resample: as many VMs as recorded, drawn from them with this seed.
    Resample(u64),
}

impl RecordDraw {
    /// The VMs of a group with this name. With one seed a group has the same resample for all
    /// figures.
    pub(super) fn pick<'a>(self, group: &str, all: Vec<&'a Life>) -> Vec<&'a Life> {
        let Self::Resample(seed) = self else { return all };
        let mut chance = Stream::named(seed, "resample", group);
        all.iter().filter_map(|_| all.get(chance.below(all.len())).copied()).collect()
    }
}
