//! Sorted list with fast access by position.

/// Sorted list of scores with the hosts' numbers, in which the position of a member is found
/// without counting all members.
#[derive(Clone, Debug, Default)]
pub(super) struct RankedHosts {
    /// Consecutive parts of the list, none of them empty.
    parts: Vec<Vec<Member>>,
    /// Last member of each part of the list: a search by value reads only the last members.
    lasts: Vec<Member>,
    /// Number of members in all parts of the list.
    len: usize,
}

/// A score, and the number of the host that has it.
pub(super) type Member = (i64, u32);

/// Greatest number of members in one of the parts of which a sorted list consists; a longer part is split in two.
const LONGEST: usize = 128;

impl RankedHosts {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn first(&self) -> Option<Member> {
        self.parts.first()?.first().copied()
    }

    pub(super) fn last(&self) -> Option<Member> {
        self.lasts.last().copied()
    }

    /// Inserts a member that is not in the list yet.
    pub(super) fn insert(&mut self, one: Member) {
        self.len += 1;
        if self.parts.is_empty() {
            self.parts.push(vec![one]);
            self.lasts.push(one);
            return;
        }
        let at = self.lasts.partition_point(|last| *last < one).min(self.parts.len() - 1);
        let part = &mut self.parts[at];
        part.insert(part.partition_point(|other| *other < one), one);
        self.lasts[at] = part[part.len() - 1];
        if part.len() > LONGEST {
            let rest = part.split_off(LONGEST / 2);
            self.lasts.insert(at, part[part.len() - 1]);
            self.parts.insert(at + 1, rest);
        }
    }

    /// Removes a member from the list, if it is there.
    pub(super) fn remove(&mut self, one: Member) {
        let at = self.lasts.partition_point(|last| *last < one);
        let Some(part) = self.parts.get_mut(at) else { return };
        let Ok(place) = part.binary_search(&one) else { return };
        part.remove(place);
        self.len -= 1;
        if let Some(last) = part.last() {
            self.lasts[at] = *last;
        } else {
            self.parts.remove(at);
            self.lasts.remove(at);
        }
    }

    /// The member at a position of the list, from 0; `None` beyond its end.
    pub(super) fn nth(&self, place: usize) -> Option<Member> {
        if place >= self.len {
            return None;
        }
        if place < self.len / 2 {
            let mut before = 0;
            let part = self.parts.iter().find(|part| {
                before += part.len();
                before > place
            })?;
            return part.get(place + part.len() - before).copied();
        }
        let mut before = self.len;
        let part = self.parts.iter().rev().find(|part| {
            before -= part.len();
            before <= place
        })?;
        part.get(place - before).copied()
    }

    /// Number of members of the list that are less than or equal to `one`.
    pub(super) fn up_to(&self, one: Member) -> usize {
        let at = self.lasts.partition_point(|last| *last <= one);
        // Most positions asked for are near one of the ends: the count begins at the nearer one.
        let count = |parts: &[Vec<Member>]| parts.iter().map(Vec::len).sum::<usize>();
        let before = match at <= self.parts.len() / 2 {
            true => count(&self.parts[..at]),
            false => self.len - count(&self.parts[at..]),
        };
        before + self.parts.get(at).map_or(0, |part| part.partition_point(|other| *other <= one))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dormouse_units::RandomStream;

    use super::*;

    #[test]
    fn it_is_a_sorted_list() {
        let mut chance = RandomStream::new(1, "ranked", 0);
        let (mut list, mut plain) = (RankedHosts::default(), BTreeSet::new());
        for step in 0..40_000_i64 {
            // The list grows for a while, and then shrinks.
            let takes_out = chance.draw_below(10) < if step % 20_000 < 10_000 { 2 } else { 9 };
            let mut one = (chance.draw_below(50) as i64 - 25, chance.draw_below(400) as u32);
            if step % 3 == 0 {
                one.0 = step;
            }
            if takes_out {
                one = plain.range(one..).next().copied().unwrap_or(one);
                list.remove(one);
                plain.remove(&one);
            } else if plain.insert(one) {
                list.insert(one);
            }
            assert_eq!(
                (list.first(), list.last()),
                (plain.first().copied(), plain.last().copied())
            );
            assert_eq!(list.is_empty(), plain.is_empty());
            if step % 16 == 0 {
                let bound = (chance.draw_below(60) as i64 - 30, chance.draw_below(400) as u32);
                assert_eq!(list.up_to(bound), plain.range(..=bound).count(), "{bound:?}");
                let place = chance.draw_below(plain.len() + 2);
                assert_eq!(list.nth(place), plain.iter().nth(place).copied(), "{place}");
            }
        }
        assert!(list.parts.iter().map(|part| part.last()).eq(list.lasts.iter().map(Some)));
        assert!(list.parts.iter().all(|part| !part.is_empty() && part.len() <= LONGEST));
    }
}
