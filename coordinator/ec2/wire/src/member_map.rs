//! Members of a structure.

use std::borrow::Cow;

use crate::WireValue;

/// Members of a structure, sorted by their names. Names in the source are borrowed: an answer may have a hundred for each of a thousand
/// instances, in twenty small structures, for which a sorted array takes half the time of a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberMap(Vec<(Cow<'static, str>, WireValue)>);

impl MemberMap {
    /// The member with this name; `None`: there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&WireValue> {
        self.0.get(self.place_of(name).ok()?).map(|(_, value)| value)
    }

    /// Sets a member, and replaces one of the same name.
    pub fn insert(&mut self, name: Cow<'static, str>, value: WireValue) {
        match self.place_of(&name) {
            Ok(place) => {
                if let Some((_, own)) = self.0.get_mut(place) {
                    *own = value;
                }
            }
            Err(place) => self.0.insert(place, (name, value)),
        }
    }

    /// Removes the member with this name, if there is one.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(own, _)| own != name);
    }

    /// All members, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &WireValue)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    fn place_of(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(own, _)| (**own).cmp(name))
    }
}

impl FromIterator<(String, WireValue)> for MemberMap {
    fn from_iter<I: IntoIterator<Item = (String, WireValue)>>(members: I) -> Self {
        let mut map = Self::default();
        members.into_iter().for_each(|(name, value)| map.insert(name.into(), value));
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_sorted_and_each_name_is_there_once() {
        let mut map = MemberMap::default();
        for (name, value) in [("b", 1_i64), ("a", 2), ("c", 3), ("b", 4)] {
            map.insert(name.into(), value.into());
        }
        let all = |map: &MemberMap| map.iter().map(|(name, _)| name.to_owned()).collect::<String>();
        assert_eq!((all(&map), map.get("b")), ("abc".to_owned(), Some(&WireValue::Integer(4))));
        map.remove("a");
        assert_eq!((all(&map), map.get("a")), ("bc".to_owned(), None));
    }
}
