//! A whole request: its action, its version and its input.

use crate::check::check_input;
use crate::{ApiError, QueryPairs, ServiceModel, WireValue, read_input, read_query};

/// A call that was read, and whose parameters match the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiRequest {
    /// The action, like `RunInstances`.
    pub action: String,
    /// The version of the API that the client requested; the model's version if the client named none.
    pub version: String,
    /// The input, by the model's member names.
    pub input: WireValue,
}

/// Reads a form body, and checks it against the model.
pub fn read_request(model: &ServiceModel, body: &str) -> Result<ApiRequest, ApiError> {
    request_of(model, &read_query(body)?)
}

/// Reads a request whose parameters were decoded already.
pub fn request_of(model: &ServiceModel, pairs: &QueryPairs) -> Result<ApiRequest, ApiError> {
    let value = |wanted: &str| {
        let mut values = pairs.iter().filter(|(name, _)| name == wanted).map(|(_, v)| v.as_str());
        let value = values.next();
        match values.next() {
            None => Ok(value),
            Some(_) => {
                let text = format!("The parameter {wanted} is given twice.");
                Err(ApiError::new("MalformedQueryString", text))
            }
        }
    };
    let action = value("Action")?.ok_or_else(|| {
        ApiError::new("MissingAction", "The request must contain the parameter Action")
    })?;
    let version = value("Version")?.unwrap_or(model.version());
    if version != model.version() {
        let text = format!("The version {version} is not played here; {} is.", model.version());
        return Err(ApiError::new("NoSuchVersion", text));
    }
    let input = read_input(model, action, pairs)?;
    check_input(model, action, &input)?;
    Ok(ApiRequest { action: action.to_owned(), version: version.to_owned(), input })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_its_action_version_and_input() {
        let model = ServiceModel::ec2().expect("it is built in");
        let body = "Action=TerminateInstances&Version=2016-11-15&InstanceId.1=i-1&X-Amz-Date=now";
        let request = read_request(&model, body).expect("it is right");
        assert_eq!(request.action, "TerminateInstances");
        assert_eq!(request.version, "2016-11-15");
        assert_eq!(request.input, WireValue::structure().with("InstanceIds", vec!["i-1"]));
    }

    #[test]
    fn a_request_without_an_action_or_of_another_version_is_refused() {
        let model = ServiceModel::ec2().expect("it is built in");
        let code = |body: &str| read_request(&model, body).expect_err(body).code;
        assert_eq!(code(""), "MissingAction");
        assert_eq!(code("Action=DescribeRegions&Version=2009-04-04"), "NoSuchVersion");
        assert_eq!(
            code("Action=DescribeRegions&Version=2016-11-15&Action=Fly"),
            "MalformedQueryString"
        );
    }
}
