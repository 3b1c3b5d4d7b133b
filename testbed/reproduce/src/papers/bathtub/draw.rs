//! The whole record or a resample of it; intervals come from resamples.

use dormouse_fit::RecordedLife;
use dormouse_units::RandomStream;

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
    pub(super) fn pick<'a>(self, group: &str, all: Vec<&'a RecordedLife>) -> Vec<&'a RecordedLife> {
        let Self::Resample(seed) = self else { return all };
        let mut chance = RandomStream::named_stream(seed, "resample", group);
        all.iter().filter_map(|_| all.get(chance.draw_below(all.len())).copied()).collect()
    }
}
