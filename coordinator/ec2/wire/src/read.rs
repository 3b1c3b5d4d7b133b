//! From parameters to a value, by the shapes of the model.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::model::{MemberShape, ShapeIndex, WireShape};
use crate::parameters::{ParameterTree, join, unknown_parameter};
use crate::{ApiError, MemberMap, ServiceModel, WireValue, read_instant};

/// Reads the input of an action from its parameters; the common parameters of every request are left out.
///
/// A parameter that the action does not have is the error `UnknownParameter`, a value that is not of its type
/// `InvalidParameterValue`. [`crate::read_request`] checks that the required parameters are present.
pub fn read_input(
    model: &ServiceModel,
    action: &str,
    pairs: &[(String, String)],
) -> Result<WireValue, ApiError> {
    let shapes = model.action(action)?;
    let tree = ParameterTree::of_pairs(pairs)?;
    let reader = InputReader { model };
    match shapes.input.map(|input| model.shape(input)) {
        Some(WireShape::Structure { members, .. }) => reader.read_structure(members, &tree, ""),
        _ if tree.parts.is_empty() => Ok(WireValue::structure()),
        _ => Err(unknown_parameter(&tree.some_name(""))),
    }
}

struct InputReader<'a> {
    model: &'a ServiceModel,
}

impl InputReader<'_> {
    /// Reads the value at a part of the tree whose whole name is `name`.
    fn read_value(
        &self,
        shape: ShapeIndex,
        tree: &ParameterTree,
        name: &str,
    ) -> Result<WireValue, ApiError> {
        match self.model.shape(shape) {
            WireShape::Structure { members, .. } => self.read_structure(members, tree, name),
            WireShape::List { of, .. } => self.read_list(*of, tree, name),
            scalar => {
                if let Some((part, below)) = tree.parts.first_key_value() {
                    return Err(unknown_parameter(&below.some_name(&join(name, part))));
                }
                // A part of the tree without a value has something below it.
                read_scalar(scalar, tree.value.as_deref().unwrap_or_default(), name)
            }
        }
    }

    fn read_structure(
        &self,
        members: &[MemberShape],
        tree: &ParameterTree,
        name: &str,
    ) -> Result<WireValue, ApiError> {
        if tree.value.is_some() {
            return Err(unknown_parameter(name));
        }
        let mut out = MemberMap::default();
        for (part, below) in &tree.parts {
            let whole = join(name, part);
            let member = members
                .iter()
                .find(|member| member.query == *part)
                .ok_or_else(|| unknown_parameter(&below.some_name(&whole)))?;
            out.insert(member.name.clone().into(), self.read_value(member.of, below, &whole)?);
        }
        Ok(WireValue::Structure(out))
    }

    /// Reads a list. EC2's lists are flat, `Name.1`, `Name.2`: the numbers give the order and may have gaps.
    fn read_list(
        &self,
        of: ShapeIndex,
        tree: &ParameterTree,
        name: &str,
    ) -> Result<WireValue, ApiError> {
        if tree.value.is_some() {
            return Err(unknown_parameter(name));
        }
        let mut out = BTreeMap::new();
        for (part, below) in &tree.parts {
            let whole = join(name, part);
            let is_number = part.bytes().all(|b| b.is_ascii_digit());
            let number = part.parse::<u32>().ok().filter(|_| is_number);
            let number = number.ok_or_else(|| unknown_parameter(&below.some_name(&whole)))?;
            if out.insert(number, self.read_value(of, below, &whole)?).is_some() {
                let text = format!("The parameter {name}.{number} is given twice.");
                return Err(ApiError::new("MalformedQueryString", text));
            }
        }
        Ok(WireValue::List(out.into_values().collect()))
    }
}

fn read_scalar(shape: &WireShape, text: &str, name: &str) -> Result<WireValue, ApiError> {
    let value = match shape {
        WireShape::Integer => text.parse().ok().map(WireValue::Integer),
        WireShape::Float => {
            text.parse().ok().filter(|value: &f64| value.is_finite()).map(WireValue::Float)
        }
        WireShape::Flag => match text {
            _ if text.eq_ignore_ascii_case("true") => Some(WireValue::Flag(true)),
            _ if text.eq_ignore_ascii_case("false") => Some(WireValue::Flag(false)),
            _ => None,
        },
        WireShape::Instant => read_instant(text).map(WireValue::Instant),
        WireShape::Bytes => STANDARD.decode(text).ok().map(WireValue::Bytes),
        WireShape::Text { .. } | WireShape::Structure { .. } | WireShape::List { .. } => {
            Some(WireValue::Text(text.to_owned()))
        }
    };
    value.ok_or_else(|| {
        let wanted = match shape {
            WireShape::Integer => "an integer",
            WireShape::Float => "a number",
            WireShape::Flag => "true or false",
            WireShape::Instant => "an instant like 2026-11-27T08:00:00Z",
            _ => "base64",
        };
        invalid_value(name, text, wanted)
    })
}

/// EC2's error for an invalid value; `wanted` describes valid ones.
pub(crate) fn invalid_value(name: &str, value: &str, wanted: &str) -> ApiError {
    let text = format!("Value ({value}) for parameter {name} is invalid. Expected {wanted}.");
    ApiError::new("InvalidParameterValue", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_query;

    fn read(action: &str, query: &str) -> Result<WireValue, ApiError> {
        let model = ServiceModel::ec2().expect("it is built in");
        read_input(&model, action, &read_query(query).expect("a form"))
    }

    #[test]
    fn lists_are_in_the_order_of_their_numbers() {
        let value = read("DescribeInstances", "InstanceId.10=c&InstanceId.2=b&InstanceId.1=a")
            .expect("it is right");
        assert_eq!(value.texts("InstanceIds"), ["a", "b", "c"]);
    }

    #[test]
    fn structures_in_lists_have_the_names_of_the_model() {
        let query =
            "Filter.1.Name=instance-state-name&Filter.1.Value.1=running&MaxResults=5&DryRun=TRUE";
        let value = read("DescribeInstances", query).expect("it is right");
        let filter = WireValue::structure()
            .with("Name", "instance-state-name")
            .with("Values", vec!["running"]);
        assert_eq!(value.list("Filters"), [filter]);
        assert_eq!(value.integer("MaxResults"), Some(5));
        assert_eq!(value.flag("DryRun"), Some(true));
    }

    #[test]
    fn what_the_action_does_not_have_is_refused_by_its_whole_name() {
        for (query, name) in [
            ("Colour=red", "Colour"),
            ("Filter.1.Values.1=x", "Filter.1.Values.1"),
            ("Filter.x.Name=x", "Filter.x.Name"),
            ("Filter.+1.Name=x", "Filter. 1.Name"),
            ("Filter=x", "Filter"),
            ("InstanceId=i-1", "InstanceId"),
            ("MaxResults.1=4", "MaxResults.1"),
            ("MaxResults=4&MaxResults.1=4", "MaxResults.1"),
        ] {
            let error = read("DescribeInstances", query).expect_err(query);
            assert_eq!(error.code, "UnknownParameter", "{query}");
            assert_eq!(error.message, format!("The parameter {name} is not recognized"));
        }
    }

    #[test]
    fn what_is_not_of_its_type_is_refused() {
        for query in [
            "MinCount=one",
            "MinCount=",
            "MinCount=1.5",
            "EbsOptimized=maybe",
            "MinCount=9223372036854775808",
        ] {
            let error = read("RunInstances", query).expect_err(query);
            assert_eq!(error.code, "InvalidParameterValue", "{query}");
        }
        let error = read("ImportKeyPair", "PublicKeyMaterial=%25").expect_err("no base64");
        assert!(error.message.ends_with("Expected base64."), "{error}");
        let error = read("DescribeSpotPriceHistory", "StartTime=yesterday").expect_err("no time");
        assert_eq!(error.code, "InvalidParameterValue");
        let error = read("Fly", "").expect_err("no action");
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("UnsupportedOperation", "The action Fly is not played here.")
        );
    }

    #[test]
    fn two_numbers_that_are_one_are_refused() {
        let error = read("DescribeInstances", "InstanceId.1=a&InstanceId.01=b").expect_err("twice");
        assert_eq!(error.code, "MalformedQueryString");
    }
}
