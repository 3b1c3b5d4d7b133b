//! A map for items that are added in the order of their ids and removed in any order.

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::ops::Index;

use crate::TaskId;

/// Greatest distance in ids between a new item and the nearest place for which the ids in between also get places.
/// The limit exists since a foreign log may contain any id, and places for all ids in between could exhaust the
/// memory.
const GAP: u32 = 64;

/// A map from ids of tasks or VMs to items, with access by position in constant time. It keeps a place for every id
/// from the first present item to the last one ever added, so large items should be boxed. Items far from all others
/// are in an ordinary map.
#[derive(Clone, Debug)]
pub struct Window<T, K = TaskId> {
    /// The id of the first place.
    first: u32,
    places: VecDeque<Option<T>>,
    /// Items by id that are not in a place, since no place was near their ids when they were added.
    far: BTreeMap<u32, T>,
    /// The id after the largest id that was ever in `far`.
    far_end: u32,
    ids: PhantomData<K>,
}

impl<T, K> Default for Window<T, K> {
    fn default() -> Self {
        let (places, far) = (VecDeque::new(), BTreeMap::new());
        Self { first: 0, places, far, far_end: 0, ids: PhantomData }
    }
}

impl<T, K: Copy + Into<u32> + From<u32>> Window<T, K> {
    /// The id after the largest id that ever had an item; `None` if none had.
    #[must_use]
    pub fn end_id(&self) -> Option<K> {
        let end = self.first.saturating_add(u32::try_from(self.places.len()).unwrap_or(u32::MAX));
        let end = end.max(self.far_end);
        (end > 0).then(|| K::from(end))
    }

    /// The index of an id's place, whether that place exists or not; `None`: the place would be before the first one.
    fn place_of(&self, id: K) -> Option<usize> {
        usize::try_from(id.into().checked_sub(self.first)?).ok()
    }

    /// The item of an id; `None`: the id has no item.
    #[must_use]
    #[inline]
    pub fn get(&self, id: K) -> Option<&T> {
        let near = self.place_of(id).and_then(|place| self.places.get(place)?.as_ref());
        near.or_else(|| self.far.get(&id.into()))
    }

    /// The item of an id, to be changed; `None`: the id has no item.
    #[inline]
    pub fn get_mut(&mut self, id: K) -> Option<&mut T> {
        let place = self.place_of(id);
        let near = place.and_then(|place| self.places.get_mut(place)?.as_mut());
        near.or_else(|| self.far.get_mut(&id.into()))
    }

    /// Inserts the item of an id; returns the previous item, if there was one. Between this id and others near it, a
    /// place is kept for every id.
    pub fn insert(&mut self, id: K, it: T) -> Option<T> {
        let id = id.into();
        if self.places.is_empty() {
            self.first = self.first.max(id);
        }
        let end = self.first.saturating_add(u32::try_from(self.places.len()).unwrap_or(u32::MAX));
        let is_far = id.saturating_sub(end) > GAP || self.first.saturating_sub(id) > GAP;
        if is_far || self.far.contains_key(&id) {
            self.far_end = self.far_end.max(id.saturating_add(1));
            return self.far.insert(id, it);
        }
        while id < self.first {
            self.places.push_front(None);
            self.first -= 1;
        }
        let place = (id - self.first) as usize;
        if place >= self.places.len() {
            self.places.resize_with(place, || None);
            self.places.push_back(Some(it));
            return None;
        }
        self.places[place].replace(it)
    }

    /// Takes out the item of an id and returns it.
    pub fn remove(&mut self, id: K) -> Option<T> {
        let near = self.place_of(id).and_then(|place| self.places.get_mut(place)?.take());
        let Some(gone) = near else { return self.far.remove(&id.into()) };
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first = self.first.saturating_add(1);
        }
        Some(gone)
    }

    /// All items, to be changed, in any order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten().chain(self.far.values_mut())
    }

    /// All items, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        // Inclusive: the last place may be that of the largest id there is.
        let near = (self.first..=u32::MAX).zip(&self.places);
        let near = near.filter_map(|(id, it)| Some((id, it.as_ref()?)));
        let mut near = near.peekable();
        let mut far = self.far.iter().map(|(id, it)| (*id, it)).peekable();
        std::iter::from_fn(move || {
            let is_far_next = match (near.peek(), far.peek()) {
                (Some((near, _)), Some((far, _))) => far < near,
                (near, _) => near.is_none(),
            };
            let next = if is_far_next { far.next() } else { near.next() };
            next.map(|(id, it)| (K::from(id), it))
        })
    }
}

impl<T, K: Copy + Into<u32> + From<u32>> Index<K> for Window<T, K> {
    type Output = T;

    /// The item of an id that has one.
    ///
    /// # Panics
    ///
    /// The id has no item.
    fn index(&self, id: K) -> &T {
        self.get(id).expect("only what is there is asked for so")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::RandomStream;

    /// The window holds the same items as a map, and no places before the first present task.
    #[test]
    fn it_is_a_map_of_what_is_there() {
        let mut stream = RandomStream::new(7, "window", 0);
        for first in [0_u32, 5] {
            let (mut window, mut map) = (Window::default(), BTreeMap::new());
            assert_eq!(window.end_id(), None);
            let mut next = first;
            for turn in 0..3_000_u32 {
                // Now and then a task that has left comes again, and ids are left out.
                let back = stream.draw_below(30) as u32;
                let id = TaskId::new(next.saturating_sub(back).max(first));
                if stream.draw_below(2) == 0 {
                    assert_eq!(window.insert(id, turn), map.insert(id, turn));
                    next = next.max(id.get()) + stream.draw_below(3) as u32;
                } else {
                    assert_eq!(window.remove(id), map.remove(&id));
                }
                assert_eq!(window.get(id), map.get(&id));
                assert!(map.iter().all(|(id, it)| window[*id] == *it));
                assert_eq!(window.get_mut(id), map.get_mut(&id));
                assert!(window.iter().eq(map.iter().map(|(id, it)| (*id, it))));
                let mut all: Vec<u32> = window.values_mut().map(|it| *it).collect();
                all.sort_unstable();
                let mut theirs: Vec<u32> = map.values().copied().collect();
                theirs.sort_unstable();
                assert_eq!(all, theirs);
                assert!(!matches!(window.places.front(), Some(None)));
                assert!(window.end_id().is_none_or(|end| map.keys().all(|id| *id < end)));
            }
            assert!(window.get(TaskId::new(next + 100)).is_none());
        }
    }

    #[test]
    fn an_id_that_is_far_from_all_others_takes_no_more_room() {
        let (mut window, ids) = (Window::default(), [7, u32::MAX, 0, 900_000, 8, 1 << 30, 60]);
        for id in ids {
            assert_eq!(window.insert(TaskId::new(id), id), None);
        }
        assert_eq!(window.end_id(), Some(TaskId::new(u32::MAX)));
        assert!(window.places.len() <= 100, "{} places", window.places.len());
        let mut sorted = ids;
        sorted.sort_unstable();
        assert!(window.iter().map(|(id, _)| id.get()).eq(sorted));
        for id in ids {
            let id = TaskId::new(id);
            assert_eq!(window.insert(id, 1), Some(id.get()));
            assert_eq!(window.get(id), Some(&1));
            assert_eq!((window.remove(id), window.remove(id)), (Some(1), None));
        }
        assert_eq!(window.iter().count(), 0);
    }
}
