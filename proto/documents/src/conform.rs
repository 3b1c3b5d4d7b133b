//! Validation of a document against its schema: all mistakes, each with its place and remedy.

use std::collections::BTreeSet;

use dormouse_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use crate::error::Mistakes;
use crate::schema::{example, kinds, schema_of, words};
use crate::suggest::{instead, nearest_word};
use crate::{InputError, Node, Value};

/// Validates `node` against `schema` and adds mistakes to `found`.
pub fn conform(schema: &Json, node: &Node, found: &mut Mistakes) {
    if let Some((tag, kinds)) = kinds(schema) {
        return of_a_kind(tag, &kinds, node, found);
    }
    let words = words(schema);
    if !words.is_empty() {
        return conform_choice(&words, node, found);
    }
    if let Some(forms) = schema["anyOf"].as_array() {
        return one_of(forms, node, found);
    }
    match schema["type"].as_str() {
        Some("object") => conform_table(schema, node, &|_| None, found),
        Some("array") => conform_list(schema, node, found),
        _ => {
            if let Err((what, remedy)) = conform_plain(schema, &node.value) {
                found.add(&node.place, what, remedy);
            }
        }
    }
}

/// Reads a value of type `T`; `None` if there are mistakes, which are added to `found`.
pub fn read<T: DeserializeOwned>(node: &Node, found: &mut Mistakes) -> Option<T> {
    if found.inside(&node.place.path) {
        return None;
    }
    match dormouse_units::written::read(&node.json()) {
        Ok(value) => Some(value),
        Err(error) => {
            found.add(&node.place, error.to_string(), "see `dormouse reference`");
            None
        }
    }
}

/// Reads a whole document as a value of type `T`.
///
/// # Errors
///
/// All mistakes in the document.
pub fn read_whole<T: JsonSchema + DeserializeOwned>(root: &Node) -> Result<T, InputError> {
    let mut found = Mistakes::default();
    conform(&schema_of::<T>(), root, &mut found);
    let value = read(root, &mut found);
    found.or(value)
}

/// Validates a table whose key `tag` selects one of several kinds, each with its schema.
fn of_a_kind(tag: &str, kinds: &[(&str, &Json)], node: &Node, found: &mut Mistakes) {
    let Value::Table(keys) = &node.value else { return not_a_table(node, found) };
    let all: Vec<_> = kinds.iter().map(|(word, _)| (*word, "")).collect();
    let Some(said) = keys.get(tag) else {
        let names: Vec<_> = all.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let remedy = format!("add {tag} = one of {}", names.join(", "));
        return found.add(&node.place, format!("'{tag}' is missing"), remedy);
    };
    let before = found.count();
    conform_choice(&all, said, found);
    if found.count() > before {
        return;
    }
    let is_it = |word: &str| matches!(&said.value, Value::Text(text) if text == word);
    let elsewhere = |key: &str| {
        let of = kinds.iter().filter(|(_, kind)| !kind["properties"][key].is_null());
        let of: Vec<_> = of.map(|(word, _)| format!("\"{word}\"")).collect();
        let first = of.first()?;
        let what = format!("'{key}' is of {tag} = {}, which is not this one", of.join(" or "));
        Some((what, format!("take it out, or write {tag} = {first}")))
    };
    for (_, kind) in kinds.iter().filter(|(word, _)| is_it(word)) {
        conform_table(kind, node, &elsewhere, found);
    }
}

/// Function that describes the mistake and the remedy for an unknown key.
type Stranger<'a> = &'a dyn Fn(&str) -> Option<(String, String)>;

fn conform_table(schema: &Json, node: &Node, stranger: Stranger<'_>, found: &mut Mistakes) {
    let Value::Table(keys) = &node.value else { return not_a_table(node, found) };
    let none = Map::new();
    let known = schema["properties"].as_object().unwrap_or(&none);
    // Keys that were mistyped: they are there, if under another name.
    let mut meant = BTreeSet::new();
    for (key, inner) in keys {
        if let Some(schema) = known.get(key) {
            conform(schema, inner, found);
        } else if schema["additionalProperties"].is_object() {
            conform(&schema["additionalProperties"], inner, found);
        } else if schema["additionalProperties"] == false {
            let (what, remedy) = stranger(key).unwrap_or_else(|| {
                let all: Vec<_> = known.keys().map(String::as_str).collect();
                meant.extend(nearest_word(key, all.iter().copied()));
                (format!("there is no key '{key}' here"), instead(key, &all))
            });
            found.add(&inner.place, what, remedy);
        }
    }
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
        if !keys.contains_key(key) && !meant.contains(key) {
            missing(node, key, &known.get(key).map(example).unwrap_or_default(), found);
        }
    }
}

/// Adds a mistake for a missing key; `like` is an example of a valid value.
pub fn missing(node: &Node, key: &str, like: &str, found: &mut Mistakes) {
    found.add(
        &node.place,
        format!("'{key}' is missing"),
        format!("add it, such as: {key} = {like}"),
    );
}

fn not_a_table(node: &Node, found: &mut Mistakes) {
    let what = format!("{} is not a table", node.value.what());
    found.add(&node.place, what, "write its keys inside it");
}

fn conform_list(schema: &Json, node: &Node, found: &mut Mistakes) {
    let Value::List(items) = &node.value else {
        let (what, of) = (node.value.what(), &schema["items"]);
        let remedy = match () {
            () if of["type"] == "object" || kinds(of).is_some() => {
                format!("write [[{}]] before each, or a list in brackets", node.place.path)
            }
            () if of.is_array() => "write two numbers in brackets".to_owned(),
            () => format!("write a list in brackets, such as {}", example(schema)),
        };
        return found.add(&node.place, format!("{what} is not a list"), remedy);
    };
    let (least, most) = (schema["minItems"].as_u64(), schema["maxItems"].as_u64());
    let count = items.len() as u64;
    if least.is_some_and(|least| count < least) || most.is_some_and(|most| count > most) {
        let remedy = match (least, most) {
            (Some(least), Some(most)) if least == most => format!("write {least}"),
            _ => "give at least one".to_owned(),
        };
        return found.add(&node.place, format!("there are {count} in it"), remedy);
    }
    for (n, item) in items.iter().enumerate() {
        let of = schema["items"].get(n).unwrap_or(&schema["items"]);
        conform(of, item, found);
    }
}

/// Validates a value, for which a schema allows several forms, against the form that fits the value's type.
fn one_of(forms: &[Json], node: &Node, found: &mut Mistakes) {
    let is_of = |form: &&Json| match (&node.value, form["type"].as_str()) {
        (Value::Table(_), kind) => kind == Some("object"),
        (Value::List(_), kind) => kind == Some("array"),
        (_, kind) => kind == Some("string") || !words(form).is_empty(),
    };
    match forms.iter().find(is_of) {
        Some(form) => conform(form, node, found),
        None => {
            let like: Vec<_> = forms.iter().map(example).collect();
            let what = format!("{} can't stand here", node.value.what());
            found.add(&node.place, what, format!("write it like {}", like.join(" or ")));
        }
    }
}

fn conform_choice(words: &[(&str, &str)], node: &Node, found: &mut Mistakes) {
    let names: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    let Value::Text(word) = &node.value else {
        let what = format!("{} is not a text", node.value.what());
        return found.add(&node.place, what, format!("write one of {}", names.join(", ")));
    };
    if !names.contains(&word.as_str()) {
        let what = format!("there is no {} '{word}'", thing_at(&node.place.path));
        found.add(&node.place, what, instead(word, &names));
    }
}

/// Word for the thing that the value at this path describes: the key that contains a name, or the singular of the list
/// that contains an item.
fn thing_at(path: &str) -> &str {
    let is_place = |key: &str| key.bytes().all(|byte| byte.is_ascii_digit());
    let mut keys = path.rsplit('.').skip_while(|key| *key == "name").peekable();
    match keys.next_if(|key| is_place(key)) {
        Some(_) => keys.next().map_or("name", |list| list.strip_suffix('s').unwrap_or(list)),
        None => keys.next().unwrap_or("name"),
    }
}

type Wrong = (String, String);

/// Validates a value that is neither a table nor a list.
fn conform_plain(schema: &Json, value: &Value) -> Result<(), Wrong> {
    let format = schema["format"].as_str().unwrap_or_default();
    match (schema["type"].as_str(), format, value) {
        (Some("string"), "time", value) => check_time(schema, value),
        (Some("string"), "memory", value) => check_memory(schema, value),
        (Some("string"), _, Value::Text(_)) | (Some("boolean"), _, Value::Flag(_)) => Ok(()),
        (Some("string"), ..) => wrong_value(value, "a text", "it in quotes"),
        (Some("boolean"), ..) => Err((
            format!("{} is neither true nor false", value.what()),
            "write true or false".into(),
        )),
        (Some("integer"), _, Value::Integer(n)) => {
            check_bounds(schema, *n as f64).map_err(|right| (format!("{n} is out of range"), right))
        }
        (Some("integer"), ..) => {
            wrong_value(value, "a whole number", &range_text(schema, "a whole number"))
        }
        (Some("number"), "dollars an hour", value) => {
            let like = "dollars an hour, such as 0.105";
            let usd = to_number(value, like)?;
            check_bounds(schema, usd)
                .map_err(|_| (format!("{usd} is not a price"), format!("write {like}")))
        }
        (Some("number"), _, value) => {
            let x = to_number(value, &range_text(schema, "a number"))?;
            check_bounds(schema, x).map_err(|right| (format!("{x} is out of range"), right))
        }
        _ => Ok(()),
    }
}

fn wrong_value(value: &Value, what: &str, right: &str) -> Result<(), Wrong> {
    Err((format!("{} is not {what}", value.what()), format!("write {right}")))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a number a person wrote where fractions are allowed"
)]
fn to_number(value: &Value, right: &str) -> Result<f64, Wrong> {
    match value {
        Value::Integer(n) => Ok(*n as f64),
        Value::Float(x) => Ok(*x),
        other => Err((format!("{} is not a number", other.what()), format!("write {right}"))),
    }
}

/// The least and the greatest value that a schema allows; `None`: there is no such bound.
fn schema_bounds(schema: &Json) -> (Option<f64>, Option<f64>) {
    let most = match schema["format"].as_str() {
        Some("uint32") => Some(f64::from(u32::MAX)),
        _ => None,
    };
    (schema["minimum"].as_f64(), schema["maximum"].as_f64().or(most))
}

/// Description of the allowed numbers.
fn range_text(schema: &Json, what: &str) -> String {
    match (schema_bounds(schema), schema["exclusiveMinimum"].as_f64()) {
        ((Some(least), Some(most)), None) => format!("{what} from {least} to {most}"),
        ((_, Some(most)), Some(above)) => format!("{what} above {above}, at most {most}"),
        ((Some(least), None), _) => format!("{what} of at least {least}"),
        ((None, Some(most)), _) => format!("{what} of at most {most}"),
        _ => what.to_owned(),
    }
}

fn check_bounds(schema: &Json, x: f64) -> Result<(), String> {
    let (least, most) = schema_bounds(schema);
    let fine = least.is_none_or(|least| x >= least)
        && most.is_none_or(|most| x <= most)
        && schema["exclusiveMinimum"].as_f64().is_none_or(|above| x > above);
    let what = if schema["type"] == "integer" { "a whole number" } else { "a number" };
    if fine { Ok(()) } else { Err(format!("write {}", range_text(schema, what))) }
}

fn check_time(schema: &Json, value: &Value) -> Result<(), Wrong> {
    let Value::Text(text) = value else {
        return wrong_value(
            value,
            "a length of time",
            &format!("a text with its unit, such as {}", example(schema)),
        );
    };
    // Some words are allowed in place of a time.
    let stands_for = |word: &Json| word.as_str() == Some(text);
    if schema["words"].as_array().is_some_and(|words| words.iter().any(stands_for)) {
        return Ok(());
    }
    let read = text.parse::<Span>().map_err(|error| split_error(&error.to_string()))?;
    check_least(schema, read, text)
}

fn check_memory(schema: &Json, value: &Value) -> Result<(), Wrong> {
    let Value::Text(text) = value else {
        return wrong_value(
            value,
            "an amount of memory",
            &format!("a text with its unit, such as {}", example(schema)),
        );
    };
    let read = text.parse::<Bytes>().map_err(|error| split_error(&error.to_string()))?;
    check_least(schema, read, text)
}

/// Checks that a quantity is not less than the schema's `least`.
fn check_least<T: std::str::FromStr + PartialOrd>(
    schema: &Json,
    read: T,
    text: &str,
) -> Result<(), Wrong> {
    let Some(least) = schema["least"].as_str() else { return Ok(()) };
    if least.parse().is_ok_and(|least: T| read < least) {
        let more = match least {
            "1us" | "1 B" => "a value above 0".to_owned(),
            least => format!("at least \"{least}\""),
        };
        let remedy = format!("write {more}, such as {}", example(schema));
        return Err((format!("'{text}' is too little"), remedy));
    }
    Ok(())
}

/// Splits the error text of a quantity's parser into mistake and remedy.
fn split_error(error: &str) -> Wrong {
    let (what, right) = error.split_once("; ").unwrap_or((error, "write it with its unit"));
    (what.to_owned(), right.to_owned())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::from_toml;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Named {
        /// One.
        One,
        /// Another.
        Another,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Either {
        /// By its name.
        Named(Named),
        /// Put together.
        Own { size: u32 },
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct File {
        rule: Either,
    }

    #[test]
    fn what_is_not_there_is_said_by_what_it_would_be() {
        assert_eq!(thing_at("scheduler.name"), "scheduler");
        assert_eq!(thing_at("cloud.placement.filters.0"), "filter");
        assert_eq!(thing_at("cloud.placement.weighers.12.name"), "weigher");
        assert_eq!(thing_at("interruption.0.model"), "model");
        assert_eq!(thing_at("name"), "name");
    }

    #[test]
    fn a_mistyped_key_is_one_mistake() {
        let read = |text: &str| {
            let root = from_toml("x.toml", text).expect("TOML");
            read_whole::<File>(&root).map(|_| ()).map_err(|error| error.to_string())
        };
        let mistyped = read("ruel = \"one\"").expect_err("no such key");
        assert!(mistyped.contains("did you mean 'rule'?"), "{mistyped}");
        assert_eq!(mistyped.lines().count(), 1, "{mistyped}");
        let strange = read("colour = 3").expect_err("no such key");
        assert!(strange.contains("'rule' is missing"), "{strange}");
    }

    #[test]
    fn a_value_of_several_forms_may_be_one_of_several_words() {
        let read = |rule: &str| {
            let root = from_toml("x.toml", &format!("rule = {rule}")).expect("TOML");
            read_whole::<File>(&root).map(|file| file.rule).map_err(|error| error.to_string())
        };
        assert_eq!(read("\"another\""), Ok(Either::Named(Named::Another)));
        assert_eq!(read("{ size = 3 }"), Ok(Either::Own { size: 3 }));
        for (rule, says) in [
            (
                "\"anohter\"",
                "x.toml:1:1: rule: there is no rule 'anohter'; did you mean 'another'?",
            ),
            ("{ size = \"3\" }", "x.toml:1:10: rule.size: '3' is not a whole number"),
            ("3", "x.toml:1:1: rule: 3 is not a text; write one of one, another"),
        ] {
            let error = read(rule).expect_err(rule);
            assert!(error.starts_with(says), "{error}");
        }
    }
}
