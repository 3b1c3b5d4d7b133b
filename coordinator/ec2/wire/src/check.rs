//! Checks that an input has the parameters that the model requires, and only valid values of enumerations.

use crate::model::{ShapeIndex, WireShape};
use crate::parameters::join;
use crate::{ApiError, ServiceModel, WireValue};

/// Checks the input of an action that [`crate::read_input`] read.
///
/// A required parameter that is absent is the error `MissingParameter`; a value that its enumeration does not have is
/// `InvalidParameterValue`.
pub(crate) fn check_input(
    model: &ServiceModel,
    action: &str,
    input: &WireValue,
) -> Result<(), ApiError> {
    match model.action(action)?.input {
        Some(shape) => check_value(model, shape, input, ""),
        None => Ok(()),
    }
}

fn check_value(
    model: &ServiceModel,
    shape: ShapeIndex,
    value: &WireValue,
    name: &str,
) -> Result<(), ApiError> {
    match (model.shape(shape), value) {
        (WireShape::Structure { members, required, .. }, WireValue::Structure(of)) => {
            for member in members {
                let whole = join(name, &member.query);
                match of.get(&member.name) {
                    Some(value) => check_value(model, member.of, value, &whole)?,
                    None if required.contains(&member.name) => {
                        let whole =
                            if whole == "ResourceId" { "resourceIdSet" } else { whole.as_str() };
                        let text = format!("The request must contain the parameter {whole}");
                        return Err(ApiError::new("MissingParameter", text));
                    }
                    None => {}
                }
            }
            Ok(())
        }
        (WireShape::List { of, .. }, WireValue::List(values)) => values
            .iter()
            .zip(1..)
            .try_for_each(|(value, i)| check_value(model, *of, value, &format!("{name}.{i}"))),
        (WireShape::Text { values }, WireValue::Text(text))
            if !values.is_empty()
                && !values.contains(text)
                && !values.contains(&hyphenated(text)) =>
        {
            let message = match name {
                "Attribute" => {
                    format!("Value ({text}) for parameter attribute is invalid. Unknown attribute.")
                }
                _ => format!("Value ({text}) for parameter {name} is invalid."),
            };
            Err(ApiError::new("InvalidParameterValue", message))
        }
        _ => Ok(()),
    }
}

/// Converts a value in mixed case to the form of enumerations: EC2 accepts `lowestPrice` for `lowest-price`, and
/// terraform sends it.
fn hyphenated(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    for (place, char) in text.chars().enumerate() {
        if char.is_ascii_uppercase() && place > 0 {
            out.push('-');
            out.push(char.to_ascii_lowercase());
        } else {
            out.push(char);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::{ServiceModel, read_request};

    fn refusal(body: &str) -> (String, String) {
        let model = ServiceModel::ec2().expect("it is built in");
        let error = read_request(&model, body).expect_err(body);
        (error.code, error.message)
    }

    #[test]
    fn what_is_required_is_named_with_its_place() {
        let (code, text) = refusal("Action=RunInstances&Version=2016-11-15&MaxCount=1");
        assert_eq!(code, "MissingParameter");
        assert_eq!(text, "The request must contain the parameter MinCount");
        let (_, text) = refusal(
            "Action=ModifyInstanceCreditSpecification&InstanceCreditSpecification.1.CpuCredits=standard",
        );
        assert_eq!(
            text,
            "The request must contain the parameter InstanceCreditSpecification.1.InstanceId"
        );
    }

    #[test]
    fn two_parameters_have_another_name_in_errors_as_at_ec2() {
        let (_, text) = refusal("Action=CreateTags&Tag.1.Key=a");
        assert_eq!(text, "The request must contain the parameter resourceIdSet");
        let (_, text) =
            refusal("Action=DescribeInstanceAttribute&InstanceId=i-12345678&Attribute=abc");
        assert_eq!(text, "Value (abc) for parameter attribute is invalid. Unknown attribute.");
    }

    #[test]
    fn an_enumeration_has_its_values_alone() {
        let (code, text) = refusal("Action=RequestSpotInstances&Type=for-ever");
        assert_eq!(code, "InvalidParameterValue");
        assert_eq!(text, "Value (for-ever) for parameter Type is invalid.");
    }
}
