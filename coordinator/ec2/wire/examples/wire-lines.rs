//! Answers JSON lines on the standard input, for `scripts/test-ec2-wire`, which compares the answers
//! with botocore's.
//!
//! `{"read": ACTION, "query": FORM}` is answered by `{"value": VALUE}` or `{"error": [CODE, TEXT]}`;
//! `{"write": ACTION, "value": VALUE}` by `{"xml": TEXT}` or `{"error": …}`. In a VALUE an instant is
//! `{"$instant": MICROSECONDS}`, and bytes are `{"$bytes": [NUMBER, …]}`.

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use dormouse_ec2_wire::{ServiceModel, WireValue, read_input, read_query, write_response};
use serde_json::{Value, json};

fn main() -> ExitCode {
    match answer_lines() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "wire-lines: {error}");
            ExitCode::FAILURE
        }
    }
}

fn answer_lines() -> Result<(), Box<dyn std::error::Error>> {
    let model = ServiceModel::ec2()?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    #[expect(clippy::disallowed_methods, reason = "an example is a program")]
    let lines = std::io::stdin().lock().lines();
    for line in lines {
        let line: Value = serde_json::from_str(&line?)?;
        let answer = answer(&model, &line).unwrap_or_else(|error| json!({ "error": error }));
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

/// The answer to a line, or the code and the text of an error.
fn answer(model: &ServiceModel, line: &Value) -> Result<Value, [String; 2]> {
    let text = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
    if line.get("write").is_some() {
        let value = from_json(line.get("value").unwrap_or(&Value::Null));
        let xml = write_response(model, text("write"), &value, "r");
        let xml = xml.map_err(|error| [String::from("mismatch"), error.to_string()])?;
        return Ok(json!({ "xml": xml }));
    }
    let input = read_query(text("query")).and_then(|pairs| read_input(model, text("read"), &pairs));
    match input {
        Ok(value) => Ok(json!({ "value": to_json(&value) })),
        Err(error) => Err([error.code, error.message]),
    }
}

fn to_json(value: &WireValue) -> Value {
    match value {
        WireValue::Structure(of) => {
            of.iter().map(|(name, value)| (name.to_owned(), to_json(value))).collect()
        }
        WireValue::List(values) => values.iter().map(to_json).collect(),
        WireValue::Text(text) => json!(text),
        WireValue::Integer(value) => json!(value),
        WireValue::Float(value) => json!(value),
        WireValue::Flag(value) => json!(value),
        WireValue::Instant(at) => json!({ "$instant": at }),
        WireValue::Bytes(bytes) => json!({ "$bytes": bytes }),
        WireValue::Shared(shared) => to_json(shared.value()),
    }
}

fn from_json(value: &Value) -> WireValue {
    match value {
        Value::Object(of) => {
            if let Some(at) = of.get("$instant").and_then(Value::as_i64) {
                return WireValue::Instant(at);
            }
            if let Some(bytes) = of.get("$bytes").and_then(Value::as_array) {
                let bytes = bytes.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok());
                return WireValue::Bytes(bytes.collect());
            }
            WireValue::Structure(of.iter().map(|(k, v)| (k.clone(), from_json(v))).collect())
        }
        Value::Array(values) => WireValue::List(values.iter().map(from_json).collect()),
        Value::Bool(value) => WireValue::Flag(*value),
        Value::Number(number) => match number.as_i64() {
            Some(value) => WireValue::Integer(value),
            None => WireValue::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => WireValue::Text(text.clone()),
        Value::Null => WireValue::structure(),
    }
}
