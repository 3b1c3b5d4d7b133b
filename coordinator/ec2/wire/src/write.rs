//! From values to EC2's XML, and errors as EC2 writes them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::model::{MemberShape, ShapeIndex, WireShape};
use crate::parameters::is_xml_char;
use crate::{ApiError, ServiceModel, WireValue, write_instant};

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// Error: an answer doesn't have the shape that the model gives it, which is a bug of the code that made the answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueMismatch {
    /// The model does not have the action.
    #[error("the service model does not have the action {0}")]
    NoAction(String),
    /// The model does not have the member.
    #[error("the answer has {0}, which the service model does not have")]
    NoMember(String),
    /// The model has a different kind of value for this member.
    #[error("the answer has {found} at {path}, where the service model has another kind of value")]
    WrongKind {
        /// Path of the value in the answer.
        path: String,
        /// Kind of the value that was found.
        found: &'static str,
    },
}

/// Writes the answer of an action.
///
/// A list that is absent at the answer's top level is written as an empty list, as EC2 does; an action without an
/// answer gets `<return>true</return>`.
pub fn write_response(
    model: &ServiceModel,
    action: &str,
    value: &WireValue,
    request_id: &str,
) -> Result<String, ValueMismatch> {
    let shapes = model.action(action).map_err(|_| ValueMismatch::NoAction(action.to_owned()))?;
    let mut out = String::with_capacity(512);
    out.push_str(DECLARATION);
    out.push_str(&format!("<{action}Response xmlns=\"{}\">", model.namespace()));
    write_text_element(&mut out, "requestId", request_id);
    let mut writer = AnswerWriter { model, out };
    match shapes.output.map(|output| model.shape(output)) {
        Some(WireShape::Structure { sorted, .. }) => {
            writer.write_members(sorted, value, None, true)?;
        }
        _ => writer.out.push_str("<return>true</return>"),
    }
    let mut out = writer.out;
    out.push_str(&format!("</{action}Response>"));
    Ok(out)
}

/// Writes an error; returns its HTTP status and the text.
pub fn write_error(error: &ApiError, request_id: &str) -> (u16, String) {
    let mut out = String::from(DECLARATION);
    out.push_str("<Response><Errors><Error>");
    write_text_element(&mut out, "Code", &error.code);
    write_text_element(&mut out, "Message", &error.message);
    out.push_str("</Error></Errors>");
    write_text_element(&mut out, "RequestID", request_id);
    out.push_str("</Response>");
    (error.status(), out)
}

struct AnswerWriter<'a> {
    model: &'a ServiceModel,
    out: String,
}

impl AnswerWriter<'_> {
    /// Writes the members of a structure, whose shapes are sorted by their names, as the members are.
    fn write_members(
        &mut self,
        sorted: &[MemberShape],
        value: &WireValue,
        path: Option<&ValuePath<'_>>,
        is_answer: bool,
    ) -> Result<(), ValueMismatch> {
        let WireValue::Structure(of) = value else {
            return Err(mismatch(value, path));
        };
        let mut left = sorted.iter();
        for (name, value) in of.iter() {
            let path = ValuePath { above: path, name };
            let Some(member) = left.find(|member| member.name == name) else {
                return Err(ValueMismatch::NoMember(path.to_string()));
            };
            self.write_element(member.of, value, &member.xml, &path)?;
        }
        let absent = |member: &&MemberShape| of.get(&member.name).is_none();
        for member in sorted.iter().filter(|_| is_answer).filter(absent) {
            if let WireShape::List { .. } = self.model.shape(member.of) {
                self.out.extend(["<", &member.xml, "/>"]);
            }
        }
        Ok(())
    }

    fn write_element(
        &mut self,
        shape: ShapeIndex,
        value: &WireValue,
        tag: &str,
        path: &ValuePath<'_>,
    ) -> Result<(), ValueMismatch> {
        self.out.extend(["<", tag, ">"]);
        self.write_content(shape, value, path)?;
        self.out.extend(["</", tag, ">"]);
        Ok(())
    }

    /// Writes what is between the tags of a value's element.
    fn write_content(
        &mut self,
        shape: ShapeIndex,
        value: &WireValue,
        path: &ValuePath<'_>,
    ) -> Result<(), ValueMismatch> {
        match (self.model.shape(shape), value) {
            (_, WireValue::Shared(shared)) => match shared.written_as(shape) {
                Some(text) => self.out.push_str(text),
                None => {
                    let begin = self.out.len();
                    self.write_content(shape, shared.value(), path)?;
                    shared.keep_written(shape, self.out.get(begin..).unwrap_or_default());
                }
            },
            (WireShape::Structure { sorted, .. }, value) => {
                self.write_members(sorted, value, Some(path), false)?;
            }
            (WireShape::List { item, of }, WireValue::List(values)) => {
                for value in values {
                    self.write_element(*of, value, item, path)?;
                }
            }
            (WireShape::Text { .. }, WireValue::Text(text)) => escape_into(&mut self.out, text),
            (WireShape::Integer, WireValue::Integer(value)) => {
                self.out.push_str(&value.to_string());
            }
            (WireShape::Float, WireValue::Float(value)) => self.out.push_str(&value.to_string()),
            (WireShape::Float, WireValue::Integer(value)) => self.out.push_str(&value.to_string()),
            (WireShape::Flag, WireValue::Flag(value)) => self.out.push_str(&value.to_string()),
            (WireShape::Instant, WireValue::Instant(at)) => self.out.push_str(&write_instant(*at)),
            (WireShape::Bytes, WireValue::Bytes(bytes)) => {
                self.out.push_str(&STANDARD.encode(bytes));
            }
            (_, value) => return Err(mismatch(value, Some(path))),
        }
        Ok(())
    }
}

fn mismatch(value: &WireValue, path: Option<&ValuePath<'_>>) -> ValueMismatch {
    let path = path.map_or_else(|| "its root".to_owned(), ValuePath::to_string);
    ValueMismatch::WrongKind { path, found: value.kind() }
}

/// Path of a value in an answer, which becomes text only for an error.
struct ValuePath<'a> {
    above: Option<&'a Self>,
    name: &'a str,
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            write!(f, "{above}.")?;
        }
        f.write_str(self.name)
    }
}

fn write_text_element(out: &mut String, tag: &str, text: &str) {
    out.extend(["<", tag, ">"]);
    escape_into(out, text);
    out.extend(["</", tag, ">"]);
}

/// Escapes a text for XML. A carriage return, which would be read back as a line feed, is written by its number; a
/// character that XML does not have, at which a reader would fail, is written as U+FFFD.
fn escape_into(out: &mut String, text: &str) {
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte) && !b"&<>".contains(&byte);
    if text.bytes().all(is_plain) {
        return out.push_str(text);
    }
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#13;"),
            c if is_xml_char(c) => out.push(c),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(action: &str, value: &WireValue) -> Result<String, ValueMismatch> {
        write_response(&ServiceModel::ec2().expect("it is built in"), action, value, "r-1")
    }

    #[test]
    fn an_answer_has_its_namespace_and_the_names_of_xml() {
        let price = WireValue::structure()
            .with("InstanceType", "c5.large")
            .with("SpotPrice", "0.0348")
            .with("Timestamp", WireValue::Instant(1_795_766_400_000_000));
        let value = WireValue::structure()
            .with("NextToken", "<&>\r\u{1}")
            .with("SpotPriceHistory", vec![price]);
        let wanted = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <DescribeSpotPriceHistoryResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
            <requestId>r-1</requestId><nextToken>&lt;&amp;&gt;&#13;\u{fffd}</nextToken>\
            <spotPriceHistorySet><item><instanceType>c5.large</instanceType>\
            <spotPrice>0.0348</spotPrice><timestamp>2026-11-27T08:00:00.000Z</timestamp></item>\
            </spotPriceHistorySet></DescribeSpotPriceHistoryResponse>";
        assert_eq!(write("DescribeSpotPriceHistory", &value).as_deref(), Ok(wanted));
    }

    #[test]
    fn a_shared_value_is_written_as_the_value_itself_each_time() {
        let token = |value: WireValue| WireValue::structure().with("NextToken", value);
        let instance =
            WireValue::structure().with("InstanceId", "i-1<").with("AmiLaunchIndex", 3_i64);
        let of = |instance: WireValue| {
            let all = WireValue::structure().with("Instances", WireValue::List(vec![instance]));
            WireValue::structure().with("Reservations", vec![all])
        };
        let shared = std::sync::Arc::new(crate::SharedValue::new(instance.clone()));
        let wanted = write("DescribeInstances", &of(instance)).expect("it fits");
        for _ in 0..2 {
            assert_eq!(write("DescribeInstances", &of(shared.clone().into())), Ok(wanted.clone()));
        }
        let wrong = std::sync::Arc::new(crate::SharedValue::new(WireValue::Integer(1)));
        let error = write("DescribeInstances", &token(wrong.into())).expect_err("it is wrong");
        let found = ValueMismatch::WrongKind { path: "NextToken".to_owned(), found: "an integer" };
        assert_eq!(error, found);
    }

    #[test]
    fn an_absent_list_of_an_answer_is_an_empty_one() {
        let text = write("DescribeInstances", &WireValue::structure()).expect("it fits");
        assert!(text.contains("<requestId>r-1</requestId><reservationSet/></Desc"), "{text}");
        let text = write("CreateTags", &WireValue::structure()).expect("it fits");
        assert!(text.contains("<return>true</return>"), "{text}");
    }

    #[test]
    fn an_answer_that_the_action_can_not_have_is_refused_with_its_place() {
        let at = |value: &WireValue| write("DescribeInstances", value).expect_err("it is wrong");
        let odd = WireValue::structure().with("Odd", 1_i64);
        assert_eq!(at(&odd), ValueMismatch::NoMember("Odd".to_owned()));
        let text = WireValue::structure().with("NextToken", 1_i64);
        let wanted = ValueMismatch::WrongKind { path: "NextToken".to_owned(), found: "an integer" };
        assert_eq!(at(&text), wanted);
        let inner = WireValue::structure().with("Reservations", vec![odd]);
        assert_eq!(at(&inner), ValueMismatch::NoMember("Reservations.Odd".to_owned()));
        assert_eq!(write("Fly", &inner), Err(ValueMismatch::NoAction("Fly".to_owned())));
    }

    #[test]
    fn an_error_is_as_ec2_writes_it() {
        let error =
            ApiError::new("InvalidInstanceID.NotFound", "The instance ID 'i<1' does not exist");
        let wanted = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error>\
            <Code>InvalidInstanceID.NotFound</Code><Message>The instance ID 'i&lt;1' does not exist\
            </Message></Error></Errors><RequestID>r-2</RequestID></Response>";
        assert_eq!(write_error(&error, "r-2"), (400, wanted.to_owned()));
    }
}
