//! Ways in which a disk loses bytes that were written to it.

use crate::draw::Draw;

/// Number of bytes that a disk writes or loses as a unit.
const SECTOR: usize = 512;

/// Damage to the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// The file ends after this number of bytes.
    Cut(usize),
    /// The sector at this index was never written.
    LostSector(usize),
    /// The sector at this index was overwritten by one that belongs elsewhere.
    MisdirectedSector(usize),
    /// One bit of the byte at this index is flipped.
    FlippedBit(usize),
    /// No sector was written: all of the file is zeros.
    Zeros,
}

impl Damage {
    /// Draws a kind of damage for a file of `length` bytes; `None` for an empty file.
    pub(super) fn draw(length: usize, chance: &mut Draw) -> Option<Self> {
        let below = |many: usize, chance: &mut Draw| {
            chance.below(u32::try_from(many).unwrap_or(u32::MAX)) as usize
        };
        if length == 0 {
            return None;
        }
        let sectors = length.div_ceil(SECTOR);
        Some(match chance.below(5) {
            0 => Self::Cut(below(length, chance)),
            1 => Self::LostSector(below(sectors, chance) * SECTOR),
            2 => Self::MisdirectedSector(below(sectors, chance) * SECTOR),
            3 => Self::FlippedBit(below(length, chance)),
            _ => Self::Zeros,
        })
    }

    /// Does this damage to `bytes`; a misdirected sector is taken from `other`.
    pub(super) fn happen(self, bytes: &mut Vec<u8>, other: &[u8], chance: &mut Draw) {
        let length = bytes.len();
        let sector = |at: usize| at..(at + SECTOR).min(length);
        match self {
            Self::Cut(to) => bytes.truncate(to),
            Self::LostSector(at) => bytes[sector(at)].fill(0),
            Self::MisdirectedSector(at) => {
                let from = chance.below(u32::try_from(other.len()).unwrap_or(u32::MAX)) as usize;
                let strange = other[from..].iter().copied().chain(std::iter::repeat(0));
                bytes[sector(at)].iter_mut().zip(strange).for_each(|(byte, other)| *byte = other);
            }
            Self::FlippedBit(at) => bytes[at] ^= 1 << chance.below(8),
            Self::Zeros => bytes.fill(0),
        }
    }
}

/// Damages the unsynced end of a log, which begins at `at` in the file: some sectors are lost or come from elsewhere.
/// The first sector always is: otherwise it would belong to what was kept, or lines from another place would continue
/// a line, and nothing in the log would show that they were not written there.
pub(super) fn tear_tail(tail: &mut [u8], at: usize, log: &[u8], chance: &mut Draw) {
    let first = (SECTOR - at % SECTOR).min(tail.len());
    let (head, rest) = tail.split_at_mut(first);
    head.fill(0);
    for sector in rest.chunks_mut(SECTOR) {
        match chance.below(3) {
            0 => sector.fill(0),
            1 => {
                let from = chance.below(u32::try_from(log.len()).unwrap_or(u32::MAX)) as usize;
                let strange = log[from..].iter().copied().chain(std::iter::repeat(0));
                sector.iter_mut().zip(strange).for_each(|(byte, other)| *byte = other);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_damage_is_drawn_and_stays_within_its_sector() {
        let whole: Vec<u8> = (0..1_300_u32).map(|n| (n % 251) as u8 + 1).collect();
        let other = vec![255; 40];
        let (mut chance, mut seen) = (Draw::new(1, "test", 1), HashSet::new());
        for _ in 0..500 {
            let damage = Damage::draw(whole.len(), &mut chance).expect("it is not empty");
            let mut bytes = whole.clone();
            damage.happen(&mut bytes, &other, &mut chance);
            let differ: Vec<_> = (0..bytes.len()).filter(|&at| bytes[at] != whole[at]).collect();
            let within = |at: usize| differ.iter().all(|it| (at..at + SECTOR).contains(it));
            let is_right = match damage {
                Damage::Cut(to) => bytes == whole[..to],
                Damage::LostSector(at) | Damage::MisdirectedSector(at) => {
                    !differ.is_empty() && at % SECTOR == 0 && within(at)
                }
                Damage::FlippedBit(at) => differ == [at],
                Damage::Zeros => bytes.iter().all(|byte| *byte == 0),
            };
            assert!(is_right, "{damage:?}");
            seen.insert(std::mem::discriminant(&damage));
        }
        assert_eq!(seen.len(), 5);
        assert_eq!(Damage::draw(0, &mut chance), None);
    }

    #[test]
    fn the_first_sector_of_a_torn_tail_is_lost() {
        let (log, mut chance) = (vec![7; 4_000], Draw::new(1, "test", 1));
        for at in [0, 100, 511, 512, 3_999] {
            for _ in 0..100 {
                let mut tail = vec![9; 1_200];
                tear_tail(&mut tail, at, &log, &mut chance);
                let first = (SECTOR - at % SECTOR).min(tail.len());
                assert!(tail[..first].iter().all(|byte| *byte == 0), "at {at}");
            }
        }
    }
}
