//! Patterns for names of cells in a paper's data file: `{a,b}` stands for each of the words,
//! `{jobs}` for those of the list with that name, as a shell would expand them; `*` matches
//! anything.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_units::is_like;

/// Lists of words by name; `{NAME}` in a pattern stands for each word of a list.
pub(super) type Lists = BTreeMap<String, Vec<String>>;

/// All texts that the pattern `text` stands for, in order: the words in its last braces change first.
pub(super) fn expand(text: &str, lists: &Lists) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_owned()] };
    let (inside, after) = rest.split_once('}').unwrap_or((rest, ""));
    let words: Vec<&str> = match lists.get(inside) {
        Some(list) => list.iter().map(String::as_str).collect(),
        None => inside.split(',').collect(),
    };
    let tails = expand(after, lists);
    let with = |word: &&str| -> Vec<String> {
        tails.iter().map(|tail| format!("{before}{word}{tail}")).collect()
    };
    words.iter().flat_map(with).collect()
}

/// Whether the name of a cell, `case`, matches a pattern with braces and `*`.
pub(super) fn matches(pattern: &str, case: &str, lists: &Lists) -> bool {
    expand(pattern, lists).iter().any(|pattern| is_like(pattern, case))
}

/// Removes duplicates; the first of equal items stays.
pub(super) fn unique<T: Clone + Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    all.into_iter().filter(|one| seen.insert(one.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_expanded_and_stars_match() {
        let lists: Lists = [("jobs".to_owned(), vec!["j60".to_owned(), "j80".to_owned()])].into();
        let all = expand("{jobs}{,-sc2}/hads", &lists);
        assert_eq!(all, ["j60/hads", "j60-sc2/hads", "j80/hads", "j80-sc2/hads"]);
        for (pattern, case, is) in [
            ("*", "j60/hads", true),
            ("*-sc?/hads", "j60-sc2/hads", false),
            ("*-sc*/hads", "j60-sc2/hads", true),
            ("*/hads", "j60-sc2/burst-hads", false),
            ("{jobs}/*", "j80/hads", true),
            ("{jobs}/*", "j100/hads", false),
            ("*/*/measy", "fw-like/load-0.9/measy", true),
        ] {
            assert_eq!(matches(pattern, case, &lists), is, "{pattern} {case}");
        }
    }
}
