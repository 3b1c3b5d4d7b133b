//! SSM's public parameters that name the newest image of a kind.

use dormouse_ec2_wire::{ApiError, ApiRequest, WireValue};
use serde_json::{Value, json};

use crate::CloudSession;

/// The folder of Amazon Linux's names, like `al2023-ami-kernel-default-x86_64`.
const AMAZON_LINUX: &str = "/aws/service/ami-amazon-linux-latest/";

/// Returns SSM's answer for the name of a parameter that stands for an image: the cloud's first image of the same
/// architecture whose own name begins with the same distribution.
///
/// # Errors
///
/// `ParameterNotFound`; or the error with which the cloud refuses to describe its images.
pub(crate) fn parameter_of_image(
    session: &mut dyn CloudSession,
    account: &str,
    region: &str,
    name: &str,
) -> Result<Value, ApiError> {
    let missing = || {
        let text = format!("{name}: only names of images in {AMAZON_LINUX} are played here.");
        ApiError::new("ParameterNotFound", text)
    };
    let wanted = name.strip_prefix(AMAZON_LINUX).ok_or_else(missing)?;
    let (distribution, rest) = wanted.split_once('-').ok_or_else(missing)?;
    let (_, architecture) = rest.rsplit_once('-').ok_or_else(missing)?;
    let request = ApiRequest {
        action: "DescribeImages".to_owned(),
        version: "2016-11-15".to_owned(),
        input: WireValue::structure().with("Owners", vec!["amazon"]),
    };
    let answer = session.call(account, region, &request)?;
    let is_it = |image: &&WireValue| {
        let named = image.text("Name").and_then(|name| name.split('-').next());
        named == Some(distribution) && image.text("Architecture") == Some(architecture)
    };
    let image = answer.list("Images").iter().find(is_it).ok_or_else(missing)?;
    let id = image.text("ImageId").ok_or_else(missing)?;
    Ok(json!({
        "Name": name,
        "Type": "String",
        "Value": id,
        "Version": 1,
        "ARN": format!("arn:aws:ssm:{region}::parameter{name}"),
        "DataType": "aws:ec2:image",
    }))
}

/// SSM's answer for several names: the existing parameters, and the names of missing ones.
///
/// # Errors
///
/// `ValidationException`: no names are given.
pub(crate) fn parameters_of_images(
    session: &mut dyn CloudSession,
    account: &str,
    region: &str,
    names: Option<&Vec<Value>>,
) -> Result<Value, ApiError> {
    let names = names.filter(|names| (1..=10).contains(&names.len())).ok_or_else(|| {
        ApiError::new("ValidationException", "Names has to be a list of one to ten names.")
    })?;
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in names.iter().filter_map(Value::as_str) {
        match parameter_of_image(session, account, region, name) {
            Ok(parameter) => found.push(parameter),
            Err(_) => missing.push(name),
        }
    }
    Ok(json!({ "Parameters": found, "InvalidParameters": missing }))
}
