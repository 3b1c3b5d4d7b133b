//! A map from ids to values, for small collections of a run that are searched often.

use std::ops::Index;

/// A map from ids to values, in the order of the ids.
///
/// Entries ascend by id and no id occurs twice. An id that equals the index of its entry is found at once, as if ids
/// are assigned from zero and never removed; any other id is found by binary search. An entry takes the same memory,
/// however large its id is.
#[derive(Clone, Debug)]
pub struct ById<K, V>(Vec<(K, V)>);

impl<K, V> Default for ById<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Ord + Into<u32>, V> ById<K, V> {
    /// A map without entries.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Position of an id; as an error, the position at which the id would have to be inserted.
    #[inline]
    fn find_place(&self, id: K) -> Result<usize, usize> {
        let number = id.into() as usize;
        if self.0.get(number).is_some_and(|(there, _)| *there == id) {
            return Ok(number);
        }
        let before = &self.0[..number.min(self.0.len())];
        before.binary_search_by_key(&id, |(there, _)| *there)
    }

    /// Number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the map is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of an id; `None`: the map has no such id.
    #[must_use]
    #[inline]
    pub fn get(&self, id: &K) -> Option<&V> {
        self.find_place(*id).ok().map(|place| &self.0[place].1)
    }

    /// The value of an id, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: &K) -> Option<&mut V> {
        self.find_place(*id).ok().map(|place| &mut self.0[place].1)
    }

    /// Whether the map has this id.
    #[must_use]
    pub fn contains_key(&self, id: &K) -> bool {
        self.find_place(*id).is_ok()
    }

    /// Inserts the value of an id; returns the previous value, if there was one.
    pub fn insert(&mut self, id: K, value: V) -> Option<V> {
        match self.find_place(id) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, value)),
            Err(place) => {
                self.0.insert(place, (id, value));
                None
            }
        }
    }

    /// Removes an id from the map; returns its value, if there was one.
    pub fn remove(&mut self, id: &K) -> Option<V> {
        self.find_place(*id).ok().map(|place| self.0.remove(place).1)
    }

    /// Keeps only the entries for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(id, value)| keep(id, value));
    }

    /// All entries, in the order of their ids.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.0.iter().map(|(id, value)| (id, value))
    }

    /// All ids, in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> {
        self.0.iter().map(|(id, _)| id)
    }

    /// All values, in the order of their ids.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }
}

/// Iterator over the entries of a [`ById`], in the order of their ids.
type Iter<'a, K, V> =
    std::iter::Map<std::slice::Iter<'a, (K, V)>, fn(&'a (K, V)) -> (&'a K, &'a V)>;

impl<'a, K: Copy + Ord + Into<u32>, V> IntoIterator for &'a ById<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Copy + Ord + Into<u32>, V> Index<&K> for ById<K, V> {
    type Output = V;

    /// The value of an id that is in the map.
    ///
    /// # Panics
    ///
    /// The id is not in the map.
    fn index(&self, id: &K) -> &V {
        self.get(id).expect("only what is there is asked for so")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::VmId;

    fn id() -> impl Strategy<Value = u32> {
        prop_oneof![0_u32..12, 0_u32..60, Just(u32::MAX), Just(u32::MAX - 1)]
    }

    proptest! {
        /// After any sequence of changes the map equals a plain map.
        #[test]
        fn it_is_a_plain_map(done in prop::collection::vec((0_u8..5, id()), 0..80)) {
            let mut map: ById<VmId, usize> = ById::new();
            let mut plain: BTreeMap<VmId, usize> = BTreeMap::new();
            for (n, (what, id)) in done.into_iter().enumerate() {
                let id = VmId::new(id);
                match what {
                    0 => prop_assert_eq!(map.remove(&id), plain.remove(&id)),
                    1 if n.is_multiple_of(9) => {
                        map.retain(|other, _| other.get() % 3 != id.get() % 3);
                        plain.retain(|other, _| other.get() % 3 != id.get() % 3);
                    }
                    2 => {
                        map.get_mut(&id).into_iter().for_each(|value| *value += 1_000);
                        plain.get_mut(&id).into_iter().for_each(|value| *value += 1_000);
                    }
                    _ => prop_assert_eq!(map.insert(id, n), plain.insert(id, n)),
                }
                prop_assert_eq!(map.get(&id), plain.get(&id));
                prop_assert_eq!(map.contains_key(&id), plain.contains_key(&id));
                prop_assert_eq!((map.len(), map.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert!(map.iter().eq(&plain) && (&map).into_iter().eq(&plain));
                prop_assert!(map.keys().eq(plain.keys()) && map.values().eq(plain.values()));
                prop_assert!(plain.iter().all(|(id, value)| map[id] == *value));
            }
        }
    }
}
