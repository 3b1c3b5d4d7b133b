//! Suggestions of the form "Did you mean …?" for mistyped words.

use strsim::damerau_levenshtein;

/// The candidate nearest to `word`, if it is near enough that `word` may be a typing error of it.
pub(crate) fn nearest_word<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = word.chars().count();
    let limit = (length / 3).max(usize::from(length > 1));
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Suggestion of another word, as the end of an error message.
#[must_use]
pub fn instead(word: &str, candidates: &[&str]) -> String {
    match nearest_word(word, candidates.iter().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("there are {}", candidates.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let known = ["alpha", "swap-rate", "max-attempt"];
        assert_eq!(nearest_word("alhpa", known), Some("alpha"));
        assert_eq!(nearest_word("swap_rate", known), Some("swap-rate"));
        assert_eq!(nearest_word("colour", known), None);
    }
}
