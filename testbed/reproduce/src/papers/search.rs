//! A search for the reading of a paper that explains most of what it printed, with the fewest
//! changes.
//!
//! A reading is a set of changes to how its text is read. What it explains are printed figures that
//! ours come near to, and claims that hold. With enough changes anything comes near: each has a price.

/// What a change has to explain to be worth its while: as many statements as another thirty seeds
/// move. (Burst-HADS: of ten times 30 seeds, each explains 67 to 75 of the 104 costs and makespans;
/// their standard deviation is 2.9.)
pub(super) const PRICE: i64 = 3;

/// How many of the best readings of each size, from pairs on, are changed further.
const WIDTH: usize = 4;

/// A reading, and what it explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tried {
    /// Numbers of the changes, ascending.
    pub(super) changes: Vec<usize>,
    /// How many figures and claims.
    pub(super) explained: usize,
}

impl Tried {
    fn score(&self) -> i64 {
        score(self.explained, self.changes.len())
    }
}

/// What a reading is worth: a point for each figure and claim that it explains, less [`PRICE`] for
/// each change.
pub(super) fn score(explained: usize, changes: usize) -> i64 {
    let points = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    points(explained).saturating_sub(PRICE.saturating_mul(points(changes)))
}

/// Tries no change, each of `n` alone and each two, then more: each of the best of a size with one
/// more, until a size brings nothing better. All that were tried, the best first; of equals those with
/// fewer changes.
///
/// `together` says whether two changes can be made at once, `explained` how many figures and claims a
/// reading explains; `None` if nothing can be run under it.
pub(super) fn search<E>(
    n: usize,
    together: impl Fn(usize, usize) -> bool,
    mut explained: impl FnMut(&[usize]) -> Result<Option<usize>, E>,
) -> Result<Vec<Tried>, E> {
    let mut tried: Vec<Tried> = Vec::new();
    let mut size: Vec<Vec<usize>> = vec![Vec::new()];
    let mut best = i64::MIN;
    while !size.is_empty() {
        let mut of_size = Vec::new();
        for changes in size {
            if let Some(explained) = explained(&changes)? {
                of_size.push(Tried { changes, explained });
            }
        }
        of_size.sort_by_key(|t| (-t.score(), t.changes.clone()));
        let first = of_size.first();
        let (changes, score) = first.map_or((0, i64::MIN), |t| (t.changes.len(), t.score()));
        let width = if changes < 2 { of_size.len() } else { WIDTH };
        // Two may do what neither does alone: all of those are tried.
        let ends = changes > 2 && score <= best;
        best = best.max(score);
        size = Vec::new();
        for from in of_size.iter().take(width).filter(|_| !ends) {
            let fits = |&more: &usize| from.changes.iter().all(|&c| c != more && together(c, more));
            for more in (0..n).filter(fits) {
                let mut changes = [&from.changes[..], &[more]].concat();
                changes.sort_unstable();
                if !size.contains(&changes) {
                    size.push(changes);
                }
            }
        }
        tried.append(&mut of_size);
    }
    tried.sort_by_key(|t| (-t.score(), t.changes.len(), t.changes.clone()));
    Ok(tried)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The best of a search among four changes, and how many readings were tried.
    fn best(
        together: impl Fn(usize, usize) -> bool,
        explains: impl Fn(&[usize]) -> Option<usize>,
    ) -> (Tried, usize) {
        let tried = search(4, together, |changes| Ok::<_, ()>(explains(changes)));
        let tried = tried.expect("nothing fails");
        (tried[0].clone(), tried.len())
    }

    fn of(changes: &[usize], explained: usize) -> Tried {
        Tried { changes: changes.to_vec(), explained }
    }

    #[test]
    fn a_change_is_worth_what_it_explains_beyond_its_price() {
        assert_eq!([score(95, 0), score(98, 1), score(99, 1)], [95, 95, 96]);
        // Each explains two more: not enough.
        assert_eq!(best(|_, _| true, |c| Some(10 + 2 * c.len())).0, of(&[], 10));
        // Each explains four more: all are made.
        assert_eq!(best(|_, _| true, |c| Some(10 + 4 * c.len())).0, of(&[0, 1, 2, 3], 26));
    }

    #[test]
    fn two_changes_are_found_that_do_nothing_alone() {
        let pair = |c: &[usize]| Some(if c.contains(&1) && c.contains(&3) { 20 } else { 10 });
        // No change, four, six pairs, and each further one with the two.
        let (found, tried) = best(|_, _| true, pair);
        assert_eq!(found, of(&[1, 3], 20));
        assert!((11..=15).contains(&tried), "{tried}");
    }

    #[test]
    fn what_excludes_each_other_or_cannot_run_is_left_out() {
        let many = |c: &[usize]| Some(10 + 4 * c.len());
        assert_eq!(best(|a, b| a + b != 3, many).0.explained, 18, "two of each pair");
        let without_2 = |c: &[usize]| many(c).filter(|_| !c.contains(&2));
        assert_eq!(best(|_, _| true, without_2).0, of(&[0, 1, 3], 22));
        assert_eq!(search(3, |_, _| true, |_| Err("no")), Err("no"));
    }
}
