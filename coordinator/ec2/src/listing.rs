//! Filters and pages of the calls that describe resources.

use dormouse_ec2_wire::{ApiError, WireValue};

/// The most filters of a call, and the most values of a filter.
const MOST_FILTERS: (usize, usize) = (50, 200);

/// Keeps the resources that pass all filters of a call. `values_of` returns the values of a resource for the name of a
/// filter; `None`: there is no filter with this name.
///
/// # Errors
///
/// `InvalidParameterValue` for a filter that has no name or is not supported; `FilterLimitExceeded` for too many filters or values.
pub(crate) fn filter_by<T>(
    items: Vec<T>,
    input: &WireValue,
    values_of: impl Fn(&T, &str) -> Option<Vec<String>>,
    known: &[&str],
) -> Result<Vec<T>, ApiError> {
    let filters: Vec<(&str, Vec<&str>)> = input
        .list("Filters")
        .iter()
        .map(|filter| (filter.text("Name").unwrap_or_default(), filter.texts("Values")))
        .collect();
    let (most, most_values) = MOST_FILTERS;
    if filters.len() > most || filters.iter().any(|(_, values)| values.len() > most_values) {
        let text =
            format!("A request has at most {most} filters, and a filter {most_values} values.");
        return Err(ApiError::new("FilterLimitExceeded", text));
    }
    for (name, _) in &filters {
        let is_tag = name.starts_with("tag:") && known.contains(&"tag-key");
        if !known.contains(name) && !is_tag {
            let text = format!("The filter '{name}' is invalid, or is not played here");
            return Err(ApiError::new("InvalidParameterValue", text));
        }
    }
    let passes = |item: &T| {
        filters.iter().all(|(name, wanted)| {
            let has = values_of(item, name).unwrap_or_default();
            wanted.iter().any(|wanted| has.iter().any(|value| matches(wanted, value)))
        })
    };
    Ok(items.into_iter().filter(passes).collect())
}

/// Whether a value matches a filter's value, in which `*` stands for any text and `?` for any character; a character
/// after a backslash stands for itself.
fn matches(wanted: &str, value: &str) -> bool {
    let mut rest = value.chars();
    let mut pattern = wanted.chars();
    loop {
        match pattern.next() {
            None => return rest.next().is_none(),
            Some('*') => {
                let (pattern, mut rest) = (pattern.as_str(), rest.as_str());
                loop {
                    if matches(pattern, rest) {
                        return true;
                    }
                    let mut shorter = rest.chars();
                    if shorter.next().is_none() {
                        return false;
                    }
                    rest = shorter.as_str();
                }
            }
            Some('\\') => {
                let wanted = pattern.next().unwrap_or('\\');
                if rest.next() != Some(wanted) {
                    return false;
                }
            }
            Some('?') if rest.next().is_some() => {}
            Some(wanted) if rest.next() == Some(wanted) => {}
            Some(_) => return false,
        }
    }
}

/// The part of a list that a call requests, and the token of the next part.
///
/// # Errors
///
/// `InvalidParameterValue` for a count out of `bounds` and for a token that no call gave.
pub(crate) fn take_page<T>(
    items: Vec<T>,
    input: &WireValue,
    (least, most): (i64, i64),
) -> Result<(Vec<T>, Option<String>), ApiError> {
    let wrong = |text: String| ApiError::new("InvalidParameterValue", text);
    let from = match input.text("NextToken") {
        None | Some("") => 0,
        Some(token) => read_token(token).ok_or_else(|| wrong("Invalid NextToken".to_owned()))?,
    };
    let size = match input.integer("MaxResults") {
        None => usize::MAX,
        Some(size) if size < least => {
            let text = format!(
                "Value ( {size} ) for parameter maxResults is invalid. Expecting a value greater than or equal to {least}."
            );
            return Err(wrong(text));
        }
        Some(size) if size > most => {
            let text = format!(
                "Value ( {size} ) for parameter maxResults is invalid. Expecting a value less than or equal to {most}."
            );
            return Err(wrong(text));
        }
        Some(size) => usize::try_from(size).unwrap_or(usize::MAX),
    };
    if from > items.len() {
        return Err(wrong("Invalid NextToken".to_owned()));
    }
    let all = items.len();
    let page: Vec<T> = items.into_iter().skip(from).take(size).collect();
    let next = from.saturating_add(page.len());
    Ok((page, (next < all).then(|| write_token(next))))
}

fn write_token(next: usize) -> String {
    format!("page-{next:08x}")
}

fn read_token(token: &str) -> Option<usize> {
    usize::from_str_radix(token.strip_prefix("page-")?, 16).ok()
}

/// Fails for a parameter that the call does not support. A parameter that is false, zero or empty is accepted, as it
/// requests nothing.
///
/// # Errors
///
/// `UnsupportedOperation` with the names of the call and of the parameter.
pub(crate) fn refuse_others(
    call: &str,
    input: &WireValue,
    played: &[&str],
) -> Result<(), ApiError> {
    let says_something = |value: &WireValue| match value {
        WireValue::Flag(flag) => *flag,
        WireValue::Integer(number) => *number != 0,
        WireValue::Text(text) => !text.is_empty(),
        _ => true,
    };
    let mut others = input.members().filter(|(name, _)| !played.contains(name));
    match others.find(|(_, value)| says_something(value)) {
        Some((name, _)) => {
            let text = format!("{call} does not play the parameter {name} here; leave it out");
            Err(ApiError::new("UnsupportedOperation", text))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_the_whole_list_once() {
        let all: Vec<u32> = (0..23).collect();
        let (mut seen, mut token, mut pages) = (Vec::new(), None, 0);
        loop {
            let input =
                WireValue::structure().with("MaxResults", 5_i64).with_some("NextToken", token);
            let (page, next) = take_page(all.clone(), &input, (5, 1_000)).expect("a page");
            (pages, token) = (pages + 1, next);
            seen.extend(page);
            if token.is_none() {
                break;
            }
        }
        assert_eq!((seen, pages), (all, 5));
        for wrong in [
            WireValue::structure().with("MaxResults", 4_i64),
            WireValue::structure().with("MaxResults", 1_001_i64),
            WireValue::structure().with("NextToken", "else"),
        ] {
            let error = take_page(vec![1], &wrong, (5, 1_000)).expect_err("it is refused");
            assert_eq!(error.code, "InvalidParameterValue");
        }
    }

    #[test]
    fn filters_are_all_to_be_met_by_any_of_their_values() {
        let filter = |name: &str, values: Vec<&str>| {
            WireValue::structure().with("Name", name).with("Values", values)
        };
        let input = |filters: Vec<WireValue>| WireValue::structure().with("Filters", filters);
        let length = |item: &&str, name: &str| match name {
            "length" => Some(vec![item.len().to_string()]),
            "text" => Some(vec![(*item).to_owned()]),
            _ => None,
        };
        let known = ["length", "text"];
        let items = vec!["a", "ab", "b", "abc"];
        let both = input(vec![filter("length", vec!["1", "3"]), filter("text", vec!["a*"])]);
        assert_eq!(filter_by(items.clone(), &both, length, &known).expect("known"), ["a", "abc"]);
        assert!(matches(r"a\*\?b*", "a*?bc") && !matches(r"a\*", "ab"));
        assert!(matches("a?c*", "abcd") && !matches("a?c", "ac") && matches("*", ""));
        let without_name = WireValue::structure().with("Values", vec!["a"]);
        for (wrong, code) in [
            (vec![filter("colour", vec!["red"])], "InvalidParameterValue"),
            (vec![without_name], "InvalidParameterValue"),
            (vec![filter("text", vec!["a"; 201])], "FilterLimitExceeded"),
            (vec![filter("text", vec!["a"]); 51], "FilterLimitExceeded"),
        ] {
            let error = filter_by(items.clone(), &input(wrong), length, &known).expect_err(code);
            assert_eq!(error.code, code);
        }
        let most = input(vec![filter("text", vec!["a"; 200]); 50]);
        assert_eq!(filter_by(items, &most, length, &known).expect("not too many"), ["a"]);
    }
}
