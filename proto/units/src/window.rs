//! A map for tasks that come in the order of their ids and leave in any order.

use std::collections::VecDeque;

use crate::TaskId;

/// One item for each of some tasks, found by position: as quick with a million tasks as with ten.
/// It is as long as from the first task that is there to the last that ever was.
#[derive(Clone, Debug)]
pub struct Window<T> {
    /// The id of the first place.
    first: u32,
    places: VecDeque<Option<T>>,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { first: 0, places: VecDeque::new() }
    }
}

impl<T> Window<T> {
    /// The id after the largest that ever was there; `None` while there was none.
    #[must_use]
    pub fn end(&self) -> Option<TaskId> {
        let end = self.first.saturating_add(u32::try_from(self.places.len()).unwrap_or(u32::MAX));
        (end > 0).then(|| TaskId::new(end))
    }

    /// The item of a task, if there is one.
    #[must_use]
    pub fn get(&self, id: TaskId) -> Option<&T> {
        self.places.get(id.get().checked_sub(self.first)? as usize)?.as_ref()
    }

    /// The item of a task, to be changed.
    pub fn get_mut(&mut self, id: TaskId) -> Option<&mut T> {
        self.places.get_mut(id.get().checked_sub(self.first)? as usize)?.as_mut()
    }

    /// Puts in the item of a task; returns the former item, if there was one. Between this task and
    /// the others there is a place for every id.
    pub fn insert(&mut self, id: TaskId, it: T) -> Option<T> {
        let id = id.get();
        if self.places.is_empty() {
            self.first = self.first.max(id);
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

    /// Takes out the item of a task and returns it.
    pub fn remove(&mut self, id: TaskId) -> Option<T> {
        let gone = self.places.get_mut(id.get().checked_sub(self.first)? as usize)?.take()?;
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first = self.first.saturating_add(1);
        }
        Some(gone)
    }

    /// All items, in the order of the tasks.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, &T)> {
        let ids = (self.first..).map(TaskId::new);
        ids.zip(&self.places).filter_map(|(id, it)| Some((id, it.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Stream;

    /// The window holds what a map would, and no places before the first task that is there.
    #[test]
    fn it_is_a_map_of_what_is_there() {
        let mut stream = Stream::new(7, "window", 0);
        for first in [0_u32, 5] {
            let (mut window, mut map) = (Window::default(), BTreeMap::new());
            assert_eq!(window.end(), None);
            let mut next = first;
            for turn in 0..3_000_u32 {
                // Now and then a task that has left comes again, and ids are left out.
                let back = stream.below(30) as u32;
                let id = TaskId::new(next.saturating_sub(back).max(first));
                if stream.below(2) == 0 {
                    assert_eq!(window.insert(id, turn), map.insert(id, turn));
                    next = next.max(id.get()) + stream.below(3) as u32;
                } else {
                    assert_eq!(window.remove(id), map.remove(&id));
                }
                assert_eq!(window.get(id), map.get(&id));
                assert_eq!(window.get_mut(id), map.get_mut(&id));
                assert!(window.iter().eq(map.iter().map(|(id, it)| (*id, it))));
                assert!(!matches!(window.places.front(), Some(None)));
                assert!(window.end().is_none_or(|end| map.keys().all(|id| *id < end)));
            }
            assert!(window.get(TaskId::new(next + 100)).is_none());
        }
    }
}
