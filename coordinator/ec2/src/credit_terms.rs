//! What a launch and its tags say of an instance's CPU credits.

use dormouse_ec2_wire::ApiError;
use dormouse_units::Ppm;

/// Tag of an instance whose value is the part of each vCPU that the programs on it use, such as 0.4. Except with `--clock live`,
/// nothing runs on an instance, so its user declares the use.
pub(crate) const USE_TAG: &str = "dormouse:vcpu-use";

/// Reads the use that a tag declares; `None`: there is no such tag.
///
/// # Errors
///
/// `InvalidParameterValue`: the value is not a number from 0 to 1.
pub(crate) fn declared_by(tags: &[(String, String)]) -> Result<Option<Ppm>, ApiError> {
    let Some((_, value)) = tags.iter().rev().find(|(key, _)| key == USE_TAG) else {
        return Ok(None);
    };
    let part = value.parse::<f64>().ok().filter(|part| (0.0..=1.0).contains(part));
    let Some(part) = part else {
        let text = format!("The value '{value}' of the tag {USE_TAG} is not a number from 0 to 1");
        return Err(ApiError::new("InvalidParameterValue", text));
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked above"
    )]
    let millionths = (part * 1e6).round() as u32;
    Ok(Some(Ppm::new(millionths)))
}

/// Fails for a mode of credits that EC2 does not have.
///
/// # Errors
///
/// `InvalidParameterValue`.
pub(crate) fn check_mode(mode: &str) -> Result<(), ApiError> {
    if matches!(mode, "standard" | "unlimited") {
        return Ok(());
    }
    let text = format!("Invalid value '{mode}' for CpuCredits: it is standard or unlimited");
    Err(ApiError::new("InvalidParameterValue", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_declares_a_part_of_each_vcpu() {
        let tags = |value: &str| {
            let own = |key: &str, value: &str| (key.to_owned(), value.to_owned());
            vec![own("Name", "0.9"), own(USE_TAG, value)]
        };
        for (value, millionths) in [("0", 0), ("0.25", 250_000), ("1", 1_000_000), ("1e-6", 1)] {
            assert_eq!(declared_by(&tags(value)), Ok(Some(Ppm::new(millionths))), "{value}");
        }
        for wrong in ["", "-0.1", "1.01", "NaN", "40%"] {
            let error = declared_by(&tags(wrong)).expect_err(wrong);
            assert_eq!(error.code, "InvalidParameterValue");
        }
        assert_eq!(declared_by(&tags("0")[..1]), Ok(None));
    }
}
