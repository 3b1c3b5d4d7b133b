//! The whole record or a resample of it; intervals come from resamples.

use dormouse_fit::RecordedLife;
use dormouse_units::RandomStream;

/// The VMs from which a figure is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RecordDraw {
    /// The figure is computed from all recorded VMs.
    Whole,
    /// The figure is computed from a resample: as many VMs as recorded, drawn with replacement from the recorded ones with this
    /// seed.
    Resample(u64),
}

impl RecordDraw {
    /// Returns the recorded VMs `all` of a group, or a resample of them. With one seed a group has the same resample for all
    /// figures.
    pub(super) fn pick<'a>(self, group: &str, all: Vec<&'a RecordedLife>) -> Vec<&'a RecordedLife> {
        let Self::Resample(seed) = self else { return all };
        let mut chance = RandomStream::named_stream(seed, "resample", group);
        all.iter().filter_map(|_| all.get(chance.draw_below(all.len())).copied()).collect()
    }
}
