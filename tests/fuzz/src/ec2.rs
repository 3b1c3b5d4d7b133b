//! Calls of EC2's clients, and the answers that contain text from those calls.

use std::sync::Arc;

use dormouse_ec2::CloudConfig;
use dormouse_ec2_wire::{
    ApiError, ServiceModel, SharedValue, WireValue, read_query, request_of, write_error,
    write_response,
};

thread_local! {
    static MODEL: ServiceModel = ServiceModel::ec2().expect("it is built in");
}

/// Reads the bytes as a form body. A call that is read has an action of the model and reads the same a second time; a
/// refusal has an error code of EC2 and names nothing that was not sent.
pub(crate) fn query(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(pairs) = read_query(&text) else { return };
    MODEL.with(|model| match request_of(model, &pairs) {
        Ok(request) => {
            assert!(model.actions().any(|action| action == request.action), "{request:?}");
            assert_eq!(request_of(model, &pairs), Ok(request));
        }
        Err(error) => {
            let is_code = |c: char| c.is_ascii_alphanumeric() || c == '.';
            assert!(error.code.chars().all(is_code) && error.status() == 400, "{error}");
        }
    });
}

/// Reads the bytes as user data. What a host is told of them stays where it may be written, and is not more than was sent.
pub(crate) fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(config) = CloudConfig::read(&text) else { return };
    let is_name = |name: &String| {
        (1..=32).contains(&name.len()) && !name.contains([':', '/', '\n']) && name != "root"
    };
    assert!(config.users.iter().all(is_name), "{config:?}");
    let is_line = |key: &String| !key.is_empty() && !key.chars().any(char::is_control);
    assert!(config.ssh_keys.iter().all(is_line), "{config:?}");
    for file in &config.files {
        let is_there = file.path.starts_with("/tmp/") || file.path.starts_with("/home/");
        assert!(is_there && file.path.split('/').all(|part| part != ".."), "{file:?}");
        assert!(file.mode <= 0o777, "{file:?}");
    }
    let commands = config.commands.as_deref().unwrap_or("#!/bin/sh\n");
    assert!(commands.starts_with("#!/bin/sh\n"), "{commands}");
    let files: usize = config.files.iter().map(|file| file.content.len()).sum();
    // A quote is four characters of a command.
    assert!(files <= text.len() && commands.len() <= 20 + 6 * text.len(), "{config:?}");
}

/// Takes three lines as a tag's key, a tag's value and a token, and puts them into an answer and an error. An XML
/// reader gets them back, except for characters that XML can't contain.
pub(crate) fn answer(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.splitn(3, '\n').map(str::to_owned);
    let mut next = || lines.next().unwrap_or_default();
    let (key, value, token) = (next(), next(), next());
    let tag = WireValue::structure().with("Key", key.as_str()).with("Value", value.as_str());
    let tags = |tag: WireValue| {
        WireValue::structure().with("NextToken", token.as_str()).with("Tags", vec![tag])
    };
    let write =
        |tag: WireValue| MODEL.with(|model| write_response(model, "DescribeTags", &tags(tag), "r"));
    let shared = Arc::new(SharedValue::new(tag.clone()));
    let xml = write(tag);
    for _ in 0..2 {
        assert_eq!(write(shared.clone().into()), xml, "a shared value is written as the value");
    }
    let xml = xml.expect("the model has these members");
    assert_eq!(inner(&xml, "key"), carried(&key));
    assert_eq!(inner(&xml, "value"), carried(&value));
    assert_eq!(inner(&xml, "nextToken"), carried(&token));
    let (status, xml) = write_error(&ApiError::new(key.as_str(), value.as_str()), &token);
    assert!((400..=599).contains(&status));
    assert_eq!(inner(&xml, "Code"), carried(&key));
    assert_eq!(inner(&xml, "Message"), carried(&value));
    assert_eq!(inner(&xml, "RequestID"), carried(&token));
}

/// The text of the first element with this tag, as an XML reader gives it; the element has no other one inside.
fn inner(xml: &str, tag: &str) -> String {
    let (_, rest) = xml.split_once(&format!("<{tag}>")).expect("it is there");
    let (text, _) = rest.split_once('<').expect("it ends");
    assert!(rest[text.len()..].starts_with(&format!("</{tag}>")), "{xml}");
    assert!(!text.contains('\r') && text.chars().all(is_char), "{xml}");
    // The last, so that what it makes is not read again.
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&#13;", "\r");
    text.replace("&amp;", "&")
}

/// The part of a text that XML 1.0 can contain.
fn carried(text: &str) -> String {
    text.chars().map(|c| if is_char(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

fn is_char(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}
