//! The XML of IAM's and STS's answers (awsQuery).

/// An XML element with a text.
pub(crate) fn element(tag: &str, text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| match c {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '\r' => "&#13;".to_owned(),
            c => c.to_string(),
        })
        .collect();
    format!("<{tag}>{text}</{tag}>")
}

/// A complete answer in awsQuery; `inner` is the XML of its result, which is empty for an action without a result.
pub(crate) fn query_answer(
    action: &str,
    namespace: &str,
    inner: Option<&str>,
    request_id: &str,
) -> String {
    let result = inner.map(|inner| format!("<{action}Result>{inner}</{action}Result>"));
    let id = element("RequestId", request_id);
    format!(
        "<{action}Response xmlns=\"{namespace}\">{}<ResponseMetadata>{id}</ResponseMetadata>\
         </{action}Response>",
        result.unwrap_or_default()
    )
}

/// An error of a service that speaks awsQuery.
pub(crate) fn query_error(code: &str, message: &str, namespace: &str, request_id: &str) -> String {
    format!(
        "<ErrorResponse xmlns=\"{namespace}\"><Error><Type>Sender</Type>{}{}</Error>{}</ErrorResponse>",
        element("Code", code),
        element("Message", message),
        element("RequestId", request_id)
    )
}
