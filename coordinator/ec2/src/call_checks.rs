//! Checks of parameters that many calls have: client tokens, numbers of results, and tokens of pages.

use std::borrow::Cow;

use dormouse_ec2_wire::{ApiError, WireValue};

/// Calls that return their greatest page where MaxResults asks for a greater one; all others refuse it.
const CAPPED: [&str; 4] =
    ["DescribeImages", "DescribeSnapshots", "DescribeSpotPriceHistory", "DescribeVolumes"];

/// The token by which a repeated call is recognised; `None`: the call has none.
pub(crate) fn client_token(input: &WireValue) -> Option<&str> {
    let of_config = || input.at(&["SpotFleetRequestConfig", "ClientToken"])?.as_text();
    input.text("ClientToken").or_else(of_config).filter(|token| !token.is_empty())
}

/// Fails for a client token that is too long or not ASCII.
///
/// # Errors
///
/// `InvalidParameterValue`.
pub(crate) fn check_client_token(action: &str, input: &WireValue) -> Result<(), ApiError> {
    let most = if action.contains("LaunchTemplate") { 128 } else { 64 };
    match client_token(input).filter(|token| !token.is_ascii() || token.len() > most) {
        Some(token) => {
            let text = format!(
                "Value ({token}) for parameter clientToken is invalid. It has to be at most {most} ASCII characters."
            );
            Err(ApiError::new("InvalidParameterValue", text))
        }
        None => Ok(()),
    }
}

/// The input of a call as its handler reads it: the token of a page without the name of the call, and MaxResults within the greatest
/// page where EC2 accepts more.
///
/// # Errors
///
/// `InvalidParameterValue` for a token that another call gave.
pub(crate) fn open_page<'a>(
    action: &str,
    input: &'a WireValue,
) -> Result<Cow<'a, WireValue>, ApiError> {
    let mut opened = Cow::Borrowed(input);
    if let Some(token) = input.text("NextToken").filter(|token| !token.is_empty()) {
        let own = token.strip_prefix(action).and_then(|rest| rest.strip_prefix('.'));
        let wrong = || ApiError::new("InvalidParameterValue", "Invalid NextToken");
        opened.to_mut().set("NextToken", own.ok_or_else(wrong)?);
    }
    if CAPPED.contains(&action) && input.integer("MaxResults").is_some_and(|most| most > 1_000) {
        opened.to_mut().set("MaxResults", 1_000_i64);
    }
    Ok(opened)
}

/// The answer of a call, with the name of the call in the token of the next page: no other call accepts the token.
pub(crate) fn seal_page(action: &str, mut answer: WireValue) -> WireValue {
    if let Some(token) = answer.text("NextToken").filter(|token| !token.is_empty()) {
        let sealed = format!("{action}.{token}");
        answer.set("NextToken", sealed);
    }
    answer
}
