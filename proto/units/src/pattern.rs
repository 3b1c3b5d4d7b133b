//! Patterns of names, in which `*` stands for any letters.

/// Whether a name matches a pattern, in which each `*` stands for any letters, or none.
#[must_use]
pub fn is_like(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, name, is) in [
            ("w1", "w1", true),
            ("w1", "w11", false),
            ("w*", "w11", true),
            ("*", "", true),
            ("rack-a-*-x", "rack-a-12-x", true),
            ("rack-a-*-x", "rack-a-x", false),
            ("*a*b", "aab", true),
            ("*a*b", "ba", false),
            ("", "w", false),
        ] {
            assert_eq!(is_like(pattern, name), is, "{pattern} {name}");
        }
    }
}
